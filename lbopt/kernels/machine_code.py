"""How kernels are compiled, and where their cache lives.

A kernel is compiled in full, and kept, where Python calls it; between kernels it is an `inner` function.

Flags, with their reasons: ``nogil`` so that several simulations can run in threads; no ``fastmath``, because sums
must not depend on how a compiler reorders them; no ``parallel``, because lbopt parallelises by process.

Cache: Numba looks only at the file of the cached function, so a change in a *callee* in another file goes unseen
(numba#3588). Therefore the kernels of a file are kept in a folder named after a hash of that file and of all kernel
files that it imports, directly or not: an edit of any of them makes a new, empty folder, and leaves the kernels of
other files alone. The folder serves every copy of these sources, wherever it lies (`_Shared`). ``NUMBA_CACHE_DIR``
or ``LBOPT_CACHE`` moves it; where nothing can be written, kernels compile anew.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.sigutils import normalize_signature
from numba.core.types import BaseNamedTuple, BaseTuple

from lbopt.compile_progress import Compiling
from lbopt.compile_time import preparing
from lbopt.kernels.cache_root import cache_root
from lbopt.kernels.compile_lock import one_compiler
from lbopt.kernels.inner import KernelCompiler, as_inner

Function = TypeVar("Function", bound=Callable[..., Any])

#: The wrapper for callers in C would be compiled for nobody.
_FLAGS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}


_HERE = Path(__file__).parent
_IMPORT = re.compile(rb"^[ \t]*from[ \t]+lbopt\.kernels\b([.\w]*)[ \t]+import\b", re.MULTILINE)


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Kernel files that a file imports by ``from lbopt.kernels.… import``; of a package, all its files."""
    found: set[Path] = set()
    for dotted in _IMPORT.findall(_text(path)):
        place = _HERE.joinpath(*dotted.decode().split("."))
        found.update(place.glob("*.py") if place.is_dir() else [place.with_suffix(".py")])
    return frozenset(found)


@cache
def source_hash(module: str) -> str:
    """SHA-256 of Numba's version and of the sources on which the kernels of `module` depend, in 16 hex digits.

    `module` is the dotted name of a file of kernels.
    """
    first = _HERE.joinpath(*module.split(".")[2:]).with_suffix(".py")
    reached, ahead = {first}, [first]
    while ahead:
        new = _imports(ahead.pop()) - reached
        reached |= new
        ahead += new
    sha = hashlib.sha256(f"numba {numba.__version__} ".encode())
    for path in sorted(reached):
        sha.update(str(path.relative_to(_HERE)).encode() + _text(path))
    return sha.hexdigest()[:16]


@cache
def cache_folder(module: str) -> Path | None:
    """Return the writable folder for compiled kernels of exactly these sources, or None where there is none."""
    folder = cache_root() / module / source_hash(module)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


class _Place:
    """Where the compiled code of a kernel lies: by module and line, not by the path of this copy of the sources."""

    def __init__(self, function: Any) -> None:
        folder = cache_folder(function.__module__)
        assert folder is not None, "without a folder nothing is kept"
        self._path = folder
        self._stamp = source_hash(function.__module__)
        self._line = function.__code__.co_firstlineno
        self._py_file = __file__  # named in Numba's warnings

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Place:
        """Return the place; `file` is where Numba found the function."""
        return cls(function)

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder is there."""

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Return what stands for the sources."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in a module apart."""
        return str(self._line)


class _SharedEntries(CompileResultCacheImpl):
    _locator_classes = cast("Any", [_Place])


class _Shared(FunctionCache):
    """Numba's cache of one function, for all copies of these sources: Numba's own asks for the path and the file."""

    _impl_class = _SharedEntries

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Name the types by text and by the sources of their classes, which the kernel's own file need not import.

        Numba's own key holds the classes themselves: an index could not be read once a class is gone, and one whose
        fields have changed would be taken for the old one.
        """
        arguments: Any = normalize_signature
        own: Any = super()
        kinds, _ = arguments(sig)
        classes = sorted({f"{one.__module__}.{one.__qualname__} {_sources(one)}" for one in _classes(kinds)})
        return (str(kinds), *classes, *own._index_key(sig, codegen)[1:])


def _classes(kinds: Iterable[Any]) -> Iterator[type]:
    """Classes of the named tuples among types, and within them."""
    for kind in kinds:
        if issubclass(type(kind), BaseNamedTuple):
            yield kind.instance_class
        if issubclass(type(kind), BaseTuple):
            yield from _classes(kind)


def _sources(record: type) -> str:
    return source_hash(record.__module__) if record.__module__.startswith(f"{__package__}.") else ""


class _Listener(event.Listener):
    """Counts the time in which kernels are compiled, and has it shown."""

    def __init__(self) -> None:
        self._within: list[Any] = []
        self._shown: Compiling | None = None
        self._done: set[Any] = set()

    def on_start(self, event: Any) -> None:
        """A function is compiled."""
        clock = preparing()
        clock.__enter__()
        if not self._within:
            self._shown = Compiling(event.data["dispatcher"].py_func, self._done)
        self._within.append(clock)

    def on_end(self, event: Any) -> None:
        """It is compiled."""
        if self._shown is not None:
            self._shown.compiled(event.data["dispatcher"].py_func)
        self._within.pop().__exit__(None, None, None)
        if not self._within and self._shown is not None:
            self._shown.over()
            self._shown = None


_register: Any = event.register
_register("numba:compile", _Listener())


def compiled(function: Function) -> Function:
    """Return `function` such that its first call compiles it, or finds what an earlier process compiled.

    A function from outside `lbopt.kernels` (a test's) is compiled anew in each process.
    """
    module = str(function.__module__)
    folder = cache_folder(module) if module.startswith(f"{__package__}.") else None
    dispatcher: Any = numba.njit(**_FLAGS)(function)
    if folder is None or not hasattr(dispatcher, "enable_caching"):  # NUMBA_DISABLE_JIT gives the plain function back
        return cast("Function", as_inner(dispatcher))
    shared: Any = _Shared
    dispatcher._cache = shared(function)
    return cast("Function", as_inner(one_compiler(dispatcher, folder)))
