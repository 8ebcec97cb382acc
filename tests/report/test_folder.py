"""A folder of results appears whole or not at all, and never in the place of somebody else's."""

from pathlib import Path

import pytest

from lbopt.exceptions import InputError
from lbopt.report.folder import MARK, check_target, write_csv, write_whole


def fill(target, text="new"):
    (target / "a.csv").write_text(text)
    (target / MARK).write_text('{"format": "lbopt-gap"}')


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_a_folder_is_written_and_replaced(tmp_path):
    """A new folder is made, an earlier one of ours replaced, and nothing is left beside it."""
    folder = tmp_path / "out folder"
    write_whole(folder, fill)
    write_whole(folder, lambda target: fill(target, "newer"))
    assert (folder / "a.csv").read_text() == "newer"
    assert [p.name for p in tmp_path.iterdir()] == ["out folder"]


def test_an_empty_folder_is_taken(tmp_path):
    """An empty folder that exists is as good as none."""
    (tmp_path / "out").mkdir()
    write_whole(tmp_path / "out", fill)
    assert (tmp_path / "out" / MARK).is_file()


@pytest.mark.parametrize("error", [OSError("disk full"), RuntimeError("defect"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", [False, True])
def test_a_failure_in_the_middle_leaves_things_as_they_were(tmp_path, error, before):
    """Whatever happens while files are written, the old folder stays and no half-written one is left."""
    folder = tmp_path / "out"
    if before:
        write_whole(folder, lambda target: fill(target, "old"))

    def breaks(target):
        (target / "a.csv").write_text("half")
        raise error

    with pytest.raises((InputError, RuntimeError, KeyboardInterrupt)):
        write_whole(folder, breaks)
    assert [p.name for p in tmp_path.iterdir()] == (["out"] if before else [])
    if before:
        assert (folder / "a.csv").read_text() == "old"


def test_a_failure_of_the_last_rename_leaves_the_old_folder(tmp_path, monkeypatch):
    """If the new folder cannot be put in place, the old one is there under its name."""
    folder = tmp_path / "out"
    write_whole(folder, lambda target: fill(target, "old"))
    rename = Path.rename

    def no_rename(self, target):
        if self.name == "out.partial":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", no_rename)
    with pytest.raises(InputError, match="cannot write output folder"):
        write_whole(folder, fill)
    assert folder.is_dir()
    assert (folder / "a.csv").read_text() == "old"


def test_a_full_disk_is_one_sentence(tmp_path):
    """An operating-system error becomes an InputError that names folder and reason."""

    def breaks(target):
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"cannot write output folder .*out.*No space left"):
        write_whole(tmp_path / "out", breaks)


def test_targets_that_cannot_be(tmp_path):
    """A file, a folder with other files and a folder without a parent are refused."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        check_target(tmp_path / "file")
    with pytest.raises(InputError, match="holds other files"):
        check_target(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        check_target(tmp_path / "missing" / "out")


def test_the_present_folder_is_refused_or_filled(tmp_path, monkeypatch):
    """`--out .` in an empty folder is either done or refused in words."""
    monkeypatch.chdir(tmp_path)
    try:
        write_whole(Path(), fill)
    except InputError:
        assert list(tmp_path.iterdir()) == []


def test_a_foreign_run_json_does_not_make_a_folder_ours(tmp_path):
    """Many programs write a run.json; a folder with one of them is not replaced, and loses nothing."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / MARK).write_text('{"epochs": 3}')
    (folder / "weights.bin").write_text("precious")
    with pytest.raises(InputError):
        write_whole(folder, fill)
    assert content(folder) == {MARK: '{"epochs": 3}', "weights.bin": "precious"}


def test_missing_numbers_are_empty_cells(tmp_path):
    """None and NaN are empty in CSV; everything else keeps full precision."""
    write_csv(tmp_path / "t.csv", [{"a": 0.1 + 0.2, "b": None}, {"a": float("nan"), "b": "x,y"}])
    assert (tmp_path / "t.csv").read_text().splitlines() == ["a,b", "0.30000000000000004,", ',"x,y"']
