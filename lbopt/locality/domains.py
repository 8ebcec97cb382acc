"""Shares of traffic that belong to each domain: four tasks, or many languages of which few are common.

ELDR (arXiv 2607.00466), evaluation: the task data set has 11,668 prompts of four kinds; of 14,000 WildChat prompts in
68 languages, two languages are 75 %, four are 87.6 %. No single Zipf law meets both, so the language shares are a table
for the four, and a Zipf tail for the others.
"""

from __future__ import annotations

import numpy as np

from lbopt.exceptions import InputError
from lbopt.locality.gate import Floats, Ints, check_whole

#: Prompts of each task.
TASK_PROMPTS = {"legal": 3600, "code": 2779, "math": 2744, "medical": 2545}
#: The two commonest languages sum to the published 75 %, four to 87.6 %; the split within each two is assumed.
LANGUAGE_HEAD = (0.50, 0.25, 0.08, 0.046)
NUM_LANGUAGES = 68
#: Exponent of the tail; between those that would give the published shares of the top two and the top four.
TAIL_EXPONENT = 1.98


def task_shares() -> Floats:
    """Return the share of each task, float64 (4,), in the order of `TASK_PROMPTS`."""
    prompts = np.array(list(TASK_PROMPTS.values()), dtype=np.float64)
    shares: Floats = prompts / prompts.sum()
    return shares


def zipf_shares(number: int, exponent: float) -> Floats:
    """Return shares proportional to rank ** -exponent, float64 (number,)."""
    check_whole("number of domains", number, 1)
    if not np.isfinite(exponent):
        raise InputError(f"the Zipf exponent is {exponent!r}; expected a finite number")
    weights = np.arange(1, number + 1, dtype=np.float64) ** -exponent
    shares: Floats = weights / weights.sum()
    return shares


def language_shares(number: int = NUM_LANGUAGES) -> Floats:
    """Return the shares of `number` languages, float64 (number,), descending; number exceeds the four of the table."""
    check_whole("number of languages", number, len(LANGUAGE_HEAD) + 1)
    head = np.array(LANGUAGE_HEAD)
    ranks = np.arange(head.size + 1, number + 1, dtype=np.float64) ** -TAIL_EXPONENT
    return np.concatenate([head, (1 - head.sum()) * ranks / ranks.sum()])


def draw_domains(shares: Floats, number: int, rng: np.random.Generator) -> Ints:
    """Draw the domain of `number` requests, int64 (number,), each by itself.

    Raises
    ------
    InputError
        if the shares are not 0 or more, or do not sum to 1.
    """
    shares = np.asarray(shares, dtype=np.float64)
    if shares.ndim != 1 or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise InputError(f"domain shares are {shares.tolist()}; expected numbers of 0 or more that sum to 1")
    return rng.choice(shares.size, size=number, p=shares).astype(np.int64)
