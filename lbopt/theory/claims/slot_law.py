"""The stationary law of a slot (BF-IO, steps 2.A and 2.B, equations 25 and 26), by a test of fit and by its moments."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lbopt.kernels.sampling.fcfs_chain import slot_ages
from lbopt.theory.chains.batch_means import burn_in_steps
from lbopt.theory.chains.memory import require_memory
from lbopt.theory.chains.streams import slot_streams
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_geometric, require_prompts
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.slot_law import age_variance, snapshot_variance
from lbopt.theory.verdict import Verdict

#: Cells of the test of fit expect at least so many samples.
_LEAST_EXPECTED = 10

#: Ages below some 40/p are counted one by one.
LEAST_P = 1e-5

#: Streams, ages and prompts, and what the tests make of them.
_BYTES_PER_SAMPLE = 80

#: Slots followed at a time; their arrays take 32 bytes each.
_BLOCK = 1 << 20


def measure_slot_law(*, p: float = 0.2, s_max: int = 8, samples: int = 200_000, seed: int) -> list[Finding]:
    """Follow `samples` slots beyond their burn-in, and look at each once.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    samples
        Number of slots.
    seed
        Seed of the samples.
    """
    require_geometric("slot-law", p)
    require_prompts("slot-law", s_max)
    require("slot-law", p >= LEAST_P, f"ages that can be counted, so p of at least {LEAST_P:g}", f"p is {p}")
    require("slot-law", samples >= 1000, "enough samples for a test of fit, at least 1000", f"samples is {samples}")
    require_memory(samples * _BYTES_PER_SAMPLE, f"slot-law with {samples:,} samples", "fewer samples")
    law = PromptLaw.uniform(s_max)
    age, came = _sampled(law, p, samples, seed)
    regime = f"p={p:g}, {law.name}"
    size = age + came
    expected = snapshot_variance(law, p)
    squares = (size - size.mean()) ** 2
    product = (age - age.mean()) * (came - came.mean()) / math.sqrt(age_variance(p) * float(law.variance))
    root = math.sqrt(samples)
    return [
        _fit(regime, "age against p (1-p)^a: p-value of chi-square", age, _age_shares(p, int(age.max()))),
        _fit(
            regime,
            "prompt of a running request against the prompt law: p-value of chi-square",
            came,
            law.probabilities(),
        ),
        Finding(
            regime=regime,
            quantity="variance of a slot (tokens²)",
            kind="mean",
            relation="=",
            measured=float(squares.mean()),
            predicted=expected,
            error=float(squares.std()) / root,
            trials=samples,
        ),
        Finding(
            regime=regime,
            quantity="correlation of age and prompt",
            kind="mean",
            relation="=",
            measured=float(product.mean()),
            predicted=0.0,
            error=float(product.std()) / root,
            trials=samples,
        ),
    ]


def _sampled(law: PromptLaw, p: float, samples: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    value, threshold, other = law.aliases()
    streams = slot_streams(seed, samples)
    age, came = np.empty(samples, np.int64), np.empty(samples, np.int64)
    step = burn_in_steps(1, samples, p)
    for start in range(0, samples, _BLOCK):
        part = slice(start, start + _BLOCK)
        slot_ages(streams[part], math.log1p(-p), value, threshold, other, step, age[part], came[part])
    return age, came


def _age_shares(p: float, oldest: int) -> NDArray[np.float64]:
    """Return the probability of the ages 0 .. `oldest`, and of all above it in the last entry."""
    shares = p * (1 - p) ** np.arange(oldest + 2, dtype=np.float64)
    shares[-1] = (1 - p) ** (oldest + 1)
    return shares


def _fit(regime: str, quantity: str, sample: NDArray[np.int64], shares: NDArray[np.float64]) -> Finding:
    """Test the sample against the shares of 0, 1, ..., with scarce values merged from above until each is expected."""
    observed, wanted = _merged(np.bincount(sample, minlength=shares.size).astype(np.float64), shares * sample.size)
    chance = 1.0  # where all falls into one cell, nothing can be distinguished from the claim
    if observed.size > 1:
        chance = float(stats.chisquare(observed, wanted * (observed.sum() / wanted.sum())).pvalue)
    return Finding(
        regime=regime,
        quantity=quantity,
        kind="fit",
        relation="=",
        measured=chance,
        predicted=1.0,
        trials=sample.size,
        note=f"{observed.size} cells" if observed.size > 1 else "a single cell: no test",
    )


def _merged(
    observed: NDArray[np.float64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    cells: list[tuple[float, float]] = []
    seen = expected = 0.0
    for value in range(wanted.size - 1, -1, -1):
        seen, expected = seen + observed[value], expected + wanted[value]
        if expected >= _LEAST_EXPECTED:
            cells.append((seen, expected))
            seen = expected = 0.0
    if expected > 0 or seen > 0:  # what is left joins the last cell
        last = cells.pop()
        cells.append((last[0] + seen, last[1] + expected))
    return np.array([one[0] for one in cells]), np.array([one[1] for one in cells])


CLAIMS = (
    Claim(
        name="slot-law",
        title="The law of a slot",
        source="BF-IO, section 3 of the proofs, equations (25) and (26)",
        statement=r"A slot that ends with probability $p$ in every step and is refilled at once has, in the long run, "
        r"the size $Y = s + A$ with $P(A=a) = p(1-p)^a$ independent of $s$, so "
        r"$\mathrm{Var}\,Y = \sigma_s^2 + \frac{1-p}{p^2} = \sigma_{snap}^2$.",
        refuted_by="A test of fit, a variance or a correlation of sampled slots outside the joint region.",
        measure=measure_slot_law,
        quick=({}, {"p": 0.02, "s_max": 100}),
        full=({"samples": 10_000_000}, {"p": 0.02, "s_max": 100, "samples": 10_000_000}),
        expected=Verdict.HOLDS,
    ),
)
