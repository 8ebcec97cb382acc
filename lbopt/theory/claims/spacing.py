"""What the exact rule leaves: from the onset on the spacing of sizes governs, below it the drift of the leader (lbopt).

What sizes in equal steps leave: a law that no rule can pass and that the exact rule attains (lbopt).

The law of the regime below the onset, in which practice lives and the theorems say nothing (lbopt).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from lbopt.theory.chains.batch_means import batch_steps, steps_mean
from lbopt.theory.chains.fcfs_chain import least_imbalance, residues_of_steps
from lbopt.theory.chains.replete import PEAKS, Replete
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.gap_bounds import CLEAR, onset
from lbopt.theory.laws.leader_walk import (
    MOST_ENDS,
    MOST_NATURAL,
    lead_law,
    levelled_imbalance,
    levelled_range,
    natural_slots,
)
from lbopt.theory.laws.slot_law import Growth, PromptLaw
from lbopt.theory.laws.spacing import kappa, least_left, residue_law, slowest_character, spacing_floor
from lbopt.theory.regime import Asks, BatchedFleet, Fleet, at_least, measured_in, require, require_all

#: Batches of a chain's mean.
_BATCHES = 40

#: Slots whose ages are followed one by one.
_MOST_SLOTS = 1_000_000

#: kappa_B less its limit is fitted between these ends: below, rounding shows; above, other characters do.
_NEAR, _FAR = 1e-9, 1e-3


@dataclass(frozen=True, kw_only=True)
class SpacedFleet(Fleet):
    """A fleet with a replete pool of v, v + d, ..., v + rungs d, followed for a number of steps.

    Parameters
    ----------
    v
        Smallest prompt, tokens.
    d
        Distance of prompts, tokens.
    rungs
        Number of sizes less one.
    growth
        Tokens that a running request gains in a step.
    peak
        "lowest" of the optimal loads, "raised" or "mean", as in `Replete`.
    steps
        Least steps to look at.
    """

    v: int = 1
    d: int = 3
    rungs: int = 1
    growth: str = "1"
    peak: str = "lowest"
    steps: int = 8_000
    asks: ClassVar[Asks] = {
        **dict.fromkeys(("v", "d", "rungs"), at_least(1, "v, d and rungs of at least 1")),
        "steps": at_least(1, "at least one step"),
    }

    def require(self, claim: str) -> None:
        """Refuse prompts that are too long, and growths that are none."""
        super().require(claim)
        require_all(claim, {"s_max": self.v + self.rungs * self.d})
        Growth.parse(self.growth)

    @property
    def law(self) -> PromptLaw:
        """The law of the sizes in the pool."""
        v, d, last = self.v, self.d, self.v + self.rungs * self.d
        sizes = tuple(range(v, last + 1, d))
        shown = ",".join(map(str, sizes)) if self.rungs < 4 else f"{v},{v + d},...,{last}"
        return PromptLaw(sizes, (1,) * len(sizes), f"s in {{{shown}}}")

    @property
    def chain(self) -> Replete:
        """The chain under the exact rule, in parts of a token of which `cycle.unit` are a whole one."""
        return Replete(self.G, self.B, self.p, self.law, peak=self.peak).grown_by(self.cycle)

    @property
    def cycle(self) -> Growth:
        """The growth, read."""
        return Growth.parse(self.growth)

    @property
    def onsets(self) -> float:
        """B over the onset, whose width of sizes is that of this law, not s_max - 1."""
        width = (self.law.largest - 1) / (self.law.largest - self.v)
        return self.B / (onset(self.G, self.p, self.law, float(self.cycle.largest)) * width**2)

    def __str__(self) -> str:
        """Return the fleet in the words of the report."""
        grown = f", growth {self.growth}" if self.growth != "1" else ""
        return f"{super().__str__()}, {self.law.name}{grown}"


@measured_in("spacing-law", SpacedFleet)
def measure_law(at: SpacedFleet, seed: int) -> list[Finding]:
    """Run the exact rule on a replete pool of v, v + d, ..., v + rungs d, and compare with the law."""
    law, cycle = at.law, at.cycle
    length = len(cycle.cycle) * math.ceil(max(batch_steps(at.p), at.steps / _BATCHES) / len(cycle.cycle))
    run = at.chain.run(_BATCHES * length, seed)
    found, predicted = steps_mean(run.steps.imbalance / cycle.unit, length), least_left(at.G, at.B, at.p, at.d, cycle)
    limit = kappa(at.G, at.d * cycle.unit).mean / cycle.unit
    return [
        replace(found, error=math.hypot(found.error, predicted.error)).finding(
            str(at) + ("" if at.peak == "lowest" else f", {at.peak} peak"),
            "mean imbalance of BF-IO (tokens)",
            predicted.mean,
            outside="" if at.onsets >= CLEAR else f"B = {at.B} is below {CLEAR} B* = {CLEAR * at.B / at.onsets:,.0f}",
            note=f"kappa(G, d) = {limit:.6g} for a growth without a common divisor with d; mean admitted prompt "
            f"{run.mean_admitted / cycle.unit:.3g} of {float(law.mean):.3g} under FCFS",
        )
    ]


@dataclass(frozen=True, kw_only=True)
class FollowedFleet(SpacedFleet):
    """A fleet whose slots' ages are followed one by one; it grows by whole tokens."""

    G: int = 4
    B: int = 64
    steps: int = 1_000

    def require(self, claim: str) -> None:
        """Refuse a growth of parts of tokens, and more slots than can be followed."""
        super().require(claim)
        require(claim, self.cycle.unit == 1, "a growth of whole tokens", f"growth is '{self.growth}'")
        slots = self.G * self.B
        require(claim, slots <= _MOST_SLOTS, f"at most {_MOST_SLOTS:,} slots in all", f"G B is {slots:,}")


