"""What Numba does differently while a kernel is compiled; a third of the time of compiling goes into these four.

- A call of the same function with the same types has the signature that it had: Numba tries all templates anew at
  each `+`.
- Flags are compared by what is set; Numba builds a dictionary of all flags, and does so for each template.
- A refusal to assign an array to a slice of another shape names no shapes: Numba compiles texts for that.
- Python's collector of cycles waits: it would walk the compiler's graphs over and over.

Each gives the answers of what it replaces. All uses parts of Numba that its documentation does not promise;
``tests/kernels/test_compile_cache.py`` would notice.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.types.functions import BaseFunction
from numba.extending import overload
from numba.np import arrayobj


@contextmanager
def quickly() -> Iterator[None]:
    """Compile with these four; the compiler's lock is held, so that no other thread compiles meanwhile."""
    with ExitStack() as stack:
        for holder, name, other in (
            (BaseFunction, "get_call_type", _remembering(BaseFunction.get_call_type)),
            (TargetConfig, "__eq__", _equal),
            (TargetConfig, "__hash__", _hash),
            (arrayobj, "raise_with_shape_context", _refuse_shapes),
        ):
            stack.callback(setattr, holder, name, getattr(holder, name))
            setattr(holder, name, other)
        if gc.isenabled():
            gc.disable()
            stack.callback(gc.enable)
        yield


def _remembering(choose: Any) -> Any:
    """Return `BaseFunction.get_call_type` with a memory of what it chose."""
    chosen: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return choose(self, context, args, kws)
        call = self, args, ConfigStack.top_or_none()
        signature = chosen.get(call)
        if signature is None:
            signature = chosen[call] = choose(self, context, args, kws)
        return signature

    return get_call_type


def _equal(self: Any, other: Any) -> Any:
    if not isinstance(other, TargetConfig):
        return NotImplemented
    return self is other or self._values == other._values or self.values() == other.values()


def _hash(self: Any) -> int:
    return hash(type(self))  # Numba's own is of the names of all flags, which the class has


def _refuse_shapes(source: Any, target: Any) -> None:
    """Refuse to assign an array to a slice of another shape."""


@overload(_refuse_shapes)
def _refuse_shapes_compiled(source: Any, target: Any) -> Any:
    def refuse(source: Any, target: Any) -> None:
        raise ValueError("an array was assigned to a slice of another shape")

    return refuse
