"""``lbopt show traces``, called as the command line calls it."""

import hashlib

import pytest
from instances import texts
from typer.testing import CliRunner

from lbopt.cli import app
from lbopt.exceptions import InputError
from lbopt.instances import CATALOGUE


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LBOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "cache"


def run(*arguments):
    result = CliRunner().invoke(app, ["show", "traces", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def facts(output):
    return [" ".join(line.replace("│", " ").split()) for line in output.splitlines()]


def fails(match, *arguments):
    with pytest.raises(InputError, match=match):
        run(*arguments)


def test_list(cache):
    output = run()
    for name in ("azure-like", "burstgpt-like", *CATALOGUE):
        assert name in output
    assert str(cache) in output
    assert "pinned" in output


def test_examples_of_the_help_work():
    output = run("burstgpt-like")
    assert "burstgpt-like (family, seed 0)" in output
    assert "10,000" in output
    assert "mean tokens in a busy slot" in output
    assert "█" in output or "#" in output


def test_describe_reports_what_was_done_to_a_file(tmp_path):
    path = tmp_path / "b[red].csv"
    path.write_text(texts.BURSTGPT_OLD + "1,m,5,0,5,x\n2,m,6,1,7,x\n3,m,x,1,7,x\n")
    fails("line 7: Request tokens is 'x'", path)
    output = run(path, "--skip-malformed")
    lines = facts(output)
    assert "b[red] (burstgpt)" in lines
    assert "left out: malformed 1" in lines
    assert "left out: no output tokens 1" in lines
    assert "moved into time order 1" in lines
    assert "requests 4" in lines
    assert "requests 2" in facts(run(path, "--skip-malformed", "--count", 2))


def test_describe_user_columns(tmp_path):
    path = tmp_path / "u.csv"
    path.write_text(texts.USER_CSV)
    named = ("--prompt-column", "num_prefill_tokens", "--output-column", "num_decode_tokens")
    assert "requests per second" in run(path, *named, "--arrival-column", "arrived_at")
    assert "requests per second" in run(path)  # the names are recognised
    assert "requests per second" in run(path, "--column", "prompt=num_prefill_tokens")
    fails("no column 'tokens' for output", path, "--column", "output=tokens")
    fails("no trace format 'xml'", path, "--format", "xml")


def test_errors_propagate(tmp_path):
    fails("No such file or directory", tmp_path / "none.csv")
    fails("no file, family or public trace 'burstgpt'", "burstgpt")
    fails("was not fetched yet", "azure-2023-conv")
    fails("no public trace", "nothing", "--fetch")
    fails("is no web address", "burstgpt-1", "--fetch", "--set", "base_url=nowhere")


def test_fetch_says_what_is_there(cache):
    cache.mkdir()
    data = texts.BURSTGPT_OLD.encode()
    sha256 = hashlib.sha256(data).hexdigest()
    (cache / "BurstGPT_1.csv").write_bytes(data)
    (cache / "BurstGPT_1.csv.sha256").write_text(sha256)
    output = run("burstgpt-1", "--fetch")
    assert f"already here: {cache / 'BurstGPT_1.csv'}" in output
    assert sha256 in output
    assert "not pinned" in output
    assert "licence: CC BY 4.0" in output
    assert "burstgpt-1 (burstgpt)" in run("burstgpt-1")


def test_describe_real_trace(shared_dir):
    output = run(shared_dir / "data" / "azure_llm_2023_conv.csv")
    assert "19,366" in output
    assert "1,226.5" in output
