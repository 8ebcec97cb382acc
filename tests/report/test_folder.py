"""A folder of results appears whole or not at all, and never in the place of somebody else's."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lbopt.exceptions import InputError
from lbopt.report.folder import MARK, check_target, write_csv, write_json, write_whole

KIND = "lbopt-gap"


def fill(target, text="new"):
    (target / "a.csv").write_text(text)
    return {"text": text}


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file()}


def test_a_folder_is_written_and_replaced(tmp_path):
    """A new folder is made, an earlier one of ours replaced, and nothing is left beside it."""
    folder = tmp_path / "out folder"
    write_whole(folder, KIND, fill)
    write_whole(folder, KIND, lambda target: fill(target, "newer"))
    assert (folder / "a.csv").read_text() == "newer"
    assert json.loads((folder / MARK).read_text()) == {"format": KIND, "files": ["a.csv"], "text": "newer"}
    assert {p.name for p in folder.iterdir()} == {"a.csv", MARK}
    assert [p.name for p in tmp_path.iterdir()] == ["out folder"]


def test_an_empty_folder_is_taken(tmp_path):
    """An empty folder that exists is as good as none."""
    (tmp_path / "out").mkdir()
    write_whole(tmp_path / "out", KIND, fill)
    assert (tmp_path / "out" / MARK).is_file()


@pytest.mark.parametrize("error", [OSError("disk full"), RuntimeError("defect"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", [False, True])
def test_a_failure_in_the_middle_leaves_things_as_they_were(tmp_path, error, before):
    """Whatever happens while files are written, the old folder stays and no half-written one is left."""
    folder = tmp_path / "out"
    if before:
        write_whole(folder, KIND, lambda target: fill(target, "old"))

    def breaks(target):
        (target / "a.csv").write_text("half")
        raise error

    with pytest.raises((InputError, RuntimeError, KeyboardInterrupt)):
        write_whole(folder, KIND, breaks)
    assert [p.name for p in tmp_path.iterdir()] == (["out"] if before else [])
    if before:
        assert (folder / "a.csv").read_text() == "old"


def test_a_failure_of_the_last_rename_leaves_the_old_folder(tmp_path, monkeypatch):
    """If the new folder cannot be put in place, the old one is there under its name."""
    folder = tmp_path / "out"
    write_whole(folder, KIND, lambda target: fill(target, "old"))
    rename = Path.rename

    def no_rename(self, target):
        if self.name.startswith(".lbopt-") and target.name == "out":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", no_rename)
    with pytest.raises(InputError, match="cannot write output folder"):
        write_whole(folder, KIND, fill)
    assert folder.is_dir()
    assert (folder / "a.csv").read_text() == "old"


class Killed(BaseException):
    """Stands for kill -9."""


def test_a_kill_while_the_replaced_folder_is_removed(tmp_path, monkeypatch):
    """What is left of it belongs to nobody, and the next run removes it."""
    folder = tmp_path / "out"
    write_whole(folder, KIND, lambda target: fill(target, "old"))

    def killed(path, **_options):
        next(Path(path).rglob(MARK)).unlink()
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(shutil, "rmtree", killed)
        write_whole(folder, KIND, lambda target: fill(target, "newer"))
    assert (folder / "a.csv").read_text() == "newer"
    write_whole(folder, KIND, lambda target: fill(target, "newest"))
    assert content(folder)["a.csv"] == "newest"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("before", [False, True])
def test_ctrl_c_waits_until_a_folder_is_in_place(tmp_path, monkeypatch, before):
    """Pressed at any rename, it acts when the old folder is away and the new one is there."""
    folder = tmp_path / "out"
    if before:
        write_whole(folder, KIND, lambda target: fill(target, "old"))
    rename = Path.rename

    def pressed(self, target):
        signal.raise_signal(signal.SIGINT)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", pressed)
    with pytest.raises(KeyboardInterrupt):
        write_whole(folder, KIND, lambda target: fill(target, "newer"))
    assert content(folder)["a.csv"] == "newer"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_is_one_sentence(tmp_path):
    """An operating-system error becomes an InputError that names folder and reason."""

    def breaks(target):
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"cannot write output folder .*out.*No space left"):
        write_whole(tmp_path / "out", KIND, breaks)


def test_targets_that_cannot_be(tmp_path):
    """A file, a folder with other files and a folder without a parent are refused."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        check_target(tmp_path / "file", KIND)
    with pytest.raises(InputError, match="holds 'file', which no earlier run of this kind wrote"):
        check_target(tmp_path, KIND)
    with pytest.raises(InputError, match="does not exist"):
        check_target(tmp_path / "missing" / "out", KIND)
    assert content(tmp_path) == {"file": "x"}


