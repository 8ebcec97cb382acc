"""What tells one code of a solver from another: part of every run's key, so that changed code is timed anew."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import lbopt
from lbopt.solvers.registry import OWN, capabilities

#: The rooms whose code makes lbopt's own answers.
_ROOMS = ("kernels", "model", "solvers")


def solver_version(solver: str) -> str:
    """Return version and source hash: of all that makes lbopt's own answers, else of the program and its backend."""
    if solver in OWN:
        return f"lbopt {lbopt.__version__} {source_hash(_ROOMS)}"
    known = capabilities(solver)
    home = known.module.removeprefix("lbopt.").replace(".", "/") + ".py"
    package = f", {known.package} {version(known.package)}" if known.package else ""
    return f"lbopt {lbopt.__version__} {source_hash(('model', home))}{package}"


@cache
def source_hash(places: tuple[str, ...]) -> str:
    """Return 12 hex digits of the SHA-256 over names and texts of the sources in these folders or files of lbopt."""
    root = Path(lbopt.__file__).parent
    sha = hashlib.sha256()
    for place in places:
        for path in sorted((root / place).rglob("*.py")) if (root / place).is_dir() else [root / place]:
            sha.update(path.relative_to(root).as_posix().encode())
            sha.update(path.read_bytes())
    return sha.hexdigest()[:12]
