"""Whether something fits, asked before it begins: a run should not fail for lack of memory after an hour."""

from __future__ import annotations

import os

from lbopt.exceptions import InputError


def require_memory(needed: int, what: str, instead: str = "fewer workers or slots") -> None:
    """Refuse, before it begins, what needs more bytes than the machine has; `instead` is what to take."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return
    if needed > there:
        raise InputError(
            f"{what} needs {needed / 2**30:.1f} GiB of memory, and this machine has {there / 2**30:.1f} GiB; "
            f"take {instead}"
        )