@measured_in("spacing-floor", FollowedFleet, without=("peak",))
def measure_floor(at: FollowedFleet, seed: int) -> list[Finding]:
    """Follow the ages of all slots, and hold every step of the exact rule on the same ends against the residues."""
    least = least_imbalance(residues_of_steps(at.chain, at.d, at.steps, seed), at.d)
    rows = []
    for peak in PEAKS:
        excess = least - replace(at.chain, peak=peak).run(at.steps, seed).steps.imbalance
        note = f"the same in {int((excess == 0).sum()):,} steps; B/B* = {at.onsets:.3g}"
        quantity = "what the residues leave less the imbalance of a step (tokens)"
        rows.append(Finding.exact(f"{at}, {peak} peak", quantity, excess, note=note))
    return rows


@dataclass(frozen=True, kw_only=True)
class QuickFleet(SpacedFleet):
    """Requests that end so soon that residues become uniform slowly; they grow by the same tokens in every step."""

    G: int = 4
    B: int = 1
    p: float = 0.99

    def require(self, claim: str) -> None:
        """Refuse what has no rate, and residues that are too many to list."""
        super().require(claim)
        growth = f"growth is '{self.growth}'"
        require(claim, len(self.cycle.cycle) == self.cycle.unit == 1, "a constant growth of whole tokens", growth)
        slow = slowest_character(self.p, self.d, (int(self.cycle.cycle[0]),))
        require(claim, slow > 0, "residues that are not uniform at once", f"{growth} and d is {self.d}")
        many = math.comb(self.G + self.d - 1, self.G)
        require(claim, many <= 100_000, "residues that can be listed", f"G is {self.G} and d is {self.d}")


