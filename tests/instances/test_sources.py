"""One word for a trace."""

import subprocess
import sys

import pytest
from instances import texts

from lbopt.exceptions import InputError
from lbopt.instances import Columns, generate, open_reading, open_trace


def test_family():
    assert open_trace("azure-like", count=50, seed=3).digest == generate("azure-like", 50, 3).digest
    for options in ({}, {"count": 5}, {"seed": 5}):
        with pytest.raises(InputError, match="needs a count of requests and a seed"):
            open_trace("azure-like", **options)


def test_file(tmp_path, monkeypatch):
    path = tmp_path / "mine.csv"
    path.write_text(texts.BURSTGPT_OLD)
    assert len(open_trace(path)) == 3
    assert len(open_trace(str(path), count=2, seed=1)) == 2
    with pytest.raises(InputError, match="cannot take 4 requests"):
        open_trace(path, count=4)
    monkeypatch.chdir(tmp_path)
    assert len(open_trace("mine.csv")) == 3
    (tmp_path / "azure-like").write_text(texts.USER_CSV)
    assert len(open_trace("./azure-like", columns=Columns("num_prefill_tokens", "num_decode_tokens"))) == 3


def test_fetched(tmp_path, monkeypatch):
    import hashlib

    monkeypatch.setenv("LBOPT_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="was not fetched yet; get it with: lbopt show traces burstgpt-1 --fetch"):
        open_trace("burstgpt-1")
    data = texts.BURSTGPT_NEW.encode()
    (tmp_path / "BurstGPT_1.csv").write_bytes(data)
    (tmp_path / "BurstGPT_1.csv.sha256").write_text(hashlib.sha256(data).hexdigest())
    reading = open_reading("burstgpt-1")
    assert (reading.trace.name, reading.format) == ("burstgpt-1", "burstgpt")


def test_unknown(tmp_path):
    with pytest.raises(InputError, match=r"no file, family or public trace 'azure-lik'.*did you mean 'azure-like'"):
        open_trace("azure-lik")
    with pytest.raises(InputError, match="No such file or directory"):
        open_trace(tmp_path / "none.csv")
    with pytest.raises(InputError, match="no file, family"):
        open_trace("x" * 5000)


def test_import_is_cheap():
    code = "import sys, lbopt.instances; print(*(m for m in ('pandas', 'scipy', 'pooch', 'numba') if m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
