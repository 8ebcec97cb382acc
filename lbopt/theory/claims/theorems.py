"""Theorems 1 to 3 of BF-IO: by how much the exact rule beats FCFS, with the constants that the paper leaves open.

Theorem 1 of BF-IO, outputs of one length: by how much the exact rule beats FCFS in a round, with constants.

FCFS's side is computed (`load_law`) and sampled; the exact rule's is the proved optimum of each round. Of two sizes it
has a law of its own, and the bound of a round is attained.

Theorems 2 and 3 of BF-IO: by how much the exact rule beats FCFS, with the constants that the paper leaves open.

FCFS's side is computed (`load_law`); the exact rule's is measured, step by step at a proved optimum. The improvement is
compared as its inverse, the share of FCFS's imbalance that is left, because BF-IO often leaves nothing at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lbopt.model import StepProblem
from lbopt.solvers import solve
from lbopt.theory.chains.batch_means import Average, batch_steps, require_memory, steps_mean
from lbopt.theory.chains.fcfs_chain import mean_fcfs_imbalance, steps_for
from lbopt.theory.chains.replete import POOLS
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.gap_bounds import onset, outside_onset
from lbopt.theory.laws.load_law import halved, improvement_floor, load_law
from lbopt.theory.laws.slot_law import LLM, Growth, PromptLaw, prompt_slot_law, slot_law_seen
from lbopt.theory.laws.spacing import least_left
from lbopt.theory.regime import Asks, BatchedFleet, Regime, between, measured_in, require
from lbopt.theory.steps.small_step import MOST_PLACEMENTS, SmallStep, placements_of

#: Least rounds of FCFS: enough to distinguish its law from one that is off by a few per cent.
_FCFS_ROUNDS = 4000


@dataclass(frozen=True, kw_only=True)
class Rounds(Regime):
    """Rounds of Theorem 1: G B prompts each, all admitted at once.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    s_max
        Largest prompt, tokens.
    pool
        "all": sizes up to `s_max`, each as often; "two": 1 and `s_max` alone.
    rounds
        Number of rounds.
    """

    G: int = 4
    B: int = 16
    s_max: int = 8
    pool: str = "all"
    rounds: int = 40
    asks: ClassVar[Asks] = {"rounds": between(2, 100_000, "2 to 100,000 rounds")}

    def require(self, claim: str) -> None:
        """Refuse rounds that are too many to solve."""
        super().require(claim)
        if self.pool == "two":
            few = placements_of(self.G, self.B, 2) <= MOST_PLACEMENTS
            shown = f"G is {self.G} and B is {self.B}"
            require(claim, few, f"rounds of two sizes with at most {MOST_PLACEMENTS:,} placements", shown)
        size = 8 * self.rounds * self.G * self.B
        require_memory(size, f"{claim} with {self.rounds:,} rounds of {self.G * self.B:,} prompts")

    @property
    def law(self) -> PromptLaw:
        """The law of the prompts."""
        return POOLS[self.pool](self.s_max)

    def drawn(self, rounds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the prompts of so many rounds, int64 (rounds, G B)."""
        lengths = np.array(self.law.lengths, np.int64)
        return np.asarray(lengths[rng.integers(0, lengths.size, (rounds, self.G * self.B))])

    def __str__(self) -> str:
        """Return the rounds in the words of the report."""
        return f"G={self.G}, B={self.B}, {self.law.name}"


