"""Lemma 4 of BF-IO, as printed and corrected: the gap that exact BF-IO leaves on average."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lbopt.theory.chains.batch_means import (
    ChainMean,
    batch_steps,
    burn_in_steps,
    mean_finding,
    steps_mean,
)
from lbopt.theory.chains.replete import RepleteRun, run_replete
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require
from lbopt.theory.laws.gap_bounds import CLEAR, GapBound, least_bound, least_gap, onset, outside_onset, usual_bound
from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.regime import BatchedFleet, measured_in

#: A proved bound beyond so many times the printed one says nothing.
_USEFUL = 10


@measured_in("lemma-4-printed", BatchedFleet)
def measure_printed(at: BatchedFleet, seed: int) -> list[Finding]:
    """Average gap and imbalance of one chain, in batches of at least 20/p steps, after log(1000 G B)/p steps."""
    run, length = _run(at, seed)
    return printed_rows(f"{at}, {at.law.name}{at.raised}", run, length, at.law)


def printed_rows(regime: str, run: RepleteRun, length: int, law: PromptLaw) -> list[Finding]:
    """Return mean gap and mean imbalance of a run against s_max / p and (G - 1) s_max / p.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    length
        Steps of a batch.
    """
    outside = outside_onset(run.G, run.B, run.p, law)
    condition = usual_bound(run.G, run.B, run.p, law.largest)
    note = (
        f"B/B* = {run.B / onset(run.G, run.p, law):.3g}; (19) with Lambda = 4 log GB, T = 4/p log GB and eta = 1/2 "
        f"{'holds' if condition.holds else 'fails'}: t_B = {condition.noise:,.0f} against {run.p * run.B / 2:,.0f}"
    )
    bound = law.largest / run.p
    return [
        _row(regime, "mean gap D (tokens)", steps_mean(run.gap, length), bound, outside, note),
        _row(regime, "mean imbalance (tokens)", steps_mean(run.imbalance, length), (run.G - 1) * bound, outside, note),
    ]


@measured_in("lemma-4", BatchedFleet)
def measure_corrected(at: BatchedFleet, seed: int) -> list[Finding]:
    """The same chain against the corrected form: s_max - 2 from 4 B* on, and the proved bound where it is finite."""
    run, length = _run(at, seed)
    proved = least_bound(at.G, at.B, at.p, at.s_max)
    return corrected_rows(f"{at}, {at.law.name}{at.raised}", run, length, at.law, proved)


def corrected_rows(regime: str, run: RepleteRun, length: int, law: PromptLaw, proved: GapBound) -> list[Finding]:
    """Return the mean gap of a run against s_max - 2, and against s_max - 2 + eps_B / p.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    length
        Steps of a batch.
    """
    gap = steps_mean(run.gap, length)
    useful = proved.bound < _USEFUL * law.largest / run.p
    says = f"the proof's bound is {proved.bound:.4g}" + ("" if useful else ": it says nothing")
    rows = [
        _row(
            regime,
            "mean gap D (tokens), asymptotically",
            gap,
            least_gap(law.largest),
            outside_onset(run.G, run.B, run.p, law),
            f"{says}; largest gap {int(run.gap.max())}, mean imbalance {run.imbalance.mean():.4g}, "
            f"B/B* = {run.B / onset(run.G, run.p, law):.3g}",
        )
    ]
    if useful:
        chosen = f"eta = {proved.eta:g}, Lambda = {proved.exponent:.3g}, T = {proved.age}, eps_B = {proved.epsilon:.3g}"
        rows.append(_row(regime, "mean gap D (tokens), as proved", gap, proved.bound, "", chosen))
    return rows


@dataclass(frozen=True, kw_only=True)
class DoubledFleet(BatchedFleet):
    """Fleets from B = 4 B* on.

    Parameters
    ----------
    doublings
        Number of times that B is doubled.
    """

    B: int = 1
    doublings: int = 4

    def require(self, claim: str) -> None:
        """Refuse fewer than two doublings, and fleets too large to run."""
        super().require(claim)
        require(claim, 2 <= self.doublings <= 10, "2 to 10 doublings of B", f"doublings is {self.doublings}")
        slots = self.first * self.G * 2**self.doublings
        require(claim, slots <= 2**25, "fleets of at most 2^24 slots", f"4 B* is {self.first}: too large")

    @property
    def first(self) -> int:
        """The fewest slots, 4 B*."""
        return math.ceil(CLEAR * onset(self.G, self.p, self.law))


@measured_in("lemma-4-flat", DoubledFleet, without=("B", "peak"))
def measure_flat(at: DoubledFleet, seed: int) -> list[Finding]:
    """Run chains from B = 4 B* on, doubling B: the mean gap at each against that of the first."""
    length = batch_steps(at.p)
    seeds = np.random.SeedSequence([seed, 41]).generate_state(at.doublings).tolist()
    runs = [
        run_replete(at.G, at.first * 2**i, at.p, at.law, at.batches * length, None, own) for i, own in enumerate(seeds)
    ]
    return flat_rows(at.law, runs, length)


def flat_rows(law: PromptLaw, runs: list[RepleteRun], length: int) -> list[Finding]:
    """Return the mean gap of each run less that of the first: it must not have grown."""
    start = steps_mean(runs[0].gap, length)
    rows = []
    for run in runs[1:]:
        found = steps_mean(run.gap, length)
        grown = ChainMean(
            found.mean - start.mean, math.hypot(found.error, start.error), min(found.dof, start.dof), found.steps
        )
        rows.append(
            _row(
                f"G={run.G}, B={run.B} and {runs[0].B}, p={run.p:g}, {law.name}",
                "growth of the mean gap with B (tokens)",
                grown,
                0.0,
                "",
                f"mean gap {found.mean:.4g} after {start.mean:.4g}; sqrt(B) grew by {math.sqrt(run.B / runs[0].B):.3g}",
            )
        )
    return rows


def _run(at: BatchedFleet, seed: int) -> tuple[RepleteRun, int]:
    length, burn_in = batch_steps(at.p), burn_in_steps(at.G, at.B, at.p)
    return run_replete(at.G, at.B, at.p, at.law, at.batches * length, burn_in, seed, peak=at.peak), length


def _row(regime: str, quantity: str, found: ChainMean, predicted: float, outside: str, note: str) -> Finding:
    return mean_finding(found, "<=", predicted, regime=regime, quantity=quantity, outside=outside, note=note)


_INSIDE = tuple(
    {"G": G, "B": B, "p": p, "s_max": s_max}
    for G, B, p, s_max in (
        (8, 1024, 0.5, 4),
        (8, 8192, 0.5, 4),
        (8, 8192, 0.2, 4),
        (16, 16384, 0.1, 8),
        (2, 1024, 0.3, 8),
        (64, 2048, 0.5, 6),
    )
)
_BELOW = ({"G": 8, "B": 1024, "p": 0.02, "s_max": 10}, {"G": 8, "B": 256, "p": 0.2, "s_max": 4})
_WIDE = {"G": 64, "B": 1024, "p": 0.5, "s_max": 32}
_PROVED = tuple({"G": 8, "B": B, "p": p, "s_max": 2} for B, p in ((4096, 0.95), (8192, 0.9), (16384, 0.9)))
_WAYS: tuple[dict[str, str], ...] = ({}, {"peak": "raised"}, {"pool": "all"}, {"pool": "all", "peak": "raised"})

CLAIMS = (
    claim(
        "lemma-4-printed",
        measure_printed,
        quick=(_INSIDE[0], _INSIDE[4], *_BELOW),
        full=tuple({**fleet, **way, "batches": 40} for fleet in (*_INSIDE, *_BELOW) for way in (_WAYS[0], _WAYS[2])),
    ),
    claim(
        "lemma-4",
        measure_corrected,
        quick=(_INSIDE[0], _INSIDE[2], _WIDE, _PROVED[0], _BELOW[0]),
        full=(
            {**_WIDE, "batches": 100},
            *({**fleet, **way, "batches": 40} for fleet in (*_INSIDE, *_PROVED, *_BELOW) for way in _WAYS),
            {"G": 4, "B": 2**20, "p": 0.5, "s_max": 4},
        ),
    ),
    claim(
        "lemma-4-flat",
        measure_flat,
        quick=({},),
        full=(
            {"doublings": 7, "batches": 100},
            {"pool": "all", "doublings": 6},
            {"p": 0.2, "doublings": 5},
            {"G": 16, "s_max": 8, "doublings": 6},
        ),
    ),
)
