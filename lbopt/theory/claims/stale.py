"""What sight of some age costs: a floor of every rule, who reaches it, the herd, and power of two choices (lbopt)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lbopt.theory.chains.batch_means import BATCH_SPANS, Average, steps_mean
from lbopt.theory.chains.open_fleet import RULES, OpenFleet
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.normal_maximum import expected_maximum
from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.laws.stale import ReportedFleet
from lbopt.theory.laws.stale_choice import power_of_two
from lbopt.theory.regime import Asks, OpenRegime, at_least, measured_in, one_of, require, require_all

#: By how much the laws may be off: what levelling leaves, what noise adds to a herd, what a mean field leaves out.
LEVEL_TOLERANCE, HERD_TOLERANCE, CHOICE_TOLERANCE = 0.04, 0.03, 0.05

#: The tokens that a window brings to a worker are so many times the noise of a load in it: then a herd stands out.
STANDS_OUT = 3.0

#: Of two sizes the large one has so much of what each worker holds when all hold the same: it fits on one with room.
LARGE_SHARE = 0.6

#: Least E[S] sqrt(lambda p), tokens: below it the growth of loads by the numbers of their requests counts.
GROWTH = 20.0

#: Two sizes of which the large one has nearly all the variance and fits on one worker.
_TWO_SIZES: dict[str, Any] = {"G": 4, "p": 0.2, "period": 5, "arrivals": 400.0, "s_max": 20, "large": 2000}

_NAMES = ("azure-like", "burstgpt-like")
_FAMILY: dict[str, Any] = {"arrivals": 1.0, "period": 50}

_QUICK_FLEETS: tuple[dict[str, Any], ...] = ({}, {"G": 16, "period": 20}, {"period": 6, "arrivals": 40.0})


def imbalance_of(fleet: OpenFleet, rule: str, batches: int, seed: int) -> Average:
    """Return the mean imbalance of a rule, over batches of whole windows that are long against lives.

    Parameters
    ----------
    rule
        A rule of `OpenFleet`.
    """
    length = _batch(fleet, rule)
    return steps_mean(fleet.run(rule, batches * length, seed).imbalance, length)


def _batch(fleet: OpenFleet, rule: str) -> int:
    """Return the steps of a batch: whole windows, long against lives."""
    cycle = fleet.period * (fleet.G if rule == "blind" else 1)
    return math.ceil(BATCH_SPANS * fleet.requests.lives.mean / cycle) * cycle


def _within(mean: Average, law: float, tolerance: float, regime: str, quantity: str, outside: str) -> list[Finding]:
    note = f"{mean.mean / law:.4f} times the law"
    quantity += ", against {:g} times the law"
    return mean.findings(regime, quantity, law, (1 - tolerance, 1 + tolerance), outside=outside, note=note)


@dataclass(frozen=True, kw_only=True)
class RuledFleet(OpenRegime):
    """An open fleet under a rule that is given.

    Parameters
    ----------
    rule
        A rule of `OpenFleet`.
    large
        A second size, tokens, with a fixed share of all tokens; `s_max` is the first. 0 for prompts up to `s_max`.
    """

    rule: str = "counted"
    large: int = 0
    asks: ClassVar[Asks] = {"rule": one_of(RULES, "a rule of")}

    def require(self, claim: str) -> None:
        """Refuse a second size that is not the larger one."""
        super().require(claim)
        if self.large:
            require_all(claim, {"s_max": self.large})
            require(claim, self.large > self.s_max, f"a size above {self.s_max}", f"large is {self.large}")

    @property
    def law(self) -> PromptLaw:
        """The law of the prompts, where no family gives them."""
        if not self.large:
            return super().law
        growth, share = (1 - self.p) / self.p, LARGE_SHARE / self.G
        small = round((1 - share) / share * (self.large + growth) / (self.s_max + growth))
        return PromptLaw((self.s_max, self.large), (small, 1), f"s in {{{self.s_max},{self.large}}}")


@dataclass(frozen=True, kw_only=True)
class LevelledFleet(OpenRegime):
    """An open fleet whose reports are old in some steps."""

    period: int = 20
    asks: ClassVar[Asks] = {"period": at_least(2, "reports that are not of every step")}


@measured_in("stale-floor", RuledFleet)
def measure_floor(at: RuledFleet, seed: int) -> list[Finding]:
    """Hold a rule's imbalance against the floor of its sight."""
    return _floor_row(at, seed, ReportedFleet.floor, "the floor of any rule")