@measured_in("theorem-1", Rounds)
def measure_theorem_1(at: Rounds, seed: int) -> list[Finding]:
    """Draw rounds of G B prompts and solve each to proved optimality; of two sizes list the placements."""
    G, B, law = at.G, at.B, at.law
    best, least = np.empty(at.rounds), np.empty(at.rounds)
    for i, prompts in enumerate(at.drawn(at.rounds, np.random.default_rng(seed))):
        if at.pool == "two":
            best[i] = least[i] = _listed(G, B, at.s_max, int((prompts > 1).sum()))
            continue
        result = solve(_round(prompts, G, B), solver="search", time_limit=5.0)
        best[i], least[i] = result.objective, result.bound  # the optimum of an open round lies between the two
    fcfs = _fcfs_rounds(at, max(at.rounds, _FCFS_ROUNDS), seed)
    exact = load_law(prompt_slot_law(law), B).expected_imbalance(G)
    bound = (G - 1) * (at.s_max - 1)
    floor = improvement_floor(G, B, math.sqrt(float(law.variance)), halved(at.s_max))
    enough = best.mean() * floor <= exact
    left = best if enough else least  # what is surely left, where the best found leaves more than is claimed
    regime, trials = str(at), at.rounds
    ratio = f"FCFS has {exact / left.mean():,.3g} times the imbalance" if left.mean() else "nothing was left"
    rows = [
        Average.of(fcfs, fcfs.size).finding(regime, "imbalance of a round under FCFS (tokens)", exact, B=B),
        Finding.exact(
            regime,
            "imbalance of the best placement of a round, against (G-1)(s_max-1) (tokens)",
            least - bound,
            B=B,
            measured=float(best.max()),
            predicted=bound,
            undecided=int(((least <= bound) & (best > bound)).sum()),
        ),
        Average.of(left, trials).finding(
            regime,
            "share of FCFS's imbalance left by the best placement",
            1 / floor,
            "<=",
            unit=exact,
            undecided=0 if enough else int((least < best).sum()),
            note=f"an improvement of at least {floor:.3g} was claimed; {ratio}",
            B=B,
        ),
    ]
    if at.pool == "two":
        quantity = "mean imbalance of the best placement, against the law of two sizes (tokens)"
        undecided, predicted = int((least < best).sum()), two_sizes_left(G, B, at.s_max)
        rows.append(Average.of(best, trials).finding(regime, quantity, predicted, undecided=undecided, B=B))
    return rows


@lru_cache(maxsize=4096)
def _listed(G: int, B: int, s_max: int, large: int) -> int:
    """Return the least imbalance of a round of two sizes, all placements of it listed."""
    return SmallStep.of([0] * G, [B] * G, np.array([1] * (G * B - large) + [s_max] * large)).optima[0]


def two_sizes_left(G: int, B: int, s_max: int) -> float:
    """Return the mean least imbalance of a round of G B prompts, 1 or `s_max` with the same chance: exact, tokens.

    The large ones, n in number, are dealt as evenly as they can be: (s_max - 1) ((-n) mod G).
    """
    from scipy import stats

    n = np.arange(G * B + 1)
    return float(stats.binom.pmf(n, G * B, 0.5) @ (-n % G)) * (s_max - 1)


def _fcfs_rounds(at: Rounds, rounds: int, seed: int) -> NDArray[np.float64]:
    """Return the imbalance of so many rounds under FCFS, which no solver is needed for."""
    rng = np.random.default_rng([seed, 1])
    found = np.empty(rounds)
    for i in range(rounds):
        loads = at.drawn(1, rng).reshape(at.G, at.B).sum(axis=1)
        found[i] = at.G * loads.max() - loads.sum()
    return found


def _round(prompts: NDArray[np.int64], G: int, B: int) -> StepProblem:
    return StepProblem(base=np.zeros(G, np.int64), slots=np.full(G, B, np.int64), work=prompts)


_OF_ROUNDS = (
    claim(
        "theorem-1",
        measure_theorem_1,
        quick=(
            {},
            {"pool": "two", "rounds": 1_000},
            {"pool": "two", "G": 2, "B": 256, "rounds": 1_000},
            {"G": 8, "B": 32, "rounds": 20},
        ),
        full=(
            {"pool": "two", "rounds": 2_000},
            {"pool": "two", "B": 32, "rounds": 10_000},
            {"pool": "two", "G": 2, "B": 512, "rounds": 10_000},
            {"rounds": 400},
            {"G": 8, "B": 32, "rounds": 400},
            {"G": 2, "B": 128, "rounds": 400},
            {"G": 16, "B": 64, "s_max": 100, "rounds": 200},
            {"G": 4, "B": 4, "s_max": 1000, "rounds": 400},
        ),
    ),
)


