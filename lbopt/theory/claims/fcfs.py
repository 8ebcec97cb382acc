"""What FCFS costs: the law of a slot, the exact law against sampling, the sharp form against the exact law.

The stationary law of a slot (BF-IO, steps 2.A and 2.B, equations 25 and 26), by a test of fit and by its moments.

What FCFS costs (BF-IO, steps 2.C and 2.D): the exact law against sampling, the sharp form against the exact law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lbopt.kernels.sampling.fcfs_chain import Draws, slot_ages
from lbopt.theory.chains.batch_means import (
    Average,
    burn_in_steps,
    fitted_slope,
    require_memory,
    slope,
    slot_streams,
)
from lbopt.theory.chains.fcfs_chain import mean_fcfs_imbalance, steps_for
from lbopt.theory.claim import Regime, claim, crossed
from lbopt.theory.finding import Finding
from lbopt.theory.laws.load_law import load_law, sharp_imbalance, skewness_term, third_term
from lbopt.theory.laws.slot_law import (
    Growth,
    PromptLaw,
    SlotLaw,
    age_variance,
    slot_law,
    slot_law_seen,
    snapshot_variance,
)
from lbopt.theory.regime import USUAL, Asks, PromptFleet, at_least, between, measured, measured_in

#: Cells of the test of fit expect at least so many samples.
_LEAST_EXPECTED = 10

#: Ages below some 40/p are counted one by one.
LEAST_P = 1e-5

#: Streams, ages and prompts, and what the tests make of them.
_BYTES_PER_SAMPLE = 80

#: Slots followed at a time; their arrays take 32 bytes each.
_BLOCK = 1 << 20


@measured(
    "slot-law",
    p=at_least(LEAST_P, f"ages that can be counted, so p of at least {LEAST_P:g}"),
    samples=at_least(1000, "enough samples for a test of fit, at least 1000"),
)
def measure_slot_law(*, p: float = 0.2, s_max: int = 8, samples: int = 200_000, seed: int) -> list[Finding]:
    """Follow `samples` slots beyond their burn-in, and look at each once.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    """
    require_memory(samples * _BYTES_PER_SAMPLE, f"slot-law with {samples:,} samples", "fewer samples")
    law = PromptLaw.uniform(s_max)
    age, came = _sampled(law, p, samples, seed)
    regime = f"p={p:g}, {law.name}"
    size = age + came
    squares = (size - size.mean()) ** 2
    product = (age - age.mean()) * (came - came.mean()) / math.sqrt(age_variance(p) * float(law.variance))
    variance, correlation = (
        Average(float(each.mean()), float(each.std()) / math.sqrt(samples), None, samples)
        for each in (squares, product)
    )
    prompts = "prompt of a running request against the prompt law: p-value of chi-square"
    return [
        _fit(regime, "age against p (1-p)^a: p-value of chi-square", age, _age_shares(p, int(age.max()))),
        _fit(regime, prompts, came, law.probabilities()),
        variance.finding(regime, "variance of a slot (tokens²)", snapshot_variance(law, p)),
        correlation.finding(regime, "correlation of age and prompt", 0.0),
    ]


def _sampled(law: PromptLaw, p: float, samples: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    draws = Draws(math.log1p(-p), *law.aliases())
    streams = slot_streams(seed, samples)
    age, came = np.empty(samples, np.int64), np.empty(samples, np.int64)
    step = burn_in_steps(1, samples, p)
    for start in range(0, samples, _BLOCK):
        part = slice(start, start + _BLOCK)
        slot_ages(streams[part], draws, step, age[part], came[part])
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


_OF_SLOTS = (
    claim(
        "slot-law",
        measure_slot_law,
        quick=({}, {"p": 0.02, "s_max": 100}),
        full=({"samples": 10_000_000}, {"p": 0.02, "s_max": 100, "samples": 10_000_000}),
    ),
)


#: Where the sharp form is claimed to be right, and to which share of the exact value.
TRUSTED_SLOTS, TRUSTED_WORKERS, TRUSTED_SHARE = 256, 256, 0.002

#: There the third term is right to this share of the sum of its parts, or better.
THIRD_SHARE = 0.03

_LAWS: tuple[Regime, ...] = ({"p": 0.2, "s_max": 8}, {"p": 0.02, "s_max": 100})
_GRID: list[Regime] = [{"G": G, "B": B} for G in (2, 16, 256, 4096) for B in (16, 64, 256, 1024)]


_ACCURACY = between(1e-4, 0.1, "an accuracy from 0.0001 to 0.1")


@dataclass(frozen=True, kw_only=True)
class FirstComeFleet(PromptFleet):
    """A fleet under FCFS."""

    G: int = 16
    B: int = 256
    p: float = 0.2
    s_max: int = 8

    @property
    def law(self) -> PromptLaw:
        """Of the prompts."""
        return PromptLaw.uniform(self.s_max)

    def __str__(self) -> str:
        """Return the fleet in the words of the report."""
        return f"G={self.G}, B={self.B}, p={self.p:g}, {self.law.name}"


@dataclass(frozen=True, kw_only=True)
class SampledFleet(FirstComeFleet):
    """A fleet under FCFS that is sampled.

    Parameters
    ----------
    accuracy
        Standard error at which sampling ends, a share of the mean.
    growth
        Tokens that a running request gains in a step.
    """

    B: int = 64
    accuracy: float = 0.01
    growth: str = "1"
    asks: ClassVar[Asks] = {"accuracy": _ACCURACY}


@measured_in("fcfs-exact", SampledFleet)
def measure_exact(at: SampledFleet, seed: int) -> list[Finding]:
    """Sample FCFS until the standard error is about `accuracy` of the mean, and compare with the computed law."""
    gained = Growth.parse(at.growth)
    computed = np.mean(  # first: a law that is too wide is refused before an hour of sampling
        [
            load_law(slot_law_seen(at.law, at.p, gained.latest(phase)), at.B).expected_imbalance(at.G)
            for phase in range(len(gained.cycle))
        ]
    )
    sampled = mean_fcfs_imbalance(at.G, at.B, at.p, at.law, steps_for(at.G, at.p, at.accuracy), seed, gained)
    share = sampled.error / sampled.mean
    grown = "" if at.growth == "1" else f", growth {at.growth}"
    return [
        sampled.finding(
            f"{at}{grown}",
            "mean imbalance of FCFS (tokens)",
            float(computed),
            note=f"standard error {100 * share:.2f} % of the mean",
        )
    ]


@measured_in("fcfs-sharp", FirstComeFleet)
def measure_sharp(at: FirstComeFleet, seed: int) -> list[Finding]:
    """Compare the sharp form with the computed law; nothing is sampled."""
    slot = slot_law(at.law, at.p)
    exact = load_law(slot, at.B).expected_imbalance(at.G)
    sharp = _sharp(slot, at.G, at.B)
    outside = _untrusted(at.G, at.B)
    third, _ = third_term(at.G, slot)
    if abs(third) / at.B > 0.75 * TRUSTED_SHARE:
        outside.append(f"the term left out is {abs(third) / at.B:.2%} by itself")
    return [
        Finding.computed(
            str(at),
            "sharp form (tokens) against the exact value",
            sharp,
            "=",
            exact,
            tolerance=TRUSTED_SHARE,
            trials=1,
            outside=" and ".join(outside),
            note=f"off by {100 * (sharp / exact - 1):+.3f} %",
        )
    ]


@measured_in("fcfs-sharp-rate", FirstComeFleet)
def measure_sharp_rate(at: FirstComeFleet, seed: int) -> list[Finding]:
    """Compare B times the sharp form's relative error with the third term; nothing is sampled."""
    slot = slot_law(at.law, at.p)
    missed = at.B * (1 - _sharp(slot, at.G, at.B) / load_law(slot, at.B).expected_imbalance(at.G))
    third, scale = third_term(at.G, slot)
    outside = _untrusted(at.G, at.B)
    return [
        Finding.computed(
            str(at),
            "B times the sharp form's relative error less c, over the parts of c",
            abs(missed - third) / scale,
            "<=",
            THIRD_SHARE,
            trials=1,
            outside=" and ".join(outside),
            note=f"B times the error is {missed:+.4f}, c is {third:+.4f}",
        )
    ]