@measured_in("stale-floor-every", RuledFleet)
def measure_every(at: RuledFleet, seed: int) -> list[Finding]:
    """The same against the floor of workers alike."""
    return _floor_row(at, seed, ReportedFleet.alike, "the floor of workers alike")


def _floor_row(at: RuledFleet, seed: int, floor: Callable[[ReportedFleet], float], name: str) -> list[Finding]:
    fleet = at.fleet(seed)
    mean = imbalance_of(fleet, at.rule, at.batches, seed)
    law = floor(ReportedFleet(at.G, fleet.requests.lives, at.arrivals, at.period))
    return [
        mean.finding(
            f"{at}, {at.rule}",
            f"mean imbalance (tokens), against {name}",
            law,
            ">=",
            outside="" if at.period > 1 else "reports of every step: the floor is zero",
            note=f"{mean.mean / law:.3f} times the floor" if law else "",
        )
    ]


@measured_in("stale-floor-alike", RuledFleet)
def measure_alike(at: RuledFleet, seed: int) -> list[Finding]:
    """Hold a rule's imbalance against what the least of its workers' unseen variances leaves, step by step."""
    fleet = at.fleet(seed)
    length = _batch(fleet, at.rule)
    run = fleet.run(at.rule, at.batches * length, seed)
    unseen = ReportedFleet(at.G, fleet.requests.lives, at.arrivals, at.period).unseen
    skew = float(np.mean([each.skewed(at.G) for each in unseen]))
    least = run.doubt.min(axis=1)
    predicted = at.G * (expected_maximum(at.G) * float(np.sqrt(least).mean()) + skew)
    mean, total = steps_mean(run.imbalance, length), float(run.doubt.mean())
    return [
        mean.finding(
            f"{at}, {at.rule}",
            "mean imbalance (tokens), against the floor of the least unseen variance",
            max(0.0, predicted),
            ">=",
            outside="" if at.period > 1 else "reports of every step: the floor is zero",
            note=f"the least unseen variance of a worker is {float(least.mean()) / total:.2g} times the average"
            if total
            else "",
        )
    ]


@measured_in("stale-level", LevelledFleet)
def measure_level(at: LevelledFleet, seed: int) -> list[Finding]:
    """Run the rule that levels what it expects, and hold it against the floor from both sides."""
    fleet = at.fleet(seed)
    lives = fleet.requests.lives
    brought = at.arrivals * float(lives.moments[0, 0])
    doubt = math.sqrt(lives.unseen(at.arrivals, at.period).variance)
    steps = doubt / brought
    outside = ""
    if 10 * steps > at.period:
        outside = f"a report's news takes {steps:.2g} steps of arrivals to level, more than a tenth of T"
    return _within(
        imbalance_of(fleet, "levelled", at.batches, seed),
        ReportedFleet(at.G, lives, at.arrivals, at.period).alike(),
        LEVEL_TOLERANCE,
        str(at),
        "mean imbalance of levelling (tokens)",
        outside,
    )


@measured_in("stale-herd", OpenRegime, without=("family",))
def measure_herd(at: OpenRegime, seed: int) -> list[Finding]:
    """Send each window whole to the worker that the report shows least loaded."""
    fleet = at.fleet(seed)
    lives, window = fleet.requests.lives, at.arrivals * at.period
    step = window * float(lives.moments[0, 0])  # of the ladder
    noise = math.sqrt(2 * window * float(lives.moments[1, 0]))
    turn = at.G * at.period * at.p  # in lives
    outside = ""
    if step < STANDS_OUT * noise:
        outside = f"a step of the ladder is {step / noise:.2g} times the noise of a window, below {STANDS_OUT:g}"
    elif turn > 8:
        outside = f"a worker's turn comes every {turn:.2g} lives: most are empty by then"
    return _within(
        imbalance_of(fleet, "blind", at.batches, seed),
        ReportedFleet(at.G, lives, at.arrivals, at.period).herd(),
        HERD_TOLERANCE,
        str(at),
        "mean imbalance of the herd (tokens)",
        outside,
    )


