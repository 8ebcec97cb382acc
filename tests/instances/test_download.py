"""The downloader, against a server of our own."""

import hashlib
import os
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from instances import texts

from lbopt.exceptions import InputError
from lbopt.instances import sources
from lbopt.instances.readers import read_trace
from lbopt.instances.readers.formats import detect
from lbopt.instances.sources import CATALOGUE, fetch, fetched_path

AZURE = texts.AZURE_2023.encode()
BURST = texts.BURSTGPT_OLD.encode()


class Handler(BaseHTTPRequestHandler):
    def __init__(self, answers, requests, *rest):
        self.answers, self.requests = answers, requests
        super().__init__(*rest)

    def do_GET(self):
        self.requests.append(self.path)
        name = self.path.rsplit("/", 1)[1]
        if name not in self.answers:
            self.send_error(404)
            return
        status, body, promised = self.answers[name]
        self.send_response(status)
        self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server:
    """What is served (name -> status, body, promised length), what was asked for, and the address."""

    def __init__(self):
        self.answers, self.requests = {}, []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, self.answers, self.requests))
        self.url = f"http://127.0.0.1:{self.http.server_port}/mirror/"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def serve(self, name, body, status=200, promised=None):
        self.answers[CATALOGUE[name].file] = (status, body, len(body) if promised is None else promised)

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch):
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", sources.URL_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    server = Server()
    yield server
    server.close()


@pytest.fixture
def pinned(monkeypatch):
    """The pinned entry of the catalogue, pinned to the small file of these tests."""
    entry = sources.PublicTrace(
        name="azure-2023-conv",
        base_url="https://nowhere.invalid",
        file="AzureLLMInferenceTrace_conv.csv",
        format="azure",
        licence="",
        about="",
        sha256=hashlib.sha256(AZURE).hexdigest(),
    )
    monkeypatch.setitem(CATALOGUE, entry.name, entry)
    return entry.name


def names(folder: Path):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_pinned(tmp_path, server, pinned):
    server.serve(pinned, AZURE)
    found = fetch(pinned, base_url=server.url, cache=tmp_path / "new" / "folder")
    assert (found.pinned, found.downloaded) == (True, True)
    assert found.path.read_bytes() == AZURE
    assert names(found.path.parent) == [found.path.name]
    assert server.requests == [f"/mirror/{found.path.name}"]
    again = fetch(pinned, base_url=server.url, cache=found.path.parent)
    assert (again.pinned, again.downloaded) == (True, False)
    assert len(server.requests) == 1
    assert fetched_path(pinned, cache=found.path.parent) == found.path


def test_cache_is_used_offline(tmp_path, server, pinned):
    server.serve(pinned, AZURE)
    server.serve("burstgpt-1", BURST)
    for name in (pinned, "burstgpt-1"):
        fetch(name, base_url=server.url, cache=tmp_path)
    server.close()
    for name in (pinned, "burstgpt-1"):
        assert not fetch(name, base_url=server.url, cache=tmp_path).downloaded


def test_pinned_mismatch_keeps_nothing(tmp_path, server, pinned):
    server.serve(pinned, AZURE + b"2023-11-17 00:00:00,1,1\n")
    with pytest.raises(InputError, match=r"has SHA-256 .*; expected .* \(pinned in lbopt\); nothing was kept"):
        fetch(pinned, base_url=server.url, cache=tmp_path)
    assert names(tmp_path) == []


def test_trust_on_first_use(tmp_path, server, caplog):
    server.serve("burstgpt-1", BURST)
    found = fetch("burstgpt-1", base_url=server.url, cache=tmp_path)
    assert (found.pinned, found.downloaded) == (False, True)
    assert "not pinned by lbopt; trusted on first use" in caplog.text
    record = tmp_path / "BurstGPT_1.csv.sha256"
    assert record.read_text() == f"{hashlib.sha256(BURST).hexdigest()}  BurstGPT_1.csv\n"
    assert names(tmp_path) == ["BurstGPT_1.csv", record.name]
    found.path.unlink()  # another first use would trust anything: the record outlives the file
    server.serve("burstgpt-1", BURST + b"200,GPT-4,1,1,2,API log\n")
    with pytest.raises(InputError, match="of the first download, kept in"):
        fetch("burstgpt-1", base_url=server.url, cache=tmp_path)
    assert names(tmp_path) == [record.name]
    record.write_text("nonsense")
    with pytest.raises(InputError, match="holds no SHA-256; delete it"):
        fetch("burstgpt-1", base_url=server.url, cache=tmp_path)


def test_damaged_cache_is_fetched_again_but_never_read(tmp_path, server, pinned, caplog):
    server.serve(pinned, AZURE)
    found = fetch(pinned, base_url=server.url, cache=tmp_path)
    found.path.write_bytes(AZURE[:-10])
    with pytest.raises(InputError, match="get it again: lbopt show traces azure-2023-conv --fetch"):
        fetched_path(pinned, cache=tmp_path)
    assert fetch(pinned, base_url=server.url, cache=tmp_path).downloaded
    assert found.path.read_bytes() == AZURE
    assert "its SHA-256 differs" in caplog.text


