"""Where kernels are kept if the user's cache folder cannot be written: in a temporary folder of the user's own.

Without any folder each process would compile anew, and so would each process of an engine. What lies there is loaded as
code, so the folder must belong to the user, and no other user may write into it.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from pathlib import Path

from lbopt.kernels.cache_root import cache_root


def provide_caches() -> None:
    """Name a folder that can be written to this process and those that it starts, where theirs cannot.

    One sentence says so when a kernel is compiled, and not before: most verbs need none. Matplotlib's folder, which
    lies in the same home, goes along.
    """
    wanted = cache_root()
    if not hasattr(os, "getuid") or _can_be_written(wanted):
        return
    place = _own_temporary_folder()
    what = f"kernels cannot be kept in '{wanted}'"
    if place is None:
        _say_when_compiling(f"{what}, nor in '{tempfile.gettempdir()}'; name a folder by LBOPT_CACHE")
        return
    _say_when_compiling(f"{what}, so '{place}' takes its place; LBOPT_CACHE names another folder")
    os.environ["NUMBA_CACHE_DIR"] = str(place / "kernels")
    if not os.environ.get("MPLCONFIGDIR") and not _can_be_written(Path.home() / ".config"):
        os.environ["MPLCONFIGDIR"] = str(place / "matplotlib")


def _can_be_written(folder: Path) -> bool:
    """Tell whether a folder can be made and written, without making it."""
    try:
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    except OSError:
        return False


def _own_temporary_folder() -> Path | None:
    """Return a folder of this user in the system's folder for temporary files, the same one in each run."""
    place = Path(tempfile.gettempdir()) / f"lbopt-{os.getuid()}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        about = place.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022
    return place if ours and _can_be_written(place) else None


class _Sentence(logging.Handler):
    """Says a sentence once, before the first message about kernels."""

    def __init__(self, sentence: str) -> None:
        super().__init__(logging.INFO)
        self.sentence = sentence

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        logging.getLogger("lbopt.kernels").removeHandler(self)
        logging.getLogger("lbopt.cli").warning(self.sentence)


def _say_when_compiling(sentence: str) -> None:
    logging.getLogger("lbopt.kernels").addHandler(_Sentence(sentence))