@measured_in("stale-power-of-two", OpenRegime, without=("family",), G=32, period=4)
def measure_choice(at: OpenRegime, seed: int) -> list[Finding]:
    """Send each arrival to the less loaded of two workers, by the last report."""
    growth = float(at.law.mean) * math.sqrt(at.arrivals * at.p)
    outside = ""
    if growth < GROWTH:
        outside = f"E[S] sqrt(lambda p) = {growth:.3g} tokens is below {GROWTH:g}: numbers of requests count"
    elif at.G < 32:
        outside = f"a fleet of {at.G} workers is not large"
    return _within(
        imbalance_of(at.fleet(seed), "power-of-two", at.batches, seed),
        power_of_two(at.G, at.p, at.law, at.arrivals, at.period),
        CHOICE_TOLERANCE,
        str(at),
        "mean imbalance of power of two (tokens)",
        outside,
    )


CLAIMS = (
    claim(
        "stale-floor",
        measure_floor,
        quick=({"G": 2, "rule": "levelled"}, {}, {"rule": "blind"}, {**_TWO_SIZES, "rule": "segregated"}),
        full=(
            *({"rule": rule, "period": T, "batches": 30} for rule in RULES for T in (2, 10, 40)),
            *({"G": 2, "rule": rule, "arrivals": 40.0, "batches": 60} for rule in ("counted", "levelled")),
            *({"family": name, **_FAMILY, "rule": rule} for name in _NAMES for rule in ("counted", "levelled")),
            *({**_TWO_SIZES, "rule": rule, "arrivals": 800.0, "batches": 60} for rule in ("levelled", "segregated")),
            {**_TWO_SIZES, "G": 2, "rule": "segregated", "batches": 60},
            {**_TWO_SIZES, "G": 3, "rule": "segregated", "arrivals": 800.0, "batches": 60},
            {**_TWO_SIZES, "G": 8, "rule": "segregated"},
        ),
    ),
    claim(
        "stale-floor-alike",
        measure_alike,
        quick=({"rule": "levelled", "arrivals": 40.0}, {"rule": "counted"}),
        full=(
            *({"rule": rule, "arrivals": 40.0, "period": T} for rule in RULES for T in (10, 40)),
            *({**_TWO_SIZES, "rule": rule} for rule in ("levelled", "segregated")),
        ),
    ),
    claim(
        "stale-floor-every",
        measure_every,
        quick=({"rule": "levelled"}, {**_TWO_SIZES, "rule": "segregated"}),
        full=(
            *({**_TWO_SIZES, "rule": rule, "arrivals": 800.0, "batches": 60} for rule in ("levelled", "segregated")),
            {**_TWO_SIZES, "G": 2, "rule": "segregated", "batches": 60},
            {**_TWO_SIZES, "G": 3, "rule": "segregated", "arrivals": 800.0, "batches": 60},
            {**_TWO_SIZES, "G": 8, "rule": "segregated"},
        ),
    ),
    claim(
        "stale-level",
        measure_level,
        quick=_QUICK_FLEETS,
        full=(
            *({"G": G, "period": T, "arrivals": 40.0, "batches": 30} for G in (2, 8, 32) for T in (10, 60)),
            {"p": 0.02, "s_max": 400, "arrivals": 40.0, "period": 50},
        ),
    ),
    claim(
        "stale-herd",
        measure_herd,
        quick=({}, {"G": 4}, {"period": 2}),
        full=(
            *({"G": G, "period": T, "batches": 24} for G in (4, 8) for T in (5, 10)),
            {"G": 16, "period": 5},
            {"p": 0.02, "period": 5},
            {"arrivals": 2.0, "period": 2},
        ),
    ),
    claim(
        "stale-power-of-two",
        measure_choice,
        quick=({}, {"period": 10}, {"G": 64}),
        full=(
            *({"G": G, "period": T, "batches": 24} for G in (32, 128) for T in (1, 4, 30)),
            {"p": 0.02, "s_max": 1000, "arrivals": 5.0, "period": 8},
        ),
    ),
)
