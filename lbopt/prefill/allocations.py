"""Rules that give the requests of a batch to the units of an instance, and the text ``name:option=value`` for one.

What they do is in `kernels.prefill.allocation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import Record, record
from lbopt.kernels.prefill import codes
from lbopt.kernels.prefill.state import PARAMETERS
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
        By name, see `kernels.prefill.state.PARAMETERS`.
    """

    name: str
    code: int
    parameters: dict[str, int] = field(default_factory=dict)

    @property
    def chooses(self) -> bool:
        """Whether the rule is shown the whole queue and may keep or refuse."""
        return self.code in (codes.PBAA, codes.BACKFILL)

    def parameter_record(self) -> Record:
        """Return the parameters, `kernels.prefill.state.PARAMETERS`."""
        parameters = record(PARAMETERS)
        for name, value in self.parameters.items():
            setattr(parameters, name, value)
        return parameters


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
    cache
        A request costs what is not cached.
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