@pytest.mark.parametrize("name", ["", ".", "../here", "link"])
def test_the_present_folder_is_refused(tmp_path, monkeypatch, name):
    """`--out .`, even in an empty folder and under any other name, is refused in words, and nothing happens."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    if name == "link":
        (tmp_path / "link").symlink_to(here)
        name = tmp_path / "link"
    for refuse in (check_target, lambda folder, kind: write_whole(folder, kind, fill)):
        with pytest.raises(InputError, match="is the working directory"):
            refuse(Path(name), KIND)
    assert list(here.iterdir()) == []
    assert {p.name for p in tmp_path.iterdir()} <= {"here", "link"}


def refuses(folder, named, kind=KIND):
    """The folder is refused by the check and by the writing, names the entry, and loses nothing."""
    before = content(folder.parent)
    for refuse in (check_target, lambda place, form: write_whole(place, form, fill)):
        with pytest.raises(InputError, match=f"holds '{named}', which no earlier run of this kind wrote"):
            refuse(folder, kind)
    assert content(folder.parent) == before


def test_a_foreign_run_json_does_not_make_a_folder_ours(tmp_path):
    """Many programs write a run.json; a folder with one of them is not replaced, and loses nothing."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / MARK).write_text('{"epochs": 3}')
    (folder / "weights.bin").write_text("precious")
    refuses(folder, MARK)
    assert content(folder) == {MARK: '{"epochs": 3}', "weights.bin": "precious"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        "{}",
        '{"format": "lbopt-gap"}',
        '{"format": "lbopt-gap", "files": null}',
        '{"format": "lbopt-gap", "files": 3}',
        '{"format": "lbopt-gap", "files": [[]]}',
        b"\xff\xfe",
    ],
)
def test_a_broken_account_does_not_make_a_folder_ours(tmp_path, text):
    """A run.json that cannot be read, or lists nothing, vouches for no file, itself included."""
    folder = tmp_path / "out"
    write_whole(folder, KIND, fill)
    (folder / MARK).write_bytes(text if isinstance(text, bytes) else text.encode())
    refuses(folder, "a.csv")


def test_a_file_added_by_the_user_keeps_the_folder(tmp_path):
    """A folder of ours in which somebody has put a file or a folder is not ours to replace any more."""
    folder = tmp_path / "out"
    write_whole(folder, KIND, fill)
    (folder / "notes.txt").write_text("precious")
    refuses(folder, "notes.txt")
    (folder / "notes.txt").unlink()
    (folder / "kept").mkdir()
    refuses(folder, "kept")


def test_a_folder_of_another_kind_is_not_replaced(tmp_path):
    """A gap study does not take the place of a simulation."""
    folder = tmp_path / "out"
    write_whole(folder, "lbopt-simulation", fill)
    refuses(folder, "a.csv")
    check_target(folder, "lbopt-simulation")


def test_a_folder_with_a_file_less_is_still_ours(tmp_path):
    """What the user deleted of our files does not keep the next run from its place."""
    folder = tmp_path / "out"
    write_whole(folder, KIND, fill)
    (folder / "a.csv").unlink()
    write_whole(folder, KIND, lambda target: fill(target, "newer"))
    assert (folder / "a.csv").read_text() == "newer"