@measured("fcfs-order", least=USUAL["B"], quadruplings=between(1, 4, "1 to 4 quadruplings of B"), accuracy=_ACCURACY)
def measure_exponent(
    *,
    G: int = 16,
    p: float = 0.2,
    s_max: int = 8,
    least: int = 16,
    quadruplings: int = 3,
    accuracy: float = 0.01,
    seed: int,
) -> list[Finding]:
    """Fit the exponent of B to sampled imbalances: as they are, and without the skewness term.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    quadruplings
        Number of times that B is multiplied by four.
    accuracy
        Standard error at which sampling ends, a share of the mean.
    """
    law = PromptLaw.uniform(s_max)
    slot = slot_law(law, p)
    slots = [least * 4**i for i in range(quadruplings + 1)]
    seeds = np.random.SeedSequence(seed).generate_state(len(slots))
    steps = steps_for(G, p, accuracy)
    exact = slope(slots, [load_law(slot, B).expected_imbalance(G) for B in slots])
    sampled = [mean_fcfs_imbalance(G, B, p, law, steps, int(own)) for B, own in zip(slots, seeds, strict=True)]
    means, errors = [one.mean for one in sampled], [one.error for one in sampled]
    trials = sum(one.trials for one in sampled)
    skew = skewness_term(G, math.sqrt(slot.variance), slot.skewness)
    found = Average(*fitted_slope(slots, means, errors), None, trials)
    bare = Average(*fitted_slope(slots, [mean - skew for mean in means], errors), None, trials)
    regime = f"G={G}, B={slots[0]}..{slots[-1]}, p={p:g}, {law.name}"
    return [
        found.finding(regime, "exponent of B in FCFS's imbalance, against the exact law's on the same grid", exact),
        bare.finding(regime, "the same less the skewness term, at least 0.49", 0.49, ">="),
        bare.finding(regime, "the same less the skewness term, at most 0.51", 0.51, "<="),
    ]


