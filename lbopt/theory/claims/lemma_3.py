r"""Lemma 3 of BF-IO: the noise that ends inject into the gap before admission, its tail and its size.

The printed threshold t(Lambda) bounds the noise of every worker by the largest size M and the gap by twice the largest
noise. A smaller one follows from pairs of workers. Let a be the sizes after growth, e whether a slot ends, and
N_g = sum_b a_gb (p - e_gb). Then D_pre <= (1-p) D + max_(g,h) (N_g - N_h), where N_g - N_h is a sum of independent
terms of at most c = M max(p, 1-p), with a variance of at most 2 V, V = p (1-p) max_g sum_b a_gb^2. By Bernstein's
inequality, over the G (G-1) ordered pairs,

    P(D_pre > (1-p) D + u(Lambda)) <= G (G-1) e^-Lambda,  u = c Lambda / 3 + sqrt((c Lambda / 3)^2 + 4 V Lambda).

M and V are known before the ends are drawn.

Steps depend on each other, but given the past each one exceeds the threshold with at most the claimed probability. So
the number of exceedances is, in law, at most binomial (an adaptive sequence of such events is dominated by independent
ones), and too many of them refute the claim at the level of the binomial test.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lbopt.theory.chains.batch_means import Average, fitted_slope, steps_mean
from lbopt.theory.chains.replete import RepleteRun
from lbopt.theory.claim import claim
from lbopt.theory.finding import REFUTING_CONFIDENCE, Finding
from lbopt.theory.laws.gap_bounds import noise, outside_onset
from lbopt.theory.laws.normal_maximum import expected_maximum, range_deviation
from lbopt.theory.regime import DoubledFleet, SteppedFleet, measured_in

#: Lambda = log(2 G) + j.
_EXTRA = (1, 2, 3, 4, 6, 8)

#: The size of the noise is a limit for large B; from 4 B* on it is right to this share.
SIZE_SHARE = 0.03


@measured_in("lemma-3", SteppedFleet, B=512, p=0.3, s_max=8, steps=3_000)
def measure_tail(at: SteppedFleet, seed: int) -> list[Finding]:
    """Count the steps whose gap before admission is beyond the threshold, for six values of Lambda."""
    return tail_rows(f"{at}, {at.law.name}{at.raised}", at.run(seed))


def tail_rows(regime: str, run: RepleteRun, scale: float = 1.0) -> list[Finding]:
    """Return a row for each Lambda and both thresholds, which are taken times `scale`."""
    G, B, p = run.of.G, run.of.B, run.of.p
    excess = run.steps.gap_pre - (1 - p) * run.steps.gap_before
    rows = []
    for extra in _EXTRA:
        printed = noise(B, p, 1.0, math.log(2 * G) + extra) * run.steps.envelope
        for name, threshold in (
            (f"t(log 2G + {extra})", printed),
            (f"u(log G(G-1) + {extra})", pair_noise(run, math.log(G * (G - 1)) + extra)),
        ):
            ratio = excess / (scale * threshold)
            refuted = _refuted_share(ratio, math.exp(-extra), 2 * len(_EXTRA))
            rows.append(
                Finding(
                    regime=regime,
                    quantity=f"steps with D_pre > (1-p) D + {name}",
                    kind="frequency",
                    relation="<=",
                    measured=float((ratio > 1).mean()),
                    predicted=math.exp(-extra),
                    **_judged(ratio.size, refuted, name[0]),
                )
            )
    return rows


def pair_noise(run: RepleteRun, exponent: float) -> NDArray[np.float64]:
    """Return u(Lambda) of each step, float64 (steps,), tokens: see the module."""
    p = run.of.p
    bounded = run.steps.envelope * max(p, 1 - p) * exponent / 3
    spread = 4 * p * (1 - p) * run.steps.heaviest * exponent
    return np.asarray(bounded + np.sqrt(bounded**2 + spread))


def _refuted_share(ratio: NDArray[np.float64], chance: float, share: int) -> float:
    """Return the share of its threshold that these steps refute, 0 for none; `ratio` is excess over threshold."""
    most = ratio.size
    refuted = int(stats.binom.isf((1 - REFUTING_CONFIDENCE) / share, most, chance)) + 1
    return max(0.0, float(np.partition(ratio, most - refuted)[most - refuted])) if refuted <= most else 0.0


def _judged(trials: int, refuted: float, name: str) -> dict[str, Any]:
    """Return the fields of a finding that say how much smaller a threshold the steps would refute."""
    note = "no smaller threshold is refuted"
    if refuted > 0:
        note = f"{name} times {refuted:.3g} is refuted: loose by a factor of {1 / refuted:.3g}"
    note += "; dominated by a binomial count, step by step given the past"
    return {"trials": trials, "refuted_share": refuted, "note": note}


@measured_in("lemma-3-size", DoubledFleet, without=("B", "pool", "peak"), s_max=8, pool="all", batches=40)
def measure_size(at: DoubledFleet, seed: int) -> list[Finding]:
    """Run chains from B = 4 B* on, doubling B, and compare the noise with that of G normals.

    With all sizes in the pool the gap D(k-1) is 0, so that D_pre is noise and nothing else.
    """
    outside = [outside_onset(at.G, B, at.p, at.law) for B in at.fleets]
    return size_rows(f"p={at.p:g}, {at.law.name}", at.runs(seed, 31), at.length, outside)


def size_rows(what: str, runs: list[RepleteRun], length: int, outside: list[str]) -> list[Finding]:
    """Return mean and deviation of D_pre - (1-p) D over sqrt(p (1-p) B) rms, fleet by fleet, and the exponent of B.

    Parameters
    ----------
    runs
        Runs, one for each fleet.
    length
        Steps of a batch.
    outside
        Why the regime is outside the hypotheses; empty where it is inside.
    """
    rows, deviations, errors = [], [], []
    for run, why in zip(runs, outside, strict=True):
        G, B, p = run.of.G, run.of.B, run.of.p
        size = math.sqrt(float(run.mean_square.mean()))
        unit = math.sqrt(p * (1 - p) * B) * size
        injected = (run.steps.gap_pre - (1 - p) * run.steps.gap_before) / unit
        middle = steps_mean(injected, length)
        second = steps_mean((injected - middle.mean) ** 2, length)
        root = math.sqrt(second.mean)
        deviation = replace(second, mean=root, error=second.error / (2 * root))
        deviations.append(deviation.mean * unit / size)
        errors.append(deviation.error * unit / size)
        for name, found, law in (
            ("mean", middle, 2 * expected_maximum(G)),
            ("deviation", deviation, range_deviation(G)),
        ):
            quantity = f"{name} of D_pre - (1-p) D, over sqrt(p(1-p)B) rms size"
            rows += found.findings(
                f"G={G}, B={B}, {what}", quantity, law, (1 - SIZE_SHARE, 1 + SIZE_SHARE), outside=why
            )
    fleets = [run.of.B for run in runs]
    exponent = Average(*fitted_slope(fleets, deviations, errors), None, sum(run.steps.size for run in runs))
    regime = f"G={runs[0].of.G}, B={fleets[0]}..{fleets[-1]}, {what}"
    quantity = "exponent of B in the deviation of D_pre - (1-p) D, over the rms size"
    return [*rows, exponent.finding(regime, quantity, 0.5, outside=next((why for why in outside if why), ""))]


#: One pair of workers, of which no union is taken, and noise that is normal: there the threshold is sharpest.
_PAIR = {"G": 2, "B": 1024, "p": 0.5, "s_max": 64, "pool": "all", "peak": "raised"}

CLAIMS = (
    claim(
        "lemma-3",
        measure_tail,
        quick=({}, _PAIR, {"B": 64, "p": 0.1}, {"B": 1024, "p": 0.02, "s_max": 10, "steps": 2_000}),
        full=(
            {**_PAIR, "steps": 400_000},
            *(
                {"G": G, "B": B, "p": p, "s_max": s_max, "steps": 20_000}
                for G, B, p, s_max in (
                    (8, 512, 0.3, 8),
                    (8, 64, 0.1, 8),
                    (2, 16, 0.5, 4),
                    (32, 256, 0.9, 4),
                    (8, 1024, 0.02, 10),
                )
            ),
        ),
    ),
    claim(
        "lemma-3-size",
        measure_size,
        quick=({},),
        full=(
            {"doublings": 6, "batches": 100},
            {"G": 16, "p": 0.2, "batches": 60},
            {"G": 2, "p": 0.9, "s_max": 4, "batches": 100},
        ),
    ),
)