def test_a_kill_between_the_renames_is_mended(tmp_path):
    """Killed after the old folder was moved aside: the next check brings it back, the next run replaces it."""
    folder, aside = tmp_path / "out", tmp_path / "out.old.partial"
    write_whole(folder, KIND, lambda target: fill(target, "old"))
    folder.rename(aside)
    check_target(folder, KIND)
    assert (folder / "a.csv").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    folder.rename(aside)
    write_whole(folder, KIND, fill)
    assert (folder / "a.csv").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_kill_after_the_renames_is_mended(tmp_path):
    """Killed before the replaced folder was deleted: the new one stays, the old one goes."""
    folder, aside = tmp_path / "out", tmp_path / "out.old.partial"
    write_whole(aside, KIND, lambda target: fill(target, "old"))
    write_whole(folder, KIND, fill)
    assert (folder / "a.csv").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_foreign_folder_under_the_name_of_ours_moved_aside_is_left_alone(tmp_path):
    """Only what an earlier run of ours moved aside is brought back or dropped, not what somebody keeps there."""
    for ours in (False, True):
        base = tmp_path / str(ours)
        (base / "out.old.partial").mkdir(parents=True)
        (base / "out.old.partial" / "thesis.tex").write_text("precious")
        try:
            if ours:
                write_whole(base / "out", KIND, fill)
            else:
                check_target(base / "out", KIND)
        except InputError:
            pass
        assert content(base / "out.old.partial") == {"thesis.tex": "precious"}


#: Writes the same folder again and again, and says what went wrong.
AGAIN = """
import sys
from pathlib import Path
from lbopt.report.folder import check_target, write_whole
def fill(target):
    (target / "a.csv").write_text(sys.argv[2])
    return {"who": sys.argv[2]}
for _ in range(40):
    check_target(Path(sys.argv[1]), "lbopt-gap")
    write_whole(Path(sys.argv[1]), "lbopt-gap", fill)
"""


def test_two_runs_that_end_at_the_same_moment_both_write(tmp_path):
    """The later folder takes the place of the earlier; neither run loses its results to the other's renames."""
    folder = tmp_path / "out"
    several = [
        subprocess.Popen([sys.executable, "-c", AGAIN, folder, who], stderr=subprocess.PIPE, text=True) for who in "ab"
    ]
    for process in several:
        assert process.communicate(timeout=60)[1] == ""
    assert json.loads((folder / MARK).read_text())["who"] == (folder / "a.csv").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_json_has_null_for_what_is_not_known(tmp_path):
    """NaN anywhere inside becomes null; Infinity, which is nothing we ever write, is refused."""
    nan = float("nan")
    write_json(tmp_path / "x.json", {"a": nan, "b": [1.5, nan, (nan,)], "c": {"d": nan, "e": None}, "f": 0})
    known = {"a": None, "b": [1.5, None, [None]], "c": {"d": None, "e": None}, "f": 0}
    assert json.loads((tmp_path / "x.json").read_text()) == known
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "y.json", {"a": float("inf")})


def test_missing_numbers_are_empty_cells(tmp_path):
    """None and NaN are empty in CSV; everything else keeps full precision."""
    write_csv(tmp_path / "t.csv", [{"a": 0.1 + 0.2, "b": None}, {"a": float("nan"), "b": "x,y"}])
    assert (tmp_path / "t.csv").read_text().splitlines() == ["a,b", "0.30000000000000004,", ',"x,y"']


def test_a_file_system_that_refuses_is_found_before_the_work(tmp_path, monkeypatch):
    """Permissions allow it, and making a folder fails all the same."""

    def refuse(self, *_arguments, **_options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match=r"'.*out' cannot be made: Read-only file system"):
        check_target(tmp_path / "out", KIND)