#: What a run of the exact rule keeps of a step, and the way out where there are too many.
_BYTES_PER_STEP, _SHORTER = 96, "fewer batches or a larger p"

#: Both sides do equal work where their mean admitted prompts differ by at most this share.
_EQUAL_WORK = 0.005

#: Tokens below which the law of the spacing leaves nothing.
_SOMETHING = 1e-9

#: Standard error at which FCFS is sampled, a share of its mean.
_FCFS_ERROR = 0.02


@dataclass(frozen=True, kw_only=True)
class GrowingFleet(BatchedFleet):
    """A fleet whose requests grow together.

    Parameters
    ----------
    growth
        Tokens that a running request gains in a step: one number, or several that are used in turn, such as 0+1+3.
    """

    growth: str = "1"


@measured_in("theorem-2", BatchedFleet, pool="all")
def measure_theorem_2(at: BatchedFleet, seed: int) -> list[Finding]:
    """Run BF-IO exactly on a replete pool."""
    return _replete("theorem-2", at, LLM, "", seed)


@measured_in("theorem-3", GrowingFleet, pool="all")
def measure_theorem_3(at: GrowingFleet, seed: int) -> list[Finding]:
    """Run BF-IO exactly on a replete pool, under a constant or periodic growth."""
    growth = Growth.parse(at.growth)
    return _replete("theorem-3", at, growth, f", growth {'+'.join(map(str, growth.cycle))}", seed)


def _replete(claim: str, at: BatchedFleet, growth: Growth, grown: str, seed: int) -> list[Finding]:
    law, unit, cycle = at.law, growth.unit, len(growth.cycle)
    length = cycle * math.ceil(batch_steps(at.p) / cycle)  # whole cycles, so that no phase counts more
    steps = at.batches * length
    require_memory(steps * _BYTES_PER_STEP, f"{claim} with {at.batches:,} batches of {length:,} steps", _SHORTER)
    slots = [slot_law_seen(law, at.p, growth.latest(phase)) for phase in range(cycle)]
    exact = sum(load_law(slot, at.B).expected_imbalance(at.G) for slot in slots) / cycle
    sigma = sum(math.sqrt(slot.variance) for slot in slots) / cycle
    floor = improvement_floor(at.G, at.B, sigma, halved(at.s_max))
    run = at.chain().grown_by(growth).run(steps, seed)
    left, admitted = steps_mean(run.steps.imbalance / unit, length), run.mean_admitted / unit
    outside = outside_onset(at.G, at.B, at.p, law, float(growth.largest))
    regime = f"{at}, {law.name}{grown}{at.raised}"
    shown = "nothing was left" if left.mean == 0 else f"FCFS has {exact / left.mean:,.3g} times the imbalance"
    rows = [
        left.finding(
            regime,
            "share of FCFS's imbalance left by BF-IO",
            1 / floor,
            "<=",
            unit=exact,
            outside=outside,
            note=f"an improvement of at least {floor:.3g} was claimed; {shown}; mean admitted prompt "
            f"{admitted:.4g} of {float(law.mean):.4g} under FCFS; "
            f"B/B* = {at.B / onset(at.G, at.p, law, float(growth.largest)):.2g}",
        )
    ]
    if not outside:
        rows.append(_first_come(at, law, growth, exact, regime, seed))
    law_left = least_left(at.G, at.B, at.p, law.lengths[1] - law.lengths[0], growth)
    if law_left.mean > _SOMETHING:
        rows.append(
            replace(left, error=math.hypot(left.error, law_left.error)).finding(
                regime,
                "the same, against the law of the spacing",
                law_left.mean / exact,
                unit=exact,
                outside=outside,
                note=f"the law leaves {law_left.mean:.6g} tokens; FCFS has {exact / law_left.mean:,.4g} times that",
            )
        )
    if at.peak == "mean":
        rows.append(
            Finding.computed(
                regime,
                "mean admitted prompt of BF-IO (tokens), against FCFS's: equal work",
                admitted,
                "=",
                float(law.mean),
                tolerance=_EQUAL_WORK,
                trials=int(run.steps.admitted.sum()),
                outside=outside,
            )
        )
    return rows


