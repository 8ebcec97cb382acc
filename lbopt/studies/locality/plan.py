"""Which runs each item of the study needs; runs that two items share are made once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from lbopt.studies.locality.laws import GRID, with_constants

#: Decode workers of the published runs, and the middle one of the published rates.
WORKERS, RATE = 16, 60.0
POOLS = (8, 16, 24)
WIDTHS = (0.0, 0.05, 0.1, 0.2, 0.3, 1.0)

#: Rules that balance load alone; the best of them is what the source compares with.
BALANCERS = ("round-robin", "random", "power-of-two", "jsq")
ROUTERS = (*BALANCERS, "domain", "eldr")

#: Beside Qwen3-30B-A3B, on as many decoders.
OTHER_MODELS = ("gpt-oss", "gemma")

#: Qwen3-235B-A22B: instances of four GPUs that decode, and requests a second, of which the source prints both ends.
LARGE_WORKERS, LARGE_RATES = 8, (24.0, 40.0, 56.0)

#: Requests a second of the runs with and without prefix cache. With it, prompts that come again and again are there.
CACHE_RATE = 100.0
CACHE_LAWS = {"on": "gpt-oss", "off": "gpt-oss+prefill"}

#: The assumed constants, which come first, and all pairs over their plausible ranges.
CONSTANTS = ("", *(with_constants(*pair) for pair in GRID))

#: Each decoder at its own pace, as in the source, or all waiting for the slowest in every step.
FLEETS = ("decoders", "barrier")


@dataclass(frozen=True, slots=True, order=True)
class PlannedRun:
    """One simulation: `policy` is a name as `cell.router` reads it, `law` one as `laws.law_of` does."""

    fleet: str
    workers: int
    rate: float
    policy: str
    law: str = ""

    @property
    def key(self) -> str:
        """The run as text, which answers are filed under."""
        short = f"{self.rate:g}"  # six digits; another rate must not be filed under it
        rate = short if float(short) == self.rate else repr(self.rate)
        return f"{self.fleet} {self.workers} {rate} {self.policy} {self.law}".rstrip()

    @classmethod
    def of_key(cls, key: str) -> PlannedRun:
        """Read what `key` wrote."""
        fleet, workers, rate, policy, *law = key.split(" ")
        return cls(fleet, int(workers), float(rate), policy, *law)


def eldr_at(width: float, clusters: str = "balanced", transform: str = "count-idf") -> str:
    """Return the name of eldr with a band of this width."""
    changed = [f"tau={width:g}"] if width != 0.1 else []
    changed += [f"clusters={clusters}"] if clusters != "balanced" else []
    changed += [f"transform={transform}"] if transform != "count-idf" else []
    return ":".join(["eldr", *([",".join(changed)] if changed else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The runs of an item: every rule on every fleet, at every rate, under every law.

    Parameters
    ----------
    rates
        Requests a second; none for those of the study.
    """

    policies: tuple[str, ...]
    fleet: str = "decoders"
    workers: tuple[int, ...] = (WORKERS,)
    rates: tuple[float, ...] = ()
    laws: tuple[str, ...] = ("",)

    def runs(self, rates: tuple[float, ...]) -> Iterator[PlannedRun]:
        """Return the runs of a study at these rates."""
        for workers, rate, policy, law in product(self.workers, self.rates or rates, self.policies, self.laws):
            yield PlannedRun(self.fleet, workers, rate, policy, law)


_PAIR, _AGAINST_ALL = ("round-robin", "eldr"), (*BALANCERS, "eldr")
_OF_BAND = ("round-robin", "jsq", *(eldr_at(width) for width in WIDTHS))
_OF_CLUSTERS = (eldr_at(width, kind) for width in (0.0, 0.1) for kind in ("balanced", "vanilla"))
_OF_SIGNATURES = ("round-robin", eldr_at(0.1), eldr_at(0.1, transform="gate-prob"))

#: What can be asked for, and what it runs.
ITEMS = {
    "signatures": Sweep(policies=_OF_SIGNATURES, rates=(RATE,)),
    "routers": Sweep(policies=ROUTERS),
    "band": Sweep(policies=_OF_BAND, rates=(RATE,)),
    "clusters": Sweep(policies=("round-robin", *_OF_CLUSTERS), rates=(RATE,)),
    "pool": Sweep(policies=_PAIR, workers=POOLS),
    "barrier": Sweep(policies=_OF_BAND, fleet="barrier", rates=(RATE,)),
    "first-token": Sweep(policies=ROUTERS),
    "cache": Sweep(policies=_PAIR, rates=(CACHE_RATE,), laws=tuple(CACHE_LAWS.values())),
    "models": Sweep(policies=_AGAINST_ALL, laws=OTHER_MODELS),
    "large": Sweep(policies=_PAIR, workers=(LARGE_WORKERS,), rates=LARGE_RATES, laws=("qwen-235b",)),
    "constants": Sweep(policies=_AGAINST_ALL, laws=CONSTANTS),
}

#: What runs where nothing is asked for.
USUAL_ITEMS = ("signatures", "routers", "band", "clusters", "pool", "barrier")


def plan_of(items: Iterable[str], rates: tuple[float, ...], laws: tuple[str, ...] = ()) -> tuple[PlannedRun, ...]:
    """Return the runs of the items and of more laws, each once; those of one fleet and rate follow each other."""
    sweeps = [*(ITEMS[item] for item in items), Sweep(policies=_AGAINST_ALL, laws=laws)]
    return tuple(sorted({run for sweep in sweeps for run in sweep.runs(rates)}))
