"""Kernels as other kernels call them: LLVM code that becomes machine code in the kernel that Python calls.

Numba optimises and emits every function together with everything below it, so a function four calls deep is compiled
five times, and each gets a wrapper that unpacks Python objects. Between kernels neither is needed: here a function
ends as unoptimised LLVM code without wrappers, and the outermost kernel, into which all of it is linked, is optimised
as a whole and once. The first use of the exact search compiles in less than half the time, and runs as fast.

This uses parts of Numba that its documentation does not promise; ``tests/kernels/test_compile_cache.py`` would notice.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import NativeLowering


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
        """Return null: nobody calls it from outside."""
        self._ensure_finalized()
        return 0


@register_pass(mutates_CFG=False, analysis_only=True)
class _IntoUnloaded(LoweringPass):
    """Lower into such a library."""

    _name = "into_unloaded_library"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = _Unloaded(state.targetctx.codegen(), state.func_id.func_qualname)
        return True


class _InnerCompiler(CompilerBase):
    """Numba's own pipeline, with the pass above before the lowering."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        lowering = next(i for i, (step, _) in enumerate(pipeline.passes) if step is NativeLowering)
        pipeline.passes.insert(lowering, (_IntoUnloaded, "lower into a library that is not loaded"))
        pipeline.finalize()
        return [pipeline]


def as_inner(dispatcher: Any) -> Any:
    """Return `dispatcher`, which kernels that call it see as an inner function from now on.

    Literal types are forgotten in calls between kernels: f(0) and f(1) would each compile a version of f and below.
    """
    if not hasattr(dispatcher, "get_call_template"):  # NUMBA_DISABLE_JIT gives the plain function back
        return dispatcher
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    inner = numba.njit(nogil=True, pipeline_class=_InnerCompiler, **options)(dispatcher.py_func)
    unliteral: Any = numba.types.unliteral

    def without_literals(arguments: Any, keywords: Any) -> Any:
        plain = tuple(map(unliteral, arguments))
        return inner.get_call_template(plain, {name: unliteral(kind) for name, kind in keywords.items()})

    dispatcher.get_call_template = without_literals
    dispatcher.get_overload = inner.get_overload
    return dispatcher
