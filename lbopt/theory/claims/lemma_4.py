"""Lemma 4 of BF-IO, as printed and corrected: the gap that exact BF-IO leaves on average."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from lbopt.theory.chains.batch_means import steps_mean
from lbopt.theory.chains.replete import RepleteRun
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.gap_bounds import GapBound, least_bound, least_gap, onset, outside_onset, usual_bound
from lbopt.theory.regime import BatchedFleet, DoubledFleet, measured_in

#: A proved bound beyond so many times the printed one says nothing.
_USEFUL = 10


@measured_in("lemma-4-printed", BatchedFleet)
def measure_printed(at: BatchedFleet, seed: int) -> list[Finding]:
    """Average gap and imbalance of one chain, in batches of at least 20/p steps, after log(1000 G B)/p steps."""
    return printed_rows(f"{at}, {at.law.name}{at.raised}", at.run(seed), at.length)


def printed_rows(regime: str, run: RepleteRun, length: int) -> list[Finding]:
    """Return mean gap and mean imbalance of a run against s_max / p and (G - 1) s_max / p.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    length
        Steps of a batch.
    """
    G, B, p, law = run.of.G, run.of.B, run.of.p, run.of.law
    condition = usual_bound(G, B, p, law.largest)
    note = (
        f"B/B* = {B / onset(G, p, law):.3g}; (19) with Lambda = 4 log GB, T = 4/p log GB and eta = 1/2 "
        f"{'holds' if condition.holds else 'fails'}: t_B = {condition.noise:,.0f} against {p * B / 2:,.0f}"
    )
    more: dict[str, Any] = {"outside": outside_onset(G, B, p, law), "note": note}
    gap, imbalance = steps_mean(run.steps.gap, length), steps_mean(run.steps.imbalance, length)
    return [
        gap.finding(regime, "mean gap D (tokens)", law.largest / p, "<=", **more),
        imbalance.finding(regime, "mean imbalance (tokens)", (G - 1) * law.largest / p, "<=", **more),
    ]


@measured_in("lemma-4", BatchedFleet)
def measure_corrected(at: BatchedFleet, seed: int) -> list[Finding]:
    """The same chain against the corrected form: s_max - 2 from 4 B* on, and the proved bound where it is finite."""
    proved = least_bound(at.G, at.B, at.p, at.s_max)
    return corrected_rows(f"{at}, {at.law.name}{at.raised}", at.run(seed), at.length, proved)


def corrected_rows(regime: str, run: RepleteRun, length: int, proved: GapBound) -> list[Finding]:
    """Return the mean gap of a run against s_max - 2, and against s_max - 2 + eps_B / p.

    Parameters
    ----------
    regime
        The regime in the words of the report.
    length
        Steps of a batch.
    """
    G, B, p, law = run.of.G, run.of.B, run.of.p, run.of.law
    gap = steps_mean(run.steps.gap, length)
    useful = proved.bound < _USEFUL * law.largest / p
    says = f"the proof's bound is {proved.bound:.4g}" + ("" if useful else ": it says nothing")
    note = (
        f"{says}; largest gap {int(run.steps.gap.max())}, mean imbalance {run.steps.imbalance.mean():.4g}, "
        f"B/B* = {B / onset(G, p, law):.3g}"
    )
    outside = outside_onset(G, B, p, law)
    quantity = "mean gap D (tokens), asymptotically"
    rows = [gap.finding(regime, quantity, least_gap(law.largest), "<=", outside=outside, note=note)]
    if useful:
        chosen = f"eta = {proved.eta:g}, Lambda = {proved.exponent:.3g}, T = {proved.age}, eps_B = {proved.epsilon:.3g}"
        rows.append(gap.finding(regime, "mean gap D (tokens), as proved", proved.bound, "<=", note=chosen))
    return rows


@measured_in("lemma-4-flat", DoubledFleet, without=("B", "peak"))
def measure_flat(at: DoubledFleet, seed: int) -> list[Finding]:
    """Run chains from B = 4 B* on, doubling B: the mean gap at each against that of the first."""
    return flat_rows(at.runs(seed, 41), at.length)


def flat_rows(runs: list[RepleteRun], length: int) -> list[Finding]:
    """Return the mean gap of each run less that of the first: it must not have grown."""
    first, start = runs[0].of, steps_mean(runs[0].steps.gap, length)
    rows = []
    for run in runs[1:]:
        B, found = run.of.B, steps_mean(run.steps.gap, length)
        grown = replace(found, mean=found.mean - start.mean, error=math.hypot(found.error, start.error))
        regime = f"G={first.G}, B={B} and {first.B}, p={first.p:g}, {first.law.name}"
        note = f"mean gap {found.mean:.4g} after {start.mean:.4g}; sqrt(B) grew by {math.sqrt(B / first.B):.3g}"
        rows.append(grown.finding(regime, "growth of the mean gap with B (tokens)", 0.0, "<=", note=note))
    return rows


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