def test_page_of_a_proxy_is_not_trusted(tmp_path, server):
    server.serve("burstgpt-2", b"<!DOCTYPE html><html>Please log in</html>")
    with pytest.raises(InputError, match=r"is no burstgpt trace .*DOCTYPE"):
        fetch("burstgpt-2", base_url=server.url, cache=tmp_path)
    server.serve("burstgpt-2", AZURE)
    with pytest.raises(InputError, match="is no burstgpt trace"):
        fetch("burstgpt-2", base_url=server.url, cache=tmp_path)
    assert names(tmp_path) == []


def test_answers_of_a_server(tmp_path, server):
    with pytest.raises(InputError, match="answered 404 Not Found"):
        fetch("burstgpt-1", base_url=server.url, cache=tmp_path)
    server.serve("burstgpt-1", b"busy", status=503)
    with pytest.raises(InputError, match="answered 503"):
        fetch("burstgpt-1", base_url=server.url, cache=tmp_path)
    server.serve("burstgpt-1", BURST, promised=len(BURST) + 1000)
    with pytest.raises(InputError, match="broke off before the end; nothing was kept"):
        fetch("burstgpt-1", base_url=server.url, cache=tmp_path)
    assert names(tmp_path) == []


def test_no_server(tmp_path, server):
    server.close()
    with pytest.raises(InputError, match=r"cannot be reached .*check the network"):
        fetch("burstgpt-1", base_url=server.url, cache=tmp_path)
    assert names(tmp_path) == []


def test_slow_server(tmp_path, monkeypatch):
    import socket

    monkeypatch.setattr(sources, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=r"did not answer within 0\.2 s"):
            fetch("burstgpt-1", base_url=url, cache=tmp_path)


def test_environment(tmp_path, server, monkeypatch):
    monkeypatch.setenv(sources.URL_VARIABLE, server.url)
    monkeypatch.setenv(sources.CACHE_VARIABLE, str(tmp_path / "c"))
    server.serve("burstgpt-1", BURST)
    assert fetch("burstgpt-1").path == tmp_path / "c" / "BurstGPT_1.csv"
    monkeypatch.delenv(sources.CACHE_VARIABLE)
    assert "lbopt" in str(sources.cache_folder())


@pytest.mark.parametrize(
    "base", ["http://example.org/x", "http://10.0.0.1", "http://localhost.example.org", "http://0.0.0.0"]
)
def test_an_address_elsewhere_needs_https(tmp_path, base, monkeypatch):
    """As an option and from the environment; nothing is asked of the network."""
    with pytest.raises(InputError, match="is not https"):
        fetch("burstgpt-1", base_url=base, cache=tmp_path)
    monkeypatch.setenv(sources.URL_VARIABLE, base)
    with pytest.raises(InputError, match="is not https"):
        fetch("burstgpt-1", cache=tmp_path)
    assert names(tmp_path) == []


def test_a_redirection_elsewhere_needs_https(tmp_path, server, monkeypatch):
    """The server sends the client to a name that only looks like this machine's."""
    server.serve("burstgpt-1", BURST)
    monkeypatch.setattr(sources, "_is_loopback", lambda host: False)
    monkeypatch.setattr(sources, "_address", lambda entry, base: f"{server.url}{entry.file}")
    with pytest.raises(InputError, match=r"redirected address .* is not https"):
        fetch("burstgpt-1", cache=tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_addresses_of_this_machine(host):
    assert sources._is_loopback(host)


@pytest.mark.parametrize(
    ("name", "file", "rows"),
    [
        ("azure-2023-conv", "azure_llm_2023_conv.csv", 19_366),
        ("azure-2023-code", "azure_llm_2023_code.csv", 8_819),
        ("mooncake-conversation", "mooncake_conversation.jsonl", 12_031),
        ("burstgpt-8000", "burstgpt_8000.json", 8_000),
        ("arxiv-8000", "arxiv_8000.json", 8_000),
    ],
)
def test_pinned_files_are_those_at_hand(tmp_path, server, name, file, rows):
    """The real files, served under their published names, match their SHA-256 and are read."""
    shared = os.environ.get("LBOPT_SHARED")
    if not shared:
        pytest.skip("LBOPT_SHARED is not set")
    server.serve(name, (Path(shared) / "data" / file).read_bytes())
    found = fetch(name, base_url=server.url, cache=tmp_path)
    assert found.pinned
    trace = read_trace(found.path)
    assert len(trace) == rows
    assert CATALOGUE[name].format == detect(found.path.read_bytes(), name)


@pytest.mark.parametrize("base", ["ftp://example.org", "example.org/x", "http://", "http://[bad", "file:///etc"])
def test_bad_address(tmp_path, base):
    with pytest.raises(InputError, match="is no web address"):
        fetch("burstgpt-1", base_url=base, cache=tmp_path)


def test_disk(tmp_path, server, monkeypatch):
    server.serve("burstgpt-1", BURST)
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(InputError, match=r"cannot be written"):
        fetch("burstgpt-1", base_url=server.url, cache=blocker / "sub")

    import shutil

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "move", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        fetch("burstgpt-1", base_url=server.url, cache=tmp_path)
    assert names(tmp_path) == ["file"]


def test_unknown_name():
    with pytest.raises(InputError, match=r"no public trace 'azure-2023'; .*did you mean 'azure-2023-"):
        fetch("azure-2023")


def test_pinned_sha_is_that_of_the_real_file(shared_dir):
    real = shared_dir / "data" / "azure_llm_2023_conv.csv"
    assert hashlib.sha256(real.read_bytes()).hexdigest() == CATALOGUE["azure-2023-conv"].sha256