def _untrusted(G: int, B: int) -> list[str]:
    """Return why the sharp form is not claimed for this fleet."""
    found = []
    if B < TRUSTED_SLOTS:
        found.append(f"B is below {TRUSTED_SLOTS}")
    if G > TRUSTED_WORKERS:
        found.append(f"G is above {TRUSTED_WORKERS}")
    return found


def _sharp(slot: SlotLaw, G: int, B: int) -> float:
    return sharp_imbalance(G, B, math.sqrt(slot.variance), slot.skewness)


_OF_FLEETS = (
    claim(
        "fcfs-exact",
        measure_exact,
        quick=crossed(_LAWS, [{"G": 2, "B": 16}, {"G": 16, "B": 64}, {"G": 256, "B": 16}]),
        full=crossed(_LAWS, [{**cell, "accuracy": 0.0025} for cell in _GRID]),
    ),
    claim(
        "fcfs-sharp",
        measure_sharp,
        quick=crossed(_LAWS, _GRID),
        full=crossed(
            [*_LAWS, {"p": 0.5, "s_max": 4}, {"p": 0.1, "s_max": 10}],
            [{"G": G, "B": B} for G in (2, 4, 16, 64, 256, 1024, 4096) for B in (4, 16, 64, 256, 1024, 4096)],
        ),
    ),
    claim(
        "fcfs-sharp-rate",
        measure_sharp_rate,
        quick=crossed(_LAWS, [{"G": 2}, {"G": 21}, {"G": 256}]),
        full=crossed(
            [*_LAWS, {"p": 0.5, "s_max": 4}, {"p": 0.99, "s_max": 2}],
            [{"G": G, "B": B} for G in (2, 4, 16, 21, 64, 256, 4096) for B in (256, 1024, 4096)],
        ),
    ),
    claim(
        "fcfs-order",
        measure_exponent,
        quick=({"G": 2}, {"G": 64}),
        full=crossed(_LAWS, [{"G": G, "accuracy": 0.003} for G in (2, 16, 256, 4096)]),
    ),
    claim(
        "fcfs-drift",
        measure_exact,
        quick=[{"growth": growth} for growth in ("0", "1/2", "3", "0+1+3")],
        full=[
            {"G": G, "B": B, "growth": growth, "accuracy": 0.003}
            for G, B in ((4, 64), (16, 256), (256, 64))
            for growth in ("0", "1/2", "1", "3", "0+1+3", "1+1+1+0")
        ],
    ),
)
CLAIMS = (*_OF_SLOTS, *_OF_FLEETS)
