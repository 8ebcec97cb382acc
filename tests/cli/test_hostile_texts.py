"""Names and texts of files and of other machines reach the terminal as text: none clears it, colours it or lies."""

import http.server
import json
import logging
import re
import threading
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STORED = Path(__file__).resolve().parents[1] / "stored"

#: Clears the screen, sets the title, moves back, turns the direction of writing, begins a command in one byte.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\b\b\r\x7f\u202e\x9b31m"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def harmless(type_in):
    """A function that types a command; its output must hold the words, and no character that is a command."""

    def call(words, *command):
        code, said, told = type_in(*command)
        assert not COMMANDS.search(said + told), repr(said + told)
        assert words in said + told
        return code

    return call


def test_workers_of_a_log(harmless, here):
    """Names of workers are columns of tables."""
    log = (EXAMPLES / "logs" / "fleet.csv").read_text().replace("decode-0", f"decode-{HOSTILE.replace(chr(13), '')}")
    (here / "log.csv").write_text(log)
    harmless("The same requests", "audit", "log.csv", "-p", "jsq", "--states", 0, "-o", "")


@pytest.mark.parametrize("key", ["format", "version", "command", "versions", "code"])
def test_an_account(harmless, here, key):
    """The command of a folder is shown where it was interrupted; whatever is wrong is named."""
    data = json.loads((STORED / "runs" / "gap.json").read_text()) | {"interrupted": True}
    data[key] = {"lbopt": HOSTILE, "rules": HOSTILE} if isinstance(data.get(key), dict) else f"lbopt {HOSTILE}"
    (here / "run.json").write_text(json.dumps(data))
    expected = {"format": "not written by", "versions": "interrupted study", "code": "code is"}.get(key, "x1b[2J")
    assert harmless(expected, "verify", here) == 2


def test_names_of_files(harmless, here):
    (here / f"a{HOSTILE}.json").write_text("{")
    assert harmless("x1b[2J", "solve", f"a{HOSTILE}.json") == 2
    assert harmless("x1b[2J", "show", "traces", f"b{HOSTILE}.csv") == 2


def test_a_log_line(harmless, capsys):
    """What an engine said stands in the lines of a router."""
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers.clear()
    try:
        harmless("lbopt", "--version")
        logging.getLogger("lbopt.test").warning("worker %s: %s", "w", HOSTILE)
        told = capsys.readouterr().err
    finally:
        root.handlers[:] = before
    assert told == "note: worker w: \\x1b[2J\\x1b]0;owned\\x07\\x08\\x08\\r\\x7f\\u202e\\x9b31m\n"


METRICS = f"""lbopt_worker_up{{group="g{HOSTILE}",worker="w{HOSTILE}"}} 1
lbopt_worker_tokens{{group="g{HOSTILE}",worker="w{HOSTILE}"}} 1e300
lbopt_pool_requests{{model="{HOSTILE}"}} 3
""".replace("\r", "")


@pytest.fixture
def router():
    """The address of a machine that answers whatever `answer` is: status, reason, body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        answer = (200, "OK", METRICS)

        def do_GET(self):
            status, reason, body = self.answer
            self.wfile.write(f"HTTP/1.0 {status} {reason}\r\n\r\n{body}".encode())

        def log_message(self, *given):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", Handler
        server.shutdown()


def test_the_metrics_of_a_router(harmless, router):
    """`lbopt show fleet` asks any address that is typed."""
    url, handler = router
    assert harmless("x1b[2J", "top", url, "--once", "--every", 0.1) == 0
    handler.answer = (500, f"no {HOSTILE}".replace("\r", ""), "")
    assert harmless("no router answers", "top", url, "--once", "--every", 0.1) == 2
    handler.answer = (200, "OK", 'lbopt_worker_up{group="g",worker="w",' + "a" * 400_000 + "} 1\n")
    assert harmless("name no worker", "top", url, "--once", "--every", 0.1) == 2, "no sample, and read once"