@measured_in("spacing-rate", QuickFleet, without=("B", "v", "rungs", "peak", "steps"))
def measure_rate(at: QuickFleet, seed: int) -> list[Finding]:
    """Compare how fast kappa_B falls to its limit with the power 2 B of the slowest character; nothing is sampled."""
    grown = int(at.cycle.cycle[0])
    e, slow = math.gcd(grown, at.d), slowest_character(at.p, at.d, (grown,))  # gcd(0, d) is d
    limit = e * kappa(at.G, at.d // e).mean
    near, far = (max(1, math.ceil(math.log(end) / (2 * math.log(slow)))) for end in (_FAR, _NEAR))
    apart = [abs(spacing_floor(at.G, residue_law(B, at.p, at.d, (grown,))).mean - limit) for B in (near, far)]
    rate = math.log(apart[1] / apart[0]) / (far - near)
    return [
        Finding.computed(
            f"G={at.G}, B={near}..{far}, p={at.p:g}, d={at.d}, growth {at.growth}",
            "rate at which kappa_B nears its limit, per slot, against 2 log of the slowest character",
            rate,
            "=",
            2 * math.log(slow),
            tolerance=0.02,
            trials=2,
            note=f"limit {limit:.6g}; off it by {apart[0]:.2g} and {apart[1]:.2g}",
        )
    ]


def _laws(*rows: tuple[int, int, float, int, int, int, str]) -> Sequence[dict[str, object]]:
    names = ("G", "B", "p", "v", "d", "rungs", "growth")
    return [dict(zip(names, row, strict=True)) for row in rows]


_LAWS = _laws(
    (2, 128, 0.9, 1, 2, 1, "1"),
    (3, 1024, 0.5, 1, 4, 1, "2"),
    (8, 1024, 0.5, 1, 3, 1, "1"),
    (4, 1024, 0.5, 5, 6, 2, "1"),
    (16, 2048, 0.5, 1, 7, 1, "1"),
)
_FULL = _laws(
    (2, 100, 0.9, 1, 2, 1, "1"),
    (2, 128, 0.99, 1, 2, 1, "1"),
    (4, 256, 0.9, 1, 5, 1, "1"),
    (8, 1000, 0.5, 1, 3, 1, "1"),
    (3, 1024, 0.5, 1, 4, 1, "2"),
    (3, 1024, 0.5, 1, 6, 1, "4"),
    (3, 4096, 0.5, 1, 3, 1, "0+1+3"),
    (4, 2048, 0.5, 1, 3, 1, "1/2"),
    (4, 1024, 0.5, 5, 6, 2, "1"),
    (4, 2048, 0.5, 3, 4, 3, "1"),
)
_LARGE = _laws(
    (8, 10_000, 0.5, 1, 3, 1, "1"),
    (16, 2048, 0.5, 1, 7, 1, "1"),
    (64, 2048, 0.5, 1, 3, 1, "1"),
    (4, 100_000, 0.5, 1, 3, 1, "1"),
)

#: Steps of these; the last fleet is so large that fewer have to do.
_LARGE_STEPS = (20_000, 20_000, 20_000, 4_000)

_OF_SPACING = (
    claim(
        "spacing-law",
        measure_law,
        quick=(*_LAWS, {"B": 64, "p": 0.05}),
        full=(
            *({**regime, "steps": 200_000} for regime in _FULL),
            *({**regime, "steps": steps} for regime, steps in zip(_LARGE, _LARGE_STEPS, strict=True)),
            {"peak": "raised", "steps": 200_000},
            {"peak": "mean", "steps": 200_000},
            {"B": 64, "p": 0.05},
        ),
    ),
    claim(
        "spacing-floor",
        measure_floor,
        quick=({}, {"G": 3, "B": 8, "p": 0.2, "d": 5}),
        full=(
            {"steps": 20_000},
            {"G": 3, "B": 8, "p": 0.2, "d": 5, "steps": 100_000},
            {"G": 8, "B": 1024, "steps": 4_000},
            {"G": 2, "B": 16, "p": 0.05, "d": 9, "growth": "2", "steps": 50_000},
            {"G": 5, "B": 64, "v": 4, "d": 6, "rungs": 3, "growth": "0+1+3", "steps": 10_000},
        ),
    ),
    claim(
        "spacing-rate",
        measure_rate,
        quick=({}, {"G": 2, "d": 2}, {"G": 3, "p": 0.9, "d": 4, "growth": "2"}),
        full=(
            {},
            {"G": 2, "d": 2},
            {"G": 8, "p": 0.97, "d": 3},
            {"G": 3, "p": 0.9, "d": 4, "growth": "2"},
            {"G": 4, "p": 0.95, "d": 6, "growth": "5"},
            {"G": 16, "p": 0.99, "d": 4},
        ),
    ),
)


#: The leading term is held to account from so many times its lower end on, and up to its upper end over so much.
ABOVE, BELOW = 5.0, 10.0

#: Least b of two workers: with fewer natural slots, single ends move a load by as much as the gaps are wide.
NATURAL = 5.0

#: Least and most b of three and more: at 5.6 the leading term is short by a sixth with four and by a fifth with six.
FEWEST, MOST = 9.5, 50.0

#: Between them, what is measured lies between these times the leading term: it falls as b grows.
LOW, HIGH = 0.90, 1.15

#: The law of two workers has no limits at both ends. Its prompts are independent of the lead, which costs up to this
#: share where slots remember for many steps.
WALK_TOLERANCE, WALK_MOST_P = 0.02, 0.02


_LEAD: dict[str, Any] = {"G": 2, "B": 128, "p": 0.002, "s_max": 300, "pool": "all", "batches": 40}


@measured_in("leader-drift", BatchedFleet, without=("pool", "peak"), **_LEAD)
def measure_leader_drift(at: BatchedFleet, seed: int) -> list[Finding]:
    """Run BF-IO exactly on a replete pool of all sizes."""
    G, B, p, s_max = at.G, at.B, at.p, at.s_max
    mean = steps_mean(at.run(seed).steps.imbalance, at.length)
    leading = levelled_imbalance(G, p, s_max)
    law, shares, name = leading, (LOW, HIGH), "the leading term"
    if G == 2:
        shares, name = (1 - WALK_TOLERANCE, 1 + WALK_TOLERANCE), "the law of the lead"
        if not (outside := _outside_walk(B, p, s_max)):
            law = lead_law(B, p, s_max).mean
    else:
        outside = _outside(G, B, p, s_max)
    return mean.findings(
        f"{at}, {at.law.name}",
        f"mean imbalance of BF-IO (tokens), against {{:g}} times {name}",
        law,
        shares,
        outside=outside,
        note=f"{mean.mean / leading:.3f} times the leading term",
    )


def _outside_walk(B: int, p: float, s_max: int) -> str:
    """Return why two workers are outside the range of the law of the lead; empty where they are inside."""
    _, high = levelled_range(2, p, s_max)
    if p > WALK_MOST_P:
        return f"p = {p:g} is above {WALK_MOST_P:g}: slots remember for too few steps"
    if natural_slots(p, s_max) < NATURAL:
        return f"b = {natural_slots(p, s_max):.2g} is below {NATURAL:g}: outputs are not long against prompts"
    if natural_slots(p, s_max) > MOST_NATURAL or p * B > MOST_ENDS:
        return f"b = {natural_slots(p, s_max):.3g} is above {MOST_NATURAL:g} or p B above {MOST_ENDS:g}: not computed"
    return f"B = {B} is above {high:.0f}: a step's admissions mend a gap at once" if high < B else ""


def _outside(G: int, B: int, p: float, s_max: int) -> str:
    """Return why a fleet is outside the range of the leading term; empty where it is inside."""
    low, high = levelled_range(G, p, s_max)
    if not FEWEST <= natural_slots(p, s_max) <= MOST:
        return f"b = {natural_slots(p, s_max):.2g} is not {FEWEST:g} to {MOST:g}, where the leading term is that near"
    if ABOVE * low > B:
        return f"B = {B} is below {ABOVE:g} times {low:.0f}: loads forget themselves before they drift"
    return (
        f"B = {B} is above {high:.0f} / {BELOW:g}: a step's admissions mend a gap at once" if high / BELOW < B else ""
    )


#: Three workers in the middle of the range.
_THREE = {"G": 3, "p": 0.0015, "s_max": 300, "B": 500}

_BELOW_THE_ONSET = (
    claim(
        "leader-drift",
        measure_leader_drift,
        quick=(
            {},
            {"B": 256},
            {"s_max": 100, "B": 1024},
            {"B": 8},
            {"B": 2048},
            {"p": 0.01, "s_max": 30, "B": 238},
            {**_THREE, "batches": 80},
        ),
        full=(
            {**_THREE, "batches": 200},
            {"G": 3, "s_max": 102, "B": 2400, "batches": 60},
            {"G": 6, "p": 0.0005, "s_max": 895, "B": 1900, "batches": 20},
            *({"B": B, "batches": 100} for B in (8, 32, 128, 279)),
            *({"B": B} for B in (1024, 2048)),
            *({"s_max": 100, "B": B, "batches": batches} for B, batches in ((1024, 60), (2500, 20))),
            *({"p": 0.001, "s_max": 450, "B": B, "batches": batches} for B, batches in ((500, 60), (990, 20))),
            {"p": 0.01, "s_max": 30, "B": 238, "batches": 1_000},
            {"G": 4, "p": 0.001, "s_max": 450, "B": 800, "batches": 20},
            {"G": 3, "p": 0.001, "s_max": 450, "B": 600, "batches": 20},
            {"G": 8, "B": 64},
            {"G": 8, "B": 72, "p": 0.0175, "s_max": 100},
        ),
    ),
)
CLAIMS = (*_OF_SPACING, *_BELOW_THE_ONSET)
