"""Averages over long chains, with honest errors: memory, random streams, batch means, and exponents of a fitted line.

Whether something fits, asked before it begins: a run should not fail for lack of memory after an hour.

Starts of the slots' random streams, by seed: equal for every policy, so that all meet the same ends.

Exponents: the slope of a straight line through logarithms.

Averages over one long chain, with honest errors: batch means (Law and Carson 1979).

Successive steps resemble each other: a slot forgets its request after some 1/p steps. Means over batches of at least
20/p steps are nearly independent of each other, so their spread gives the standard error of the whole mean, with one
degree of freedom less than there are batches. Before anything counts, the chain runs for

    burn-in = log(1000 G B) / p   steps,

after which the distance in total variation of all G B slots from their stationary law, G B (1-p)^k at most, is below
1/1000 (BF-IO, section 4, step 2.B, with explicit constants).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.statistics import standard_error
from lbopt.theory.finding import Finding


def require_memory(needed: int, what: str, instead: str = "fewer workers or slots") -> None:
    """Refuse, before it begins, what needs more bytes than the machine has; `instead` is what to take."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return
    if needed > there:
        raise InputError(
            f"{what} needs {needed / 2**30:.1f} GiB of memory, and this machine has {there / 2**30:.1f} GiB; "
            f"take {instead}"
        )


def slot_streams(seed: int, *shape: int) -> NDArray[np.uint64]:
    """Return uint64 of that shape, from NumPy's SeedSequence: well mixed, and different for every seed."""
    count = int(np.prod(shape))
    words = np.random.SeedSequence(seed).generate_state(count, np.uint64)
    return words.astype(np.uint64, copy=False).reshape(shape)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the exponent of `x` in `y` by least squares on logarithms, for values without error."""
    return float(np.polynomial.polynomial.polyfit(np.log(x), np.log(y), 1)[1])


def fitted_slope(x: Sequence[float], y: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Return the same exponent for values with standard errors, and its own standard error.

    The values are independent and weigh alike, so that the exponent is that of `slope` on average; each contributes the
    variance of its logarithm, (error / value)^2.
    """
    logs = np.log(np.asarray(x, np.float64))
    weight = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    values = np.asarray(y, np.float64)
    relative = np.asarray(errors, np.float64) / values
    return float(weight @ np.log(values)), float(np.sqrt(np.sum((weight * relative) ** 2)))


#: A batch has at least so many times the 1/p steps after which a slot has forgotten its request.
BATCH_SPANS = 20

#: What is left of the start, in total variation, when the burn-in ends.
LEFT_OF_START = 1e-3

#: Fewer batches give an error that cannot be trusted.
FEWEST_BATCHES = 20


def burn_in_steps(G: int, B: int, p: float) -> int:
    """Return the steps after which a chain of G B slots counts as stationary."""
    return math.ceil(math.log(G * B / LEFT_OF_START) / p)


def batch_steps(p: float) -> int:
    """Return the least steps of a batch."""
    return math.ceil(BATCH_SPANS / p)


@dataclass(frozen=True, slots=True)
class Average:
    """A mean with its standard error.

    Parameters
    ----------
    mean, error
        In the unit of what was averaged.
    dof
        Degrees of freedom of the error; None: normal.
    trials
        Steps, requests or samples that were averaged.
    """

    mean: float
    error: float
    dof: float | None
    trials: int

    @classmethod
    def of(cls, values: Sequence[float] | NDArray[np.float64], trials: int) -> Average:
        """Return the mean of independent values, such as those of batches."""
        found = np.asarray(values, np.float64)
        return cls(float(found.mean()), standard_error(found), found.size - 1, trials)

    def finding(
        self, regime: str, quantity: str, predicted: float, relation: str = "=", *, unit: float = 1.0, **more: Any
    ) -> Finding:
        """Return how the mean, in units of `unit`, lies to the prediction; `more` are further fields of the finding."""
        found: dict[str, Any] = {"error": self.error / unit, "dof": self.dof, "trials": self.trials}
        sides: dict[str, Any] = {"measured": self.mean / unit, "relation": relation, "predicted": predicted}
        return Finding(regime=regime, quantity=quantity, kind="mean", **sides, **found, **more)

    def findings(
        self, regime: str, quantity: str, law: float, shares: tuple[float, float], **more: Any
    ) -> list[Finding]:
        """Return that the mean is at least the one and at most the other share of a law; the quantity may name them."""
        return [
            self.finding(regime, quantity.format(share), share * law, relation, **more)
            for relation, share in zip((">=", "<="), shares, strict=True)
        ]


def steps_mean(values: NDArray[Any], length: int) -> Average:
    """Return the mean of (steps,) values after the burn-in, a whole number of batches of `length` steps."""
    return Average.of(values.reshape(-1, length).mean(axis=1, dtype=np.float64), values.size)


def means_of_batches(chunks: Iterable[NDArray[np.float64]], burn_in: int, length: int) -> NDArray[np.float64]:
    """Return the means of whole batches of `length` steps, after `burn_in` of them; what is left over is dropped.

    `chunks` are consecutive pieces of one chain, of any lengths.
    """
    found: list[float] = []
    left, total, held = burn_in, 0.0, 0
    for chunk in chunks:
        rest = chunk[left:]
        left = max(0, left - chunk.size)
        while rest.size:
            taken = rest[: length - held]
            total, held, rest = total + float(taken.sum()), held + taken.size, rest[taken.size :]
            if held == length:
                found.append(total / length)
                total, held = 0.0, 0
    return np.array(found)
