"""What sizes in equal steps leave: a law that no rule can pass and that the exact rule attains (lbopt)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lbopt.theory.chains.batch_means import ChainMean, batch_steps, burn_in_steps, mean_finding, steps_mean
from lbopt.theory.chains.replete import PEAKS, run_replete
from lbopt.theory.chains.slot_ages import least_imbalance, residues_of_steps
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_prompts
from lbopt.theory.laws.growth import Growth
from lbopt.theory.laws.onset import CLEAR, onset
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.spacing import kappa, least_left, residue_law, slowest_character, spacing_floor
from lbopt.theory.regime import Fleet, measured_in, require_peak
from lbopt.theory.verdict import Verdict

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
        "lowest" of the optimal loads, "raised" or "mean", as in `run_replete`.
    steps
        Least steps to look at.
    """

    v: int = 1
    d: int = 3
    rungs: int = 1
    growth: str = "1"
    peak: str = "lowest"
    steps: int = 8_000

    def require(self, claim: str) -> None:
        """Refuse sizes that do not differ, and growths that are none."""
        super().require(claim)
        v, d, rungs = self.v, self.d, self.rungs
        require(claim, min(v, d, rungs) >= 1, "v, d and rungs of at least 1", f"they are {v}, {d} and {rungs}")
        require_prompts(claim, v + rungs * d)
        require(claim, self.steps >= 1, "at least one step", f"steps is {self.steps}")
        require_peak(claim, self.peak)
        Growth.parse(self.growth)

    @property
    def law(self) -> PromptLaw:
        """The law of the sizes in the pool."""
        v, d, last = self.v, self.d, self.v + self.rungs * self.d
        sizes = tuple(range(v, last + 1, d))
        shown = ",".join(map(str, sizes)) if self.rungs < 4 else f"{v},{v + d},...,{last}"
        return PromptLaw(sizes, (1,) * len(sizes), f"s in {{{shown}}}")

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
    each = tuple(int(part * cycle.unit) for part in cycle.cycle)
    finer = PromptLaw(tuple(cycle.unit * size for size in law.lengths), law.weights, law.name)
    burn_in = burn_in_steps(at.G, at.B, at.p)
    run = run_replete(at.G, at.B, at.p, finer, _BATCHES * length, burn_in, seed, each, peak=at.peak)
    found, predicted = steps_mean(run.imbalance / cycle.unit, length), least_left(at.G, at.B, at.p, at.d, cycle)
    limit = kappa(at.G, at.d * cycle.unit).mean / cycle.unit
    admitted = run.mean_admitted / cycle.unit
    return [
        mean_finding(
            ChainMean(found.mean, math.hypot(found.error, predicted.error), found.dof, found.steps),
            "=",
            predicted.mean,
            regime=str(at) + ("" if at.peak == "lowest" else f", {at.peak} peak"),
            quantity="mean imbalance of BF-IO (tokens)",
            outside="" if at.onsets >= CLEAR else f"B = {at.B} is below {CLEAR} B* = {CLEAR * at.B / at.onsets:,.0f}",
            note=f"kappa(G, d) = {limit:.6g} for a growth without a common divisor with d; mean admitted prompt "
            f"{admitted:.3g} of {float(law.mean):.3g} under FCFS",
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
    each, burn_in = tuple(int(part) for part in at.cycle.cycle), burn_in_steps(at.G, at.B, at.p)
    least = least_imbalance(residues_of_steps(at.G, at.B, at.p, at.d, each, at.steps, burn_in, seed), at.d)
    rows = []
    for peak in PEAKS:
        run = run_replete(at.G, at.B, at.p, at.law, at.steps, burn_in, seed, each, peak=peak)
        excess = least - run.imbalance
        rows.append(
            Finding(
                regime=f"{at}, {peak} peak",
                quantity="what the residues leave less the imbalance of a step (tokens)",
                kind="exact",
                relation="<=",
                measured=float(excess.max()),
                predicted=0.0,
                trials=at.steps,
                violations=int((excess > 0).sum()),
                note=f"the same in {int((excess == 0).sum()):,} steps; B/B* = {at.onsets:.3g}",
            )
        )
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
        Finding(
            regime=f"G={at.G}, B={near}..{far}, p={at.p:g}, d={at.d}, growth {at.growth}",
            quantity="rate at which kappa_B nears its limit, per slot, against 2 log of the slowest character",
            kind="computed",
            relation="=",
            measured=rate,
            predicted=2 * math.log(slow),
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

CLAIMS = (
    Claim(
        name="spacing-law",
        title="What the exact rule leaves from the onset on: the spacing of sizes governs",
        source="lbopt",
        statement=r"For a replete pool of sizes $v,v+d,\dots,v+md$ and $B\ge4B^*$: "
        r"$E[\mathrm{Imb}_{BF\text{-}IO}]=\kappa_B(G,d)=E\min_i\sum_g\bigl((r_i-r_g)\bmod d\bigr)$, $r_g$ independent "
        r"with the law of $\sum_{b\le B}\Delta(A_b)\bmod d$; so with a constant growth $\delta$ it tends to "
        r"$e\,\kappa(G,d/e)$ with $e=\gcd(\delta,d)$, $\kappa(G,d)$ of uniform residues.",
        refuted_by="A mean imbalance outside the joint region around the law.",
        measure=measure_law,
        quick=(*_LAWS, {"B": 64, "p": 0.05}),
        full=(
            *({**regime, "steps": 200_000} for regime in _FULL),
            *({**regime, "steps": steps} for regime, steps in zip(_LARGE, _LARGE_STEPS, strict=True)),
            {"peak": "raised", "steps": 200_000},
            {"peak": "mean", "steps": 200_000},
            {"B": 64, "p": 0.05},
        ),
        expected=Verdict.HOLDS,
        remark=r"The residues modulo $d$ of all loads are independent of the rule, for every size is $v$ modulo $d$. "
        r"So the law is a floor for every rule (spacing-floor), and the exact rule attains it where its free slots "
        r"outweigh the gaps. The improvement over FCFS is $G\,\sigma_{snap}\,e_G\sqrt B/\kappa$ times $1+o(1)$: with "
        r"all sizes present $d=1$ and nothing is left.",
    ),
    Claim(
        name="spacing-floor",
        title="No rule leaves less than the residues of the loads",
        source="lbopt",
        statement=r"If all sizes are congruent modulo $d$ and all slots are filled, every rule has in every step "
        r"$\mathrm{Imb}\ge\min_i\sum_g\bigl((r_i-r_g)\bmod d\bigr)$, $r_g$ the growth of worker $g$'s requests modulo "
        r"$d$, which no rule moves: whatever $B$ and $p$, and whether it knows the future or not.",
        refuted_by="One step of the exact rule with a smaller imbalance.",
        measure=measure_floor,
        quick=({}, {"G": 3, "B": 8, "p": 0.2, "d": 5}),
        full=(
            {"steps": 20_000},
            {"G": 3, "B": 8, "p": 0.2, "d": 5, "steps": 100_000},
            {"G": 8, "B": 1024, "steps": 4_000},
            {"G": 2, "B": 16, "p": 0.05, "d": 9, "growth": "2", "steps": 50_000},
            {"G": 5, "B": 64, "v": 4, "d": 6, "rungs": 3, "growth": "0+1+3", "steps": 10_000},
        ),
        expected=Verdict.HOLDS,
        remark=r"A maximum $M$ is at least $(M-L_g)\bmod d$ above load $g$, and an $M$ between two residues is worse "
        r"than the lower one. The ends are drawn anew, by code of its own, on the streams of the chain.",
    ),
    Claim(
        name="spacing-rate",
        title="How fast the law nears its limit",
        source="lbopt",
        statement=r"$|\kappa_B(G,d)-e\,\kappa(G,d/e)|$ falls as $\max|\phi_j|^{2B}$ over the $|\phi_j|<1$, "
        r"$\phi_j=E\,e^{2\pi ij\delta A/d}=p/(1-(1-p)e^{2\pi ij\delta/d})$.",
        refuted_by="A computed rate that differs by more than 2 %.",
        measure=measure_rate,
        quick=({}, {"G": 2, "d": 2}, {"G": 3, "p": 0.9, "d": 4, "growth": "2"}),
        full=(
            {},
            {"G": 2, "d": 2},
            {"G": 8, "p": 0.97, "d": 3},
            {"G": 3, "p": 0.9, "d": 4, "growth": "2"},
            {"G": 4, "p": 0.95, "d": 6, "growth": "5"},
            {"G": 16, "p": 0.99, "d": 4},
        ),
        expected=Verdict.HOLDS,
        remark=r"The first order in the distance from uniform vanishes, because the law does not change when all "
        r"residues turn together. At $p=0.5$ and $d=3$ the distance is $0.14^B$: none is left at any usual $B$.",
    ),
)
