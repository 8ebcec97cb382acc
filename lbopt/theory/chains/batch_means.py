r"""Averages over one long chain, with honest errors: batch means (Law and Carson 1979).

Successive steps resemble each other: a slot forgets its request after some 1/p steps. Means over batches of at least
20/p steps are nearly independent of each other, so their spread gives the standard error of the whole mean, with one
degree of freedom less than there are batches. Before anything counts, the chain runs for

    burn-in = log(1000 G B) / p   steps,

after which the distance in total variation of all G B slots from their stationary law, G B (1-p)^k at most, is below
1/1000 (BF-IO, section 4, step 2.B, with explicit constants).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.statistics import standard_error
from lbopt.theory.finding import Finding

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
class ChainMean:
    """A mean over a chain.

    Parameters
    ----------
    mean, error
        The mean and its standard error, in the unit of what was averaged.
    dof
        Degrees of freedom of the error: batches less one.
    steps
        Steps that were averaged.
    """

    mean: float
    error: float
    dof: int
    steps: int


def chain_mean(batches: NDArray[np.float64], steps_each: int) -> ChainMean:
    """Return the mean over batches of equal length."""
    return ChainMean(float(batches.mean()), standard_error(batches), batches.size - 1, batches.size * steps_each)


def steps_mean(values: NDArray[Any], length: int) -> ChainMean:
    """Return the mean of (steps,) values after the burn-in, a whole number of batches of `length` steps."""
    return chain_mean(values.reshape(-1, length).mean(axis=1, dtype=np.float64), length)


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


def mean_finding(
    found: ChainMean, relation: str, predicted: float, *, regime: str, quantity: str, unit: float = 1.0, **more: Any
) -> Finding:
    """Return the finding of a chain's mean, in units of `unit`; `more` are further fields of it.

    Parameters
    ----------
    found
        Mean of the chain with its error.
    relation
        How the mean and the prediction are related: "=", "<=" or ">=".
    predicted
        The closed form.
    regime
        The regime in the words of the report.
    quantity
        What is measured.
    unit
        The mean is divided by it.
    """
    return Finding(
        regime=regime,
        quantity=quantity,
        kind="mean",
        relation=relation,
        measured=found.mean / unit,
        predicted=predicted,
        error=found.error / unit,
        dof=found.dof,
        trials=found.steps,
        **more,
    )


def share_findings(found: ChainMean, law: float, tolerance: float, *, quantity: str, **more: Any) -> list[Finding]:
    """Return the two findings that a chain's mean is within a share of a law; `more` are further fields of them.

    Parameters
    ----------
    found
        Mean of the chain with its error.
    law
        The closed form.
    tolerance
        The share.
    quantity
        What is measured, up to the word "against".
    """
    return [
        mean_finding(found, relation, bound * law, quantity=f"{quantity} {bound:g} times the law", **more)
        for relation, bound in ((">=", 1 - tolerance), ("<=", 1 + tolerance))
    ]
