"""`lbopt audit http://host:port/metrics` scrapes an engine, and answers of what it said."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lbopt.exceptions import InputError
from lbopt.instances.rank_log import read_scrapes
from lbopt.serving.watch import watch

METRICS = (Path(__file__).parents[1] / "stored" / "rank_logs" / "metrics.prom").read_bytes()


class _Engine(BaseHTTPRequestHandler):
    def do_GET(self):
        found = {"/metrics": METRICS, "/page": b"<!doctype html><html></html>"}.get(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def engine():
    server = HTTPServer(("127.0.0.1", 0), _Engine)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_scrapes_become_a_series(engine):
    seen = []
    scrapes, stopped = watch([engine], 0.04, 0.02, seen.append)
    assert len(scrapes) == 3 and seen == [1, 2, 3] and not stopped
    series = read_scrapes(scrapes, engine)
    assert series.of("share").tolist() == [[0.93, 0.18, 0.0, 0.0]] * 3 and series.clocked


def test_an_address_that_never_answers_is_named(engine):
    causes = ((f"{engine}/nothing", "status 404"), ("http://127.0.0.1:9", "failed"), (f"{engine}/page", "page of HTML"))
    for url, cause in causes:
        with pytest.raises(InputError, match=cause):
            watch([url], 0.0, 1.0)
