"""Rules that give the requests of a batch to the units of an instance, and the text ``name:option=value`` for one.

What they do is in `kernels.prefill.allocation`; `place` has one do it with a batch, and `pbaa` is Algorithm 2 of
staggered batch scheduling (arXiv 2512.16134) on arrays, the rule that simulations run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import Bools, Ints, Record, record
from lbopt.kernels.prefill import codes
from lbopt.kernels.prefill.allocation import RULE, Batch
from lbopt.model.integers import boolean_array, integer_array
from lbopt.prefill.requests import MOST_TOKENS, checked_lengths, refuse_longer
from lbopt.spec import options_of, unknown


@dataclass(frozen=True, slots=True)
class Allocation:
    """A rule as the compiled loop takes it.

    Parameters
    ----------
    name
        What to call it in tables.
    code
        See `kernels.prefill.codes`.
    parameters
        By name, see `kernels.prefill.batch.RULE`.
    """

    name: str
    code: int
    parameters: dict[str, int] = field(default_factory=dict)
    record: Record = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rule = record(RULE)
        for name, value in {"code": self.code, **self.parameters}.items():
            setattr(rule, name, value)
        object.__setattr__(self, "record", rule)

    @property
    def chooses(self) -> bool:
        """Whether the rule is shown the whole queue and may keep or refuse."""
        return self.code in (codes.PBAA, codes.BACKFILL)


def round_robin() -> Allocation:
    """Give requests to the units in turn."""
    return Allocation("round-robin", codes.IN_TURN)


def least_loaded() -> Allocation:
    """Give each request to the unit with the fewest tokens sent and not computed."""
    return Allocation("least-loaded", codes.LEAST_LOADED)


def longest_first() -> Allocation:
    """Do the same, the longest prompt of the batch first."""
    return Allocation("longest-first", codes.LONGEST_FIRST)


def pbaa_rule(
    printed: bool = False, cache: bool = False, n_limit: int | None = None, whole: bool = False
) -> Allocation:
    """Follow Algorithm 2 of SBS (arXiv 2512.16134), for policies that hold requests back.

    Parameters
    ----------
    printed
        Take the rule as printed: with a cache, a unit without headroom can be chosen, and the request is then kept
        although another unit has room. The mended rule chooses among units with headroom.
    n_limit
        A request that was kept more often is refused, >= 0; None = never. The source gives no value.
    whole
        Keep what would exceed the chunk of a unit that is not empty; not in the source, which admits a request of any
        length on any headroom.
    """
    if n_limit is not None and not 0 <= n_limit < 2**50:
        raise InputError(
            f"allocation 'pbaa': n_limit is {n_limit}; expected 0 or more dispatches, or none for no limit"
        )
    flags = {"printed": printed, "cache": cache, "whole": whole}
    changed = [f"{option}=yes" for option, value in flags.items() if value]
    changed += [] if n_limit is None else [f"n_limit={n_limit}"]
    return Allocation(
        ":".join(["pbaa", *([",".join(changed)] if changed else [])]),
        codes.PBAA,
        {
            "printed": int(printed),
            "cache": int(cache),
            "limit": -1 if n_limit is None else n_limit,
            "whole": int(whole),
        },
    )


def backfill(split: float = 0.5) -> Allocation:
    """Give the oldest that fit into a pass to the units, the longest first, and then who is short enough for the rest.

    Parameters
    ----------
    split
        Passes that the kept requests have to fill before some of them are computed in parts, >= 0.
    """
    if not 0 <= split <= 1e6:
        raise InputError(f"allocation 'backfill': split is {split}; expected 0 to 1e6 passes")
    name = "backfill" if split == 0.5 else f"backfill:split={split:g}"
    return Allocation(name, codes.BACKFILL, {"split": round(100 * split)})


ALLOCATIONS: dict[str, Callable[..., Allocation]] = {
    "round-robin": round_robin,
    "least-loaded": least_loaded,
    "longest-first": longest_first,
    "pbaa": pbaa_rule,
    "backfill": backfill,
}


def make_allocation(spec: str) -> Allocation:
    """Build the rule that `spec` names: a name from `ALLOCATIONS`, with options as ``name:option=value``."""
    name, _, rest = spec.partition(":")
    if name not in ALLOCATIONS:
        raise unknown("allocation", name, ALLOCATIONS)
    factory = ALLOCATIONS[name]
    return factory(**options_of("allocation", name, rest, factory))


def place(
    rule: Allocation,
    load: Ints,
    length: Ints,
    chunk: int,
    hits: Ints | None = None,
    deferred: Ints | Bools | None = None,
    turn: int = 0,
    tops_up: bool = False,
) -> Ints:
    """Return the unit of each request of one batch, KEEP or REFUSE, int64 (n,).

    Parameters
    ----------
    load
        int64 (D,), tokens that each unit has to compute; changed in place.
    length, hits, deferred
        (n,), (n, D), (n,): tokens of the prompts, the oldest first, those cached on each unit, and how often each
        request was kept; None = nothing is cached, none was kept.
    chunk
        Most tokens of a unit in a pass.
    turn
        Requests that the instance was sent before, where round-robin stands.
    tops_up
        Whether the pass that this is for has got a batch before.
    """
    from lbopt.kernels.prefill.allocation import allocate

    n = length.size
    unit, key = np.full((2, n), codes.KEEP, dtype=np.int64)
    cached = np.zeros((0, 0, 0), dtype=np.int64) if hits is None else hits[:, None, :].copy()
    kept = np.zeros(n, dtype=np.int64) if deferred is None else deferred.astype(np.int64)
    batch = Batch(rule.record, length.copy(), cached, kept, np.arange(n), key, unit)
    allocate(batch, n, 0, turn, chunk, tops_up, load)
    return unit


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
    prompts = checked_lengths(length)
    D, n = room.size, prompts.size
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
    refuse_longer(checked, length)
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
