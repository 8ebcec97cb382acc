"""The one decorator for compiled code; `machine_code` says how it is compiled and where its cache lives.

Under ``NUMBA_DISABLE_JIT=1`` a kernel is the function that it was, and Numba, which takes a second and 100 MB to load,
is not imported. A router of few workers sets that for itself: its arrays are so small that Python is as quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on first call, and keep the machine code for the next process."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return function
    from lbopt.kernels.machine_code import compiled

    return compiled(function)