def _first_come(at: BatchedFleet, law: PromptLaw, growth: Growth, exact: float, regime: str, seed: int) -> Finding:
    """Return the row of FCFS's own imbalance, sampled, against what the other rows take for it."""
    own = int(np.random.SeedSequence([seed, 23]).generate_state(1)[0])
    sampled = mean_fcfs_imbalance(at.G, at.B, at.p, law, steps_for(at.G, at.p, _FCFS_ERROR), own, growth)
    return sampled.finding(regime, "mean imbalance of FCFS (tokens)", exact)


_CLEAR = (
    {"B": 1024},
    {"B": 2048, "p": 0.2, "s_max": 8},
    {"B": 1024, "pool": "two"},
    {"G": 64, "B": 1024, "s_max": 8},
)
_WIDE = {"G": 16, "s_max": 8, "pool": "two"}
_EQUAL = {"pool": "two", "peak": "mean"}
_TWICE = ((2048, 600), (8192, 200))
_BELOW = ({"B": 72, "p": 0.0175, "s_max": 100}, {"B": 1024, "p": 0.02, "s_max": 10})

_OF_CHAINS = (
    claim(
        "theorem-2",
        measure_theorem_2,
        quick=(
            *_CLEAR,
            {**_WIDE, "batches": 40},
            *({"pool": "two", "peak": peak, "batches": 200} for peak in ("raised", "mean")),
            *_BELOW,
        ),
        full=(
            *({**one, "batches": 100} for one in _CLEAR),
            *({**one, "batches": 60} for one in _BELOW),
            {"G": 8, "B": 8192, "p": 0.2, "s_max": 4, "pool": "two", "batches": 40},
            {"G": 256, "B": 2048, "p": 0.5, "s_max": 8, "batches": 20},
            {"G": 16, "B": 16384, "p": 0.1, "s_max": 8, "pool": "two", "batches": 20},
            *({**_WIDE, "G": G, "s_max": s, "batches": 100} for G, s in ((16, 8), (64, 32))),
            {"pool": "two", "peak": "raised", "batches": 100},
            {"pool": "two", "batches": 1_000},
            {"pool": "two", "peak": "mean", "batches": 1_000},
            {"B": 8192, "p": 0.2, "pool": "two", "peak": "mean", "batches": 200},
            {"G": 16, "B": 4096, "s_max": 8, "pool": "two", "peak": "mean", "batches": 200},
        ),
    ),
    claim(
        "theorem-3",
        measure_theorem_3,
        quick=(
            {"growth": "0"},
            {"growth": "3", "B": 4096},
            {"growth": "1/2", "batches": 100},
            {"growth": "1/2", "batches": 200, **_EQUAL},
            {"growth": "0+1+3", "B": 4096, **_EQUAL},
            {"growth": "2", "B": 2048, "s_max": 5, "batches": 100, **_EQUAL},
            {"growth": "1", **_WIDE, "batches": 40},
            {"growth": "3", "B": 64},
        ),
        full=(
            {"growth": "1", **_WIDE, "G": 64, "s_max": 32, "batches": 100},
            {"growth": "2", **_WIDE, "G": 64, "s_max": 32, "batches": 100},
            *({"growth": growth, "batches": 1_000, **_EQUAL} for growth in ("1/2", "1")),
            *({"growth": growth, "B": 4096, "batches": 400, **_EQUAL} for growth in ("1/2", "1", "0+1+3")),
            *({"growth": "2", "s_max": 5, "B": B, "batches": batches, **_EQUAL} for B, batches in _TWICE),
            {"growth": "0+1+3", "B": 16_384, "batches": 100, **_EQUAL},
            *({"growth": "1/2", "B": B, "batches": 400} for B in (512, 4096)),
            {"growth": "0"},
            {"growth": "3", "B": 4096},
            {"growth": "1", "B": 512, "pool": "two", "batches": 60},
        ),
    ),
)
CLAIMS = (*_OF_ROUNDS, *_OF_CHAINS)
