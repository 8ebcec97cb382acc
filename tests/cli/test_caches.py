"""Where the user's cache folder cannot be written, kernels are kept in a temporary folder that is the user's alone."""

import logging
import os
import tempfile

import pytest
from cli.terminal import lbopt

from lbopt.cli.caches import provide_caches

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")

NAMES = ("NUMBA_CACHE_DIR", "LBOPT_CACHE", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


@pytest.fixture
def home(tmp_path, monkeypatch, caplog):
    """A home that is a file, and a folder for temporary files."""
    caplog.set_level(logging.INFO)  # as in the program
    for name in NAMES:
        monkeypatch.setenv(name, "")  # is put back, whatever the test sets
        monkeypatch.delenv(name)
    (tmp_path / "home").write_text("")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    logger = logging.getLogger("lbopt.kernels")
    before = list(logger.handlers)
    yield tmp_path / "home"
    logger.handlers[:] = before


def compile_something():
    logging.getLogger("lbopt.kernels").info("compiling kernels once (about 20 s)")


def test_a_home_that_cannot_be_written(home, tmp_path, caplog):
    """Each process gets the same folder; a sentence says so before kernels are compiled, once."""
    place = tmp_path / "temporary" / f"lbopt-{os.getuid()}"
    provide_caches()
    assert os.environ["NUMBA_CACHE_DIR"] == str(place / "kernels")
    assert os.environ["MPLCONFIGDIR"] == str(place / "matplotlib")
    assert place.stat().st_mode & 0o777 == 0o700
    provide_caches()
    assert caplog.messages == []
    compile_something()
    compile_something()
    first, *others = caplog.messages
    assert first.startswith(f"kernels cannot be kept in '{home}")
    assert first.endswith(f"so '{place}' takes its place; LBOPT_CACHE names another folder")
    assert others == ["compiling kernels once (about 20 s)"] * 2


def test_a_named_folder_that_cannot_be_written(home, tmp_path, monkeypatch, caplog):
    """The sentence names it; a home that can be written keeps what belongs to pictures."""
    home.unlink()
    home.mkdir()
    monkeypatch.setenv("LBOPT_CACHE", "/dev/null/cache")
    provide_caches()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "temporary" / f"lbopt-{os.getuid()}" / "kernels")
    assert "MPLCONFIGDIR" not in os.environ
    compile_something()
    assert "kernels cannot be kept in '/dev/null/cache/kernels'" in caplog.text


def test_a_folder_that_can_be_written_is_left_alone(home, tmp_path, monkeypatch):
    """Nothing is made for verbs that compile nothing."""
    monkeypatch.setenv("LBOPT_CACHE", str(tmp_path / "not" / "there"))
    provide_caches()
    assert "NUMBA_CACHE_DIR" not in os.environ
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "temporary"]


@pytest.mark.parametrize("taken", ["link", "others may write", "file"])
def test_a_temporary_folder_of_others_is_not_used(home, tmp_path, caplog, taken):
    """What lies in it would be run."""
    place = tmp_path / "temporary" / f"lbopt-{os.getuid()}"
    if taken == "link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    elif taken == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod(0o777)
    provide_caches()
    assert "NUMBA_CACHE_DIR" not in os.environ
    compile_something()
    assert caplog.messages[0].endswith("; name a folder by LBOPT_CACHE")


@pytest.mark.slow
@pytest.mark.jit
def test_a_second_process_compiles_nothing(tmp_path):
    (tmp_path / "temporary").mkdir()
    empty = dict.fromkeys(NAMES, "")
    verb = ["simulate", "-n", "60", "-G", "2", "-B", "4", "-p", "jsq", "-o", "out"]
    said = []
    for _ in range(2):
        done = lbopt(*verb, cwd=tmp_path, HOME="/dev/null", TMPDIR=str(tmp_path / "temporary"), **empty)
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    assert said[0].count("cannot be kept") == said[0].count("compiling kernels once") == 1
    assert "Matplotlib" not in said[0]
    assert "kernels" not in said[1]
