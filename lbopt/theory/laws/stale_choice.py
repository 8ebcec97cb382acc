r"""Power of two choices by old reports: the law of a load in a large fleet (mean field).

Each arrival draws two workers with replacement and goes to the one that the last report shows less loaded. A worker
whose rank from below is u, as a share of the fleet, gets arrivals at the rate lambda c(u) with

    c(u) = 2 (1 - u).

**Fresh sight.** Loads whose drift depends on the rank alone are a rank-based diffusion. With G workers the k-th from
below drifts by lambda E[S] (1 - (2k - 1)/G) against the mean, and the gap between ranks k and k + 1 is exponential in
the long run, with mean (Pal and Pitman 2008, Theorem 8)

    sigma^2 G / (2 lambda E[S] k (G - k)),      sigma^2 = lambda (E[S^2] + E[X^2]),   X the tokens of a request that
    ends.

The imbalance counts it k times:

    E[Imb] = sigma^2 G H_{G-1} / (2 lambda E[S]) = G H_{G-1} (E[S^2] + E[X^2]) / (2 E[S]),      H_n = 1 + 1/2 + ... +
    1/n.

Neither slots nor the rate of arrivals are in it. As G grows a load is logistic with scale (E[S^2] + E[X^2]) / (2 E[S]).

**Reports of every T steps.** Within a window ranks stand. With x the distance of a load from the mean at a report, j
steps later it is

    q^j x + (1 - 2 F(x)) lambda sum_{a<=j} q^a (E[S] + a)

on average, with the variance and the skewness of the ends among what was seen and of the Poisson arrivals at the rate
lambda c(F(x)). The law at the
next report is the same as at this one: a fixed point, found here on a grid. The largest of G independent loads of that
law gives the imbalance. Left out: that workers differ in numbers of requests, so in growth, for a given load; this is
small where E[S] sqrt(lambda p) is well above 1. So the law is for requests whose prompts outweigh their outputs.

Source: Mitzenmacher 2000, section 3, has the periodic model for numbers of jobs. The law of tokens is lbopt's.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lbopt.exceptions import InputError
from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.laws.stale import Lives

#: Points of the grid, and its half width in standard deviations of a random split, beyond what a window can bring.
_POINTS, _WIDTH = 601, 6.0

#: The fixed point is found when no probability moves by more than this.
_STILL = 1e-9

_MOST_ROUNDS = 20_000

#: Least variance, tokens squared, and largest skewness that Edgeworth's form is used with.
_LEAST, _MOST_SKEW = 1.0, 0.7


def power_of_two(G: int, p: float, prompts: PromptLaw, arrivals: float, period: int) -> float:
    """Return the mean imbalance (tokens) of power of two choices by reports of every `period` steps, geometric lives.

    Parameters
    ----------
    G
        Number of workers.
    p
        Probability that a request ends in a step.
    prompts
        Law of the prompts.
    arrivals
        Requests a worker and step.
    period
        Steps between reports.
    """
    if period < 1:
        raise InputError(f"the period of reports is {period} steps; expected at least 1")
    lives = Lives.geometric(p, prompts)
    spread = math.sqrt(lives.random(arrivals).variance)
    onward = _Window(lives, p, arrivals, period, at_report=True)
    widest = _WIDTH * spread + onward.brought + arrivals * lives.moments[0, 0]
    grid = np.linspace(-widest, widest, _POINTS)
    share = np.exp(-(grid**2) / spread**2)
    share /= share.sum()
    for _ in range(_MOST_ROUNDS):
        after = onward.carried(grid, share)
        moved = float(np.abs(after - share).max())
        share = after
        if moved < _STILL:
            break
    else:
        raise InputError(
            f"the law of a load under power of two choices has not settled at a period of {period} steps; "
            "take a shorter one"
        )
    reads = [_Window(lives, p, arrivals, age, at_report=False) for age in range(period)]
    return float(np.mean([_imbalance(G, grid, read.carried(grid, share)) for read in reads]))


class _Window:
    """What becomes of a load some steps after a report: its mean and its variance, by its rank at the report."""

    def __init__(self, lives: Lives, p: float, arrivals: float, steps: int, *, at_report: bool) -> None:
        kept = (1 - p) ** steps
        sent = slice(1, steps + 1) if at_report else slice(0, steps + 1)
        alive = lives.alive[sent]
        seen = lives.alive[1:] @ (lives.moments[1, 1:] + 2 * steps * lives.moments[0, 1:] + steps**2)
        self.kept = kept
        self.brought = arrivals * float(alive @ lives.moments[0, sent])
        held = lives.moments[:, 1:]
        cubes = lives.alive[1:] @ (held[2] + 3 * steps * held[1] + 3 * steps**2 * held[0] + steps**3)
        left = arrivals * kept * (1 - kept)
        self.ends = left * float(seen), left * (1 - 2 * kept) * float(cubes)
        self.noise = tuple(arrivals * float(alive @ lives.moments[power, sent]) for power in (1, 2))

    def carried(self, grid: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the law on the grid after the window, of that before it."""
        rank = np.cumsum(share) - share / 2
        mean = self.kept * grid + self.brought * (1 - 2 * rank)
        second, third = (ends + 2 * (1 - rank) * noise for ends, noise in zip(self.ends, self.noise, strict=True))
        spread = np.sqrt(np.maximum(second, _LEAST))
        skewness = np.clip(third / spread**3, -_MOST_SKEW, _MOST_SKEW)
        edges = (grid[1:] + grid[:-1]) / 2
        z = (edges[:, None] - mean) / spread
        skewed = special.ndtr(z) - skewness / 6 * (z**2 - 1) * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        below = np.clip(skewed, 0.0, 1.0)  # Edgeworth's form leaves [0, 1] by a trifle, far out
        cells = np.diff(np.vstack([np.zeros(grid.size), below, np.ones(grid.size)]), axis=0)
        after: NDArray[np.float64] = cells @ share
        after /= after.sum()
        return after


def _imbalance(G: int, grid: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    """Return G times the mean of the largest of G independent loads, less their sum."""
    up_to = np.cumsum(share)
    largest = np.diff(np.concatenate(([0.0], up_to**G)))
    return G * float(grid @ (largest - share))
