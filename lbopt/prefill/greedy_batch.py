"""PBAA (Algorithm 2 of staggered batch scheduling, arXiv 2512.16134) for one batch, on arrays.

The rule itself is `kernels.prefill.pbaa`, the one that simulations run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model.integers import boolean_array, integer_array
from lbopt.prefill.allocations import pbaa_rule, place
from lbopt.prefill.requests import MOST_TOKENS


def pbaa(
    headroom: Any,
    length: Any,
    hits: Any = None,
    pending: Any = None,
    *,
    printed: bool = False,
    whole: bool = False,
    chunk: int | None = None,
) -> NDArray[np.int64]:
    """Return the unit of each request, -1 where it is kept for the next dispatch; int64 (n,).

    Parameters
    ----------
    headroom
        int (D,), tokens that each unit can still take in its next pass; may be negative.
    length
        int (n,), tokens of the prompts, >= 1, the oldest first.
    hits
        int (n, D), tokens of them that are cached on each unit, at most the length; None for the mode without a cache.
    pending
        bool (n,), left over from earlier dispatches, and so before the others; None where there are none.
    printed, whole
        See `allocations.pbaa_rule`.
    chunk
        Tokens of a unit in a pass, by which `whole` knows an empty unit.
    """
    room = _signed("headroom", headroom)
    prompts = integer_array("length", length, ndim=(1,))
    D, n = room.size, prompts.size
    if (prompts < 1).any():
        raise InputError(f"length[{int(np.argmax(prompts < 1))}] is 0; expected prompts of at least 1 token")
    if float(prompts.sum(dtype=np.float64)) >= MOST_TOKENS:
        raise InputError(f"prompts have {prompts.sum(dtype=np.float64):.3g} tokens in all; expected below 2**50")
    if chunk is not None and not max(1, int(room.max())) <= chunk < MOST_TOKENS:
        raise InputError(
            f"chunk is {chunk} but a unit has headroom {room.max()}; expected at least that, and below 2**50"
        )
    if whole and chunk is None:
        raise InputError("whole=True needs the chunk, by which an empty unit is known; expected chunk=TOKENS")
    rule = pbaa_rule(printed=printed, cache=hits is not None, whole=whole)
    cached = None if hits is None else checked_hits(hits, prompts, D)
    late = None if pending is None else boolean_array("pending", pending, n)
    full = chunk or 0
    return place(rule, full - room, prompts, full, cached, late)


def checked_hits(hits: Any, length: NDArray[np.int64], units: int) -> NDArray[np.int64]:
    """Return hits, int64 (n, D), or say what is wrong with them."""
    checked = integer_array("hits", hits, ndim=(2,))
    if checked.shape != (length.size, units):
        raise InputError(
            f"hits have shape {checked.shape}; expected {(length.size, units)}, a row for each request and a column "
            "for each unit"
        )
    wrong = checked > length[:, None]
    if wrong.any():
        i, d = np.argwhere(wrong)[0]
        raise InputError(
            f"hits[{i}, {d}] is {checked[i, d]}, but the prompt has {length[i]} tokens; expected 0 to its length"
        )
    return checked


def _signed(name: str, values: Any) -> NDArray[np.int64]:
    """Return an int64 copy of integers of either sign below 2**50."""
    given = np.asarray(values)
    if given.size == 0:
        raise InputError(f"{name} has no entries; expected one for each of at least 1 unit")
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(f"{name} is {given.dtype} of shape {given.shape}; expected a row of integers")
    if max(int(given.max()), -int(given.min())) >= MOST_TOKENS:
        raise InputError(f"{name} has entries up to {np.abs(given).max()}; expected below 2**50 tokens")
    return given.astype(np.int64)
