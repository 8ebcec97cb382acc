"""A file appears whole or not at all, never through a planted link, and a kill leaves nothing for good."""

import os
import resource
import select
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lbopt import whole_file as module
from lbopt.exceptions import InputError
from lbopt.whole_file import one_at_a_time, unfinished_folder, whole_file, write_file


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_replaced_at_the_end(tmp_path):
    """Readers see the old content until the block ends."""
    path = tmp_path / "r.json"
    write_file(path, "old\n")
    with whole_file(path) as partial:
        partial.write_text("new")
        assert path.read_bytes() == b"old\n"
        assert partial.parent == tmp_path
    assert path.read_text() == "new"
    assert names(tmp_path) == ["r.json"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("defect"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_alone(tmp_path, error):
    """Nothing half-written, nothing beside it."""
    path = tmp_path / "r.json"
    write_file(path, "old")
    with pytest.raises((InputError, RuntimeError, KeyboardInterrupt)), whole_file(path) as partial:
        partial.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["r.json"]


@pytest.mark.parametrize("name", ["r.json", "r.json.partial", ".r.json.partial"])
def test_a_planted_link_is_never_followed(tmp_path, name):
    """Neither in the place of the file nor under a name that a writer might take for a while."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / name).symlink_to(victim)
    write_file(folder / "r.json", "mine")
    assert victim.read_text() == "precious"
    assert (folder / "r.json").read_text() == "mine"
    assert not (folder / "r.json").is_symlink()


def test_the_fresh_name_is_taken_exclusively(tmp_path, monkeypatch):
    """Even a link under the very name that was drawn is refused, not followed."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(module.secrets, "token_hex", lambda size: "0" * 2 * size)
    (tmp_path / ".lbopt-0000000000000000.partial").symlink_to(victim)
    with pytest.raises(InputError, match=r"cannot write '.*r\.json': File exists"):
        write_file(tmp_path / "r.json", "mine")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_are_those_of_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_file(tmp_path / "r.json", "x")
        with unfinished_folder(tmp_path) as partial:
            partial.rename(tmp_path / "out")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == mode | (0o111 & ~mask)


def test_what_cannot_be_written_is_one_sentence(tmp_path):
    """A folder, a missing parent, a name that is too long, a text that is none, a device."""
    os.mkfifo(tmp_path / "pipe")
    for path, text, said in (
        (tmp_path, "x", "it is a folder; give the name of a file"),
        (tmp_path / "absent" / "r.json", "x", "No such file or directory"),
        (tmp_path / ("n" * 300), "x", "File name too long"),
        (tmp_path / "r\0.json", "x", "NUL character"),
        (tmp_path / "r.json", "\ud800", "surrogates not allowed"),
        (tmp_path / "pipe", "x", "it is not a regular file"),
        (Path("/dev/null"), "x", "it is not a regular file"),
        (Path("/dev/full"), "x", "it is not a regular file"),
    ):
        with pytest.raises(InputError, match=said) as told:
            write_file(path, text, "result")
        assert str(told.value).startswith("cannot write ")
        assert str(told.value).isprintable()
    assert names(tmp_path) == ["pipe"]


def test_a_file_size_limit_is_one_sentence(tmp_path):
    """As a quota or a full disk does it: the write fails in the middle."""
    path = tmp_path / "r.json"
    write_file(path, "old")
    code = (
        "import resource, sys; from pathlib import Path; from lbopt.whole_file import write_file\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))\n"
        "from lbopt.exceptions import InputError\n"
        "try:\n    write_file(Path(sys.argv[1]), 'x' * 100_000)\nexcept InputError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert said.stdout == f"cannot write '{path}': File too large\n"
    assert path.read_text() == "old"
    assert names(tmp_path) == ["r.json"]


#: Waits in the middle of writing a file and a folder.
HALF = """
import sys, time
from pathlib import Path
from lbopt.whole_file import unfinished_folder, whole_file
here = Path(sys.argv[1])
with unfinished_folder(here) as folder, whole_file(here / "r.json") as partial:
    (folder / "a.csv").write_text("half")
    partial.write_text("half")
    print("there", flush=True)
    time.sleep(60)
"""


def test_what_a_kill_leaves_is_removed_by_the_next_writer(tmp_path):
    """But nothing of a writer that lives, and nothing that is not ours."""
    (tmp_path / "thesis.partial").write_text("precious")
    (tmp_path / ".lbopt-thesis.partial").write_text("precious")
    process = subprocess.Popen([sys.executable, "-c", HALF, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "there\n"
        begun = set(names(tmp_path))
        assert len(begun) == 4
        write_file(tmp_path / "other.json", "x")
        assert set(names(tmp_path)) == begun | {"other.json"}
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    write_file(tmp_path / "r.json", "new")
    assert names(tmp_path) == [".lbopt-thesis.partial", "other.json", "r.json", "thesis.partial"]


@pytest.mark.parametrize("make", ["_make_file", "_make_folder"])
def test_an_entry_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch, make):
    """Another writer may take it for one that a kill left."""
    real, removed = getattr(module, make), []

    def swept(path):
        handle = real(path)
        if not removed:
            removed.append(path)
            module._remove(path)
        return handle

    monkeypatch.setattr(module, make, swept)
    if make == "_make_file":
        write_file(tmp_path / "r.json", "x")
        assert names(tmp_path) == ["r.json"]
    else:
        with unfinished_folder(tmp_path) as partial:
            assert partial.is_dir()
            assert partial != removed[0]
    assert len(removed) == 1


def test_writers_move_entries_one_after_the_other(tmp_path):
    """A second process waits until the first has moved its own."""
    code = (
        "import sys; from pathlib import Path; from lbopt.whole_file import one_at_a_time\n"
        "with one_at_a_time(Path(sys.argv[1])):\n    print('in', flush=True)"
    )
    with one_at_a_time(tmp_path):
        other = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True)
        assert select.select([other.stdout], [], [], 0.5) == ([], [], [])
    assert other.communicate(timeout=20)[0] == "in\n"
