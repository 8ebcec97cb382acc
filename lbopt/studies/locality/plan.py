"""Which runs each item of the study needs; runs that two items share are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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


def _routers(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    return (PlannedRun("decoders", WORKERS, rate, policy) for rate in rates for policy in ROUTERS)


def _band(rates: tuple[float, ...], fleet: str = "decoders") -> Iterable[PlannedRun]:
    policies = ("round-robin", "jsq", *(eldr_at(width) for width in WIDTHS))
    return (PlannedRun(fleet, WORKERS, RATE, policy) for policy in policies)


def _clusters(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    names = (eldr_at(width, kind) for width in (0.0, 0.1) for kind in ("balanced", "vanilla"))
    return (PlannedRun("decoders", WORKERS, RATE, policy) for policy in ("round-robin", *names))


def _pool(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    return (
        PlannedRun("decoders", pool, rate, policy)
        for pool in POOLS
        for rate in rates
        for policy in ("round-robin", "eldr")
    )


def _signatures(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    names = ("round-robin", eldr_at(0.1), eldr_at(0.1, transform="gate-prob"))
    return (PlannedRun("decoders", WORKERS, RATE, policy) for policy in names)


def _barrier(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    return _band(rates, "barrier")


def _constants(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    laws = ("", *(with_constants(*pair) for pair in GRID))
    return (
        PlannedRun("decoders", WORKERS, rate, policy, law)
        for law in laws
        for rate in rates
        for policy in (*BALANCERS, "eldr")
    )


def _models(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    return (
        PlannedRun("decoders", WORKERS, rate, policy, law)
        for law in OTHER_MODELS
        for rate in rates
        for policy in (*BALANCERS, "eldr")
    )


def _large(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    return (
        PlannedRun("decoders", LARGE_WORKERS, rate, policy, "qwen-235b")
        for rate in LARGE_RATES
        for policy in ("round-robin", "eldr")
    )


def _cache(rates: tuple[float, ...]) -> Iterable[PlannedRun]:
    return (
        PlannedRun("decoders", WORKERS, CACHE_RATE, policy, law)
        for law in CACHE_LAWS.values()
        for policy in ("round-robin", "eldr")
    )


#: What can be asked for, and what it runs.
ITEMS: dict[str, Callable[[tuple[float, ...]], Iterable[PlannedRun]]] = {
    "signatures": _signatures,
    "routers": _routers,
    "band": _band,
    "clusters": _clusters,
    "pool": _pool,
    "barrier": _barrier,
    "first-token": _routers,
    "cache": _cache,
    "models": _models,
    "large": _large,
    "constants": _constants,
}

#: What runs where nothing is asked for.
USUAL_ITEMS = ("signatures", "routers", "band", "clusters", "pool", "barrier")


def plan_of(items: Iterable[str], rates: tuple[float, ...], laws: tuple[str, ...] = ()) -> tuple[PlannedRun, ...]:
    """Return the runs of the items and of more laws, each once; those of one fleet and rate follow each other."""
    under = (
        PlannedRun("decoders", WORKERS, rate, policy, law)
        for law in laws
        for rate in rates
        for policy in (*BALANCERS, "eldr")
    )
    return tuple(sorted({*(run for item in items for run in ITEMS[item](rates)), *under}))
