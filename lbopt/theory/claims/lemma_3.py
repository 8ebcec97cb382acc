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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lbopt.theory.chains.batch_means import ChainMean, batch_steps, chain_mean, fitted_slope, mean_finding
from lbopt.theory.chains.replete import RepleteRun, run_replete
from lbopt.theory.claim import claim
from lbopt.theory.finding import REFUTING_CONFIDENCE, Finding
from lbopt.theory.hypotheses import require
from lbopt.theory.laws.gap_bounds import CLEAR, noise, onset, outside_onset
from lbopt.theory.laws.normal_maximum import expected_maximum, range_deviation
from lbopt.theory.regime import BatchedFleet, SteppedFleet, measured_in

#: Lambda = log(2 G) + j.
_EXTRA = (1, 2, 3, 4, 6, 8)

#: The size of the noise is a limit for large B; from 4 B* on it is right to this share.
SIZE_SHARE = 0.03


@measured_in("lemma-3", SteppedFleet, B=512, p=0.3, s_max=8, steps=3_000)
def measure_tail(at: SteppedFleet, seed: int) -> list[Finding]:
    """Count the steps whose gap before admission is beyond the threshold, for six values of Lambda."""
    run = run_replete(at.G, at.B, at.p, at.law, at.steps, None, seed, peak=at.peak)
    return tail_rows(f"{at}, {at.law.name}{at.raised}", run)


def tail_rows(regime: str, run: RepleteRun, scale: float = 1.0) -> list[Finding]:
    """Return a row for each Lambda and both thresholds, which are taken times `scale`."""
    excess = run.gap_pre - (1 - run.p) * run.gap_before
    pairs = run.G * (run.G - 1)
    rows = []
    for extra in _EXTRA:
        printed = noise(run.B, run.p, 1.0, math.log(2 * run.G) + extra) * run.envelope
        for name, threshold in (
            (f"t(log 2G + {extra})", printed),
            (f"u(log G(G-1) + {extra})", pair_noise(run, math.log(pairs) + extra)),
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
                    trials=excess.size,
                    refuted_share=refuted,
                    note=_looseness(refuted, name[0]) + "; dominated by a binomial count, step by step given the past",
                )
            )
    return rows


def pair_noise(run: RepleteRun, exponent: float) -> NDArray[np.float64]:
    """Return u(Lambda) of each step, float64 (steps,), tokens: see the module."""
    bounded = run.envelope * max(run.p, 1 - run.p) * exponent / 3
    spread = 4 * run.p * (1 - run.p) * run.heaviest * exponent
    return np.asarray(bounded + np.sqrt(bounded**2 + spread))


def _refuted_share(ratio: NDArray[np.float64], chance: float, share: int) -> float:
    """Return the share of its threshold that these steps refute, 0 for none; `ratio` is excess over threshold."""
    most = ratio.size
    refuted = int(stats.binom.isf((1 - REFUTING_CONFIDENCE) / share, most, chance)) + 1
    return max(0.0, float(np.partition(ratio, most - refuted)[most - refuted])) if refuted <= most else 0.0


def _looseness(refuted: float, name: str) -> str:
    """Return in words how much smaller a threshold the steps would refute."""
    if refuted <= 0:
        return "no smaller threshold is refuted"
    return f"{name} times {refuted:.3g} is refuted: loose by a factor of {1 / refuted:.3g}"


@dataclass(frozen=True, kw_only=True)
class NoisyFleet(BatchedFleet):
    """Fleets from B = 4 B* on, with all sizes in the pool.

    Parameters
    ----------
    doublings
        Number of times that B is doubled.
    """

    B: int = 1
    s_max: int = 8
    pool: str = "all"
    doublings: int = 4
    batches: int = 40

    def require(self, claim: str) -> None:
        """Refuse fewer than two doublings, and fleets too large to run."""
        super().require(claim)
        require(claim, 2 <= self.doublings <= 8, "2 to 8 doublings of B", f"doublings is {self.doublings}")
        first, slots = self.fleets[0], self.G * self.fleets[-1]
        require(claim, slots <= 2**24, "fleets of at most 2^24 slots", f"4 B* is {first}: they would be larger")

    @property
    def fleets(self) -> list[int]:
        """The slots of a worker, fleet by fleet."""
        first = math.ceil(CLEAR * onset(self.G, self.p, self.law))
        return [first * 2**i for i in range(self.doublings)]


@measured_in("lemma-3-size", NoisyFleet, without=("B", "pool", "peak"))
def measure_size(at: NoisyFleet, seed: int) -> list[Finding]:
    """Run chains from B = 4 B* on, doubling B, and compare the noise with that of G normals.

    With all sizes in the pool the gap D(k-1) is 0, so that D_pre is noise and nothing else.
    """
    length = batch_steps(at.p)
    seeds = np.random.SeedSequence([seed, 31]).generate_state(at.doublings).tolist()
    runs = [
        run_replete(at.G, B, at.p, at.law, at.batches * length, None, own)
        for B, own in zip(at.fleets, seeds, strict=True)
    ]
    outside = [outside_onset(at.G, B, at.p, at.law) for B in at.fleets]
    return size_rows(f"p={at.p:g}, {at.law.name}", runs, length, outside)


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
        size = math.sqrt(float(run.mean_square.mean()))
        unit = math.sqrt(run.p * (1 - run.p) * run.B) * size
        injected = (run.gap_pre - (1 - run.p) * run.gap_before) / unit
        middle = chain_mean(_batches(injected, length), length)
        second = chain_mean(_batches((injected - middle.mean) ** 2, length), length)
        root = math.sqrt(second.mean)
        deviation = ChainMean(root, second.error / (2 * root), second.dof, second.steps)
        deviations.append(deviation.mean * unit / size)
        errors.append(deviation.error * unit / size)
        regime = f"G={run.G}, B={run.B}, {what}"
        rows += _rows(regime, "mean", middle, 2 * expected_maximum(run.G), why)
        rows += _rows(regime, "deviation", deviation, range_deviation(run.G), why)
    exponent, error = fitted_slope([run.B for run in runs], deviations, errors)
    return [
        *rows,
        Finding(
            regime=f"G={runs[0].G}, B={runs[0].B}..{runs[-1].B}, {what}",
            quantity="exponent of B in the deviation of D_pre - (1-p) D, over the rms size",
            kind="mean",
            relation="=",
            measured=exponent,
            predicted=0.5,
            error=error,
            trials=sum(run.gap.size for run in runs),
            outside=next((why for why in outside if why), ""),
        ),
    ]


def _rows(regime: str, name: str, found: ChainMean, predicted: float, outside: str) -> list[Finding]:
    quantity = f"{name} of D_pre - (1-p) D, over sqrt(p(1-p)B) rms size"
    sides = ((">=", 1 - SIZE_SHARE), ("<=", 1 + SIZE_SHARE))
    return [
        mean_finding(found, side, share * predicted, regime=regime, quantity=quantity, outside=outside)
        for side, share in sides
    ]


def _batches(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    return np.asarray(values.reshape(-1, length).mean(axis=1))


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
