"""What is compiled below a kernel: LLVM code that becomes machine code in the kernel that Python calls.

Numba optimises and emits every function together with everything below it, so a function four calls deep is compiled
five times, and each gets a wrapper that unpacks Python objects. Below a kernel neither is needed: here kernels that it
calls, and Numba's own functions, end as unoptimised LLVM code, and the outermost kernel, into which all of it is
linked, is optimised as a whole and once. The first use of the exact search compiles in less than half the time, and
runs as fast.

This uses parts of Numba that its documentation does not promise; ``tests/kernels/test_compile_cache.py`` would notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.targetconfig import ConfigStack

from lbopt.kernels.while_compiling import quickly


class _WithoutEnvironments:
    """A code generator that is asked for everything but environments: code that is not loaded has none to set."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class _Unloaded(JITCodeLibrary):
    """A library that others can link, and that is neither optimised nor emitted by itself."""

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironments(self._codegen)

    def _optimize_final_module(self) -> None:
        """Leave it to the library that this one is linked into."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return null: nothing calls it from outside."""
        self._ensure_finalized()
        return 0


@contextmanager
def _whole(codegen: Any) -> Iterator[None]:
    """Have all that is compiled within, and that Python does not call, end unloaded."""

    def create_library(name: str) -> JITCodeLibrary:
        called_by_python = not ConfigStack().top().no_cpython_wrapper
        return (JITCodeLibrary if called_by_python else _Unloaded)(codegen, name)

    codegen.create_library = create_library
    try:
        yield
    finally:
        del codegen.create_library


class KernelCompiler(Compiler):
    """Numba's own pipeline for a kernel that Python calls, with all that is below it."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function."""
        with quickly(), _whole(self.state.targetctx.codegen()):
            return super().compile_extra(func)


def as_inner(dispatcher: Any) -> Any:
    """Return `dispatcher`, which kernels that call it see as an inner function from now on.

    Literal types are forgotten in calls between kernels: f(0) and f(1) would each compile a version of f and below.
    """
    if not hasattr(dispatcher, "get_call_template"):  # NUMBA_DISABLE_JIT gives the plain function back
        return dispatcher
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    inner = numba.njit(nogil=True, **options)(dispatcher.py_func)
    unliteral: Any = numba.types.unliteral

    def without_literals(arguments: Any, keywords: Any) -> Any:
        plain = tuple(map(unliteral, arguments))
        return inner.get_call_template(plain, {name: unliteral(kind) for name, kind in keywords.items()})

    dispatcher.get_call_template = without_literals
    dispatcher.get_overload = inner.get_overload
    return dispatcher
