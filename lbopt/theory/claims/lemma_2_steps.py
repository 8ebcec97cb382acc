"""Steps with a replete pool: their optimum in closed form, and Lemma 2 of BF-IO on the steps of long chains.

The closed form of an optimal step with a replete pool, against the exact search and against listed optima.

Lemma 2 of BF-IO, corrected, on the steps of long chains at fleet size; and the event E_k that it speaks of.

Every step is an exact optimum (`lbopt.theory.chains.replete`). Given the past, the free slots of a step are G
independent draws of Bin(B, p), whatever happened before; so the events E_k of different steps are independent, and how
often they fail is binomial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lbopt.model import StepProblem
from lbopt.solvers import solve
from lbopt.theory.chains.replete import COMPOSITIONS, PEAKS, POOLS, Replete, RepleteRun, level, progression
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.gap_bounds import deviation, irregular
from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.regime import Asked, Asks, SteppedFleet, at_least, measured, measured_in, one_of, require

#: Requests of a problem, beyond which the search may take longer than a check may.
_MOST_REQUESTS = 20_000


@measured(
    "replete-optimum",
    c_max=at_least(1, "a free slot somewhere"),
    spread=at_least(0, "loads that differ by 0 tokens or more"),
    steps=at_least(1, "at least one step to look at"),
    time_limit=(Asked(lambda seconds: seconds > 0, "a time limit above 0 s"),),
)
def measure_optimum(
    *,
    G: int = 8,
    c_max: int = 10,
    s_max: int = 6,
    pool: str = "two",
    spread: int = 60,
    steps: int = 50,
    time_limit: float = 5.0,
    seed: int,
) -> list[Finding]:
    """Solve random replete steps by the exact search too; both kinds of optimum must cost what it proves.

    Parameters
    ----------
    c_max
        Most free slots of a worker.
    s_max
        Largest prompt, tokens.
    pool
        "all": the pool holds every size up to s_max; "two": 1 and s_max alone.
    spread
        Largest difference of loads before admission, tokens.
    steps
        Number of steps.
    time_limit
        Seconds for each step.
    """
    claim = "replete-optimum"
    law = POOLS[pool](s_max)
    most = G * c_max * len(law.lengths)
    require(claim, most <= _MOST_REQUESTS, f"steps of at most {_MOST_REQUESTS:,} requests here", f"there are {most:,}")
    rng = np.random.default_rng(np.random.SeedSequence([seed, 50, G, c_max, s_max, spread]))
    drawn = [(rng.integers(0, spread + 1, G), rng.integers(0, c_max + 1, G)) for _ in range(steps)]
    answers = [solve(_problem(before, free, law.lengths), "search", time_limit) for before, free in drawn]
    rows = []
    for peak in PEAKS:
        costs = [level(before, free, law, peak=peak) for before, free in drawn]
        misses = [
            abs(cost - int(answer.objective or 0)) + abs(cost - (G * int(loads.max()) - int(loads.sum())))
            for (cost, loads), answer in zip(costs, answers, strict=True)
            if answer.status == "optimal"
        ]
        regime = f"G={G}, c<={c_max}, {law.name}, loads<={spread}, {peak} peak"
        quantity = "imbalance of the closed form against `lbopt solve`, largest difference (tokens)"
        rows.append(Finding.exact(regime, quantity, misses, relation="=", undecided=steps - len(misses)))
    return rows


def _problem(before: object, free: np.ndarray[tuple[int], np.dtype[np.int64]], sizes: tuple[int, ...]) -> StepProblem:
    return StepProblem.now(before, free, np.repeat(sizes, int(free.sum())))


_CLOSED_FORM = (
    claim(
        "replete-optimum",
        measure_optimum,
        quick=({}, {"pool": "all", "G": 16, "spread": 150}),
        full=(
            {"steps": 500},
            {"steps": 500, "pool": "all", "G": 16, "spread": 150},
            {"steps": 200, "c_max": 30, "s_max": 8, "spread": 200},
            {"steps": 200, "G": 32, "c_max": 8, "s_max": 9, "spread": 80},
            {"steps": 500, "G": 4, "c_max": 5, "s_max": 5, "spread": 30},
        ),
    ),
)


IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ComposedFleet(SteppedFleet):
    """A fleet whose admitted sums are made up in a given way.

    Parameters
    ----------
    composition
        "even" or "extreme", as in `Replete`.
    """

    B: int = 256
    composition: str = "even"
    asks: ClassVar[Asks] = {"composition": one_of(COMPOSITIONS, "one of the compositions")}


@measured_in("lemma-2-steps", ComposedFleet)
def measure_steps(at: ComposedFleet, seed: int) -> list[Finding]:
    """Hold the gap of every step against both forms of the corrected lemma."""
    law, run = at.law, at.run(seed, composition=at.composition)
    regime = f"{at}, {law.name}, {at.peak} peak, {at.composition}"
    return [
        held_against(regime, "the bound", run, corrected_bounds(run, law)),
        held_against(regime, "the sharper bound", run, sharp_bounds(run, law)),
    ]


def corrected_bounds(run: RepleteRun, law: PromptLaw) -> IntArray:
    """Return (s - 2) + (D_pre - [s min c - (s - 1) max c])^+ of each step, tokens."""
    s = law.largest
    return np.asarray(s - 2 + np.maximum(0, run.steps.gap_pre - (s * run.steps.fewest - (s - 1) * run.steps.most)))


def sharp_bounds(run: RepleteRun, law: PromptLaw) -> IntArray:
    """Return max{d - 1, (d - 1) + D_pre - [s min c - (s - d) max c]} of each step, for sizes in steps of d."""
    _, d, _ = progression(law)
    s = law.largest
    return np.asarray(d - 1 + np.maximum(0, run.steps.gap_pre - (s * run.steps.fewest - (s - d) * run.steps.most)))


def held_against(regime: str, name: str, run: RepleteRun, bound: IntArray) -> Finding:
    """Return the row of the gaps of a run over a bound.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    bound
        int64, (steps,): bound in each step, tokens.
    """
    gap = run.steps.gap
    note = (
        f"{int((gap == bound).sum())} steps meet it with equality; mean gap {gap.mean():.4g}, "
        f"largest {int(gap.max())}, mean size admitted {run.mean_admitted:.3g}"
    )
    return Finding.exact(regime, f"gap after admission over {name} (tokens)", gap - bound, note=note)


@dataclass(frozen=True, kw_only=True)
class EvenFleet(SteppedFleet):
    """A fleet whose free slots are to be even.

    Parameters
    ----------
    eta
        In (0, 1): a regular step takes at least eta p B off the gap.
    """

    B: int = 4096
    eta: float = 0.5
    steps: int = 500
    asks: ClassVar[Asks] = {"eta": (Asked(lambda eta: 0 < eta < 1, "0 < eta < 1"),)}


@measured_in("lemma-2-event", EvenFleet, without=("pool", "peak"))
def measure_regular(at: EvenFleet, seed: int) -> list[Finding]:
    """Count the steps outside E_k, and compute how probable they are."""
    delta = deviation(at.eta, at.s_max)
    missed = int((~at.run(seed).regular(delta)).sum())
    regime = f"{at}, s_max={at.s_max}, eta={at.eta:g}"
    return event_rows(regime, missed, at.steps, at.chain(), delta)


def event_rows(
    regime: str, missed: int, steps: int, of: Replete, delta: float, bound: float | None = None
) -> list[Finding]:
    """Return the rows of P(E_k^c): counted against computed, computed against the bound, counted against the bound.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    missed
        Number of steps outside E_k, of `steps`.
    bound
        Bound on P(E_k^c); None takes the lemma's.
    """
    exact = missing_probability(of.G, of.B, of.p, delta)
    bound = irregular(of.G, of.B, of.p, delta) if bound is None else bound
    outside = f"the bound is {bound:.3g}: it says nothing" if bound >= 1 else ""
    counted: dict[str, Any] = {"regime": regime, "kind": "frequency", "measured": missed / steps, "trials": steps}
    name = "2 G exp(-delta^2 p B / 3)"
    return [
        Finding(quantity="steps outside E_k, against G binomials", relation="=", predicted=exact, **counted),
        Finding.computed(regime, f"P(E_k^c) from G binomials, against {name}", exact, "<=", bound, outside=outside),
        Finding(
            quantity=f"steps outside E_k, against {name}", relation="<=", predicted=bound, outside=outside, **counted
        ),
    ]


def missing_probability(G: int, B: int, p: float, delta: float) -> float:
    """Return P(E_k^c) of G independent Bin(B, p), summed from its tails: exact also where it is tiny.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    """
    law, middle = stats.binom(B, p), p * B
    low, high = np.ceil((1 - delta) * middle), np.floor((1 + delta) * middle)
    tails = float(law.cdf(low - 1) + law.sf(high))
    return float(-np.expm1(G * np.log1p(-min(tails, 1 - 1e-16))))


_FLEETS = tuple(
    {"G": G, "B": B, "p": p, "s_max": s_max}
    for G, B, p, s_max in (
        (8, 64, 0.5, 4),
        (8, 256, 0.5, 4),
        (8, 1024, 0.5, 4),
        (8, 4096, 0.5, 4),
        (8, 256, 0.2, 4),
        (8, 1024, 0.2, 4),
        (16, 4096, 0.1, 8),
        (256, 256, 0.2, 6),
        (8, 1024, 0.02, 10),
        (8, 16384, 0.02, 10),
    )
)

_OF_STEPS = (
    claim(
        "lemma-2-steps",
        measure_steps,
        quick=(*_FLEETS[:3], *_FLEETS[4:6], *_FLEETS[8:9], {**_FLEETS[1], "pool": "all", "peak": "raised"}),
        full=tuple(
            {**fleet, "pool": pool, "peak": peak, "composition": composition, "steps": 2_000}
            for fleet in _FLEETS
            for pool, peak, composition in (
                ("two", "lowest", "even"),
                ("two", "raised", "even"),
                ("all", "lowest", "extreme"),
                ("all", "raised", "even"),
            )
        ),
    ),
    claim(
        "lemma-2-event",
        measure_regular,
        quick=({}, {"B": 64}, {"B": 8192, "steps": 200}),
        full=(
            {"steps": 4_000},
            {"B": 64, "steps": 4_000},
            {"B": 8192, "steps": 4_000},
            {"p": 0.9, "s_max": 2, "B": 512, "steps": 4_000},
            {"G": 16, "p": 0.1, "s_max": 3, "B": 16384, "steps": 1_000},
        ),
    ),
)
CLAIMS = (*_CLOSED_FORM, *_OF_STEPS)
