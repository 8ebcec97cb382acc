"""The one decorator for compiled code, and where its cache lives.

A kernel is compiled in full, and kept, where Python calls it; between kernels it is an `inner` function.

Flags, with their reasons: ``nogil`` so that several simulations can run in threads; no ``fastmath``, because sums
must not depend on how a compiler reorders them; no ``parallel``, because lbopt parallelises by process.

Cache: Numba looks only at the file of the cached function, so a change in a *callee* in another file goes unseen
(numba#3588). Therefore the cache folder is named after a hash of all kernel sources: any edit anywhere makes a
new, empty folder. ``NUMBA_CACHE_DIR`` or ``LBOPT_CACHE`` moves it; where nothing can be written, kernels compile anew.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import platformdirs

from lbopt.kernels.compile_lock import one_compiler
from lbopt.kernels.inner import as_inner

Function = TypeVar("Function", bound=Callable[..., Any])

#: The wrapper for callers in C would be compiled for nobody.
_FLAGS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}


@cache
def source_hash() -> str:
    """SHA-256 over the names and texts of all kernel sources, shortened to 16 hex digits."""
    sha = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        sha.update(str(path.relative_to(root)).encode())
        sha.update(path.read_bytes())
    return sha.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """Return the writable folder for compiled kernels of exactly these sources, or None where there is none."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        root = Path(os.environ["NUMBA_CACHE_DIR"])
    elif os.environ.get("LBOPT_CACHE"):
        root = Path(os.environ["LBOPT_CACHE"]) / "kernels"
    else:
        root = Path(platformdirs.user_cache_dir("lbopt")) / "kernels"
    folder = root / source_hash()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def kernel(function: Function) -> Function:
    """Compile `function` on first call, and keep the machine code for the next process."""
    folder = cache_folder()
    if folder is None:
        return cast("Function", as_inner(numba.njit(**_FLAGS)(function)))
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(folder)  # read once, while the decorator runs
    try:
        return cast("Function", as_inner(one_compiler(numba.njit(cache=True, **_FLAGS)(function), folder)))
    finally:
        settings.CACHE_DIR = before
