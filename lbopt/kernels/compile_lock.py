"""One process at a time compiles a kernel into the shared cache; the others wait and load what it made.

Numba chooses the name of a cache entry by reading the kernel's index and writes the index and the entry in two steps.
Two processes that compile one kernel for different types at the same time can choose the same name, and then the index
of one names the machine code of the other. Two that compile it for the same types do the same work twice.

The lock is an advisory lock of the operating system on an empty file in the cache folder, one for each kernel. The
system releases it when the process ends, however it ends. Where there is no such lock (Windows, some network file
systems) kernels compile as Numba alone would have it: warm the cache in one process before several start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock

from lbopt.compile_time import preparing

if sys.platform != "win32":
    import fcntl


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on `path` where the system has one."""
    if sys.platform == "win32":
        yield
        return
    try:
        stream = path.open("a")
    except OSError:
        yield
        return
    with stream:
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def one_compiler(dispatcher: Any, folder: Path) -> Any:
    """Return `dispatcher`, which compiles or loads from the cache in `folder` under its lock from now on.

    Numba's own lock between threads is taken first. Kernels call each other without cycles, so processes that hold one
    kernel's lock while they wait for another's cannot wait for each other.
    """
    if not hasattr(dispatcher, "compile"):  # NUMBA_DISABLE_JIT gives the plain function back
        return dispatcher
    function, compiled = dispatcher.py_func, dispatcher.compile
    path = folder / f"{function.__module__}.{function.__qualname__}.lock"
    held = False

    def one_at_a_time(signature: Any) -> Any:
        nonlocal held
        with global_compiler_lock:
            if held:  # compiling a kernel asks for itself
                return compiled(signature)
            with preparing(), locked(path):
                held = True
                try:
                    return compiled(signature)
                finally:
                    held = False

    dispatcher.compile = one_at_a_time
    return dispatcher
