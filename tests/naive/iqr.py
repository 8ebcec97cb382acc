"""The rule iqr, for one decision; `naive.rules` says what it gets and returns."""

import math
from collections.abc import Sequence
from fractions import Fraction

from naive.pooled_rules import WAITS, workers_with_a_free_slot


def percentile(values: Sequence[int], share: Fraction, method: str) -> Fraction:
    """The `share` percentile (sbs.md section 7): position (n - 1) q, or (n + 1) q - 1 for type 6 ("weibull").

    "linear" interpolates at that position; "lower" and "higher" take a neighbour; "nearest" the nearer one, and of two
    equally near ones the one of even position.
    """
    ordered = sorted(values)
    position = (len(values) - 1) * share
    if method == "weibull":
        position = (len(values) + 1) * share - 1
        position = min(max(position, Fraction(0)), Fraction(len(values) - 1))
    if method == "lower":
        position = Fraction(math.floor(position))
    elif method == "higher":
        position = Fraction(math.ceil(position))
    elif method == "nearest":
        position = Fraction(round(position))
    elif method not in ("linear", "weibull"):
        raise ValueError(f"unknown percentile {method!r}")
    below = math.floor(position)
    above = math.ceil(position)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def iqr_threshold(loads: Sequence[int], multiplier: Fraction, method: str) -> Fraction:
    """Q3 + k (Q3 - Q1) (sbs.md section 7)."""
    first = percentile(loads, Fraction(1, 4), method)
    third = percentile(loads, Fraction(3, 4), method)
    return third + multiplier * (third - first)


def iqr_worker(
    loads: Sequence[int], batches: Sequence[int], eligible: Sequence[int], multiplier: Fraction, method: str
) -> int:
    """The safe eligible worker of least (batch, load, index); where none is safe, of all eligible ones."""
    threshold = iqr_threshold(loads, multiplier, method)
    safe = [worker for worker in eligible if loads[worker] <= threshold]
    best: int | None = None
    for worker in safe or eligible:
        if best is None or (batches[worker], loads[worker]) < (batches[best], loads[best]):
            best = worker
    if best is None:
        raise ValueError("no worker to choose from")
    return best


def iqr(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    running: Sequence[int],
    multiplier: str = "1.5",
    percentile: str = "linear",
) -> list[int]:
    """Algorithm 3 of sbs.md section 7 on the first U of the pool: longest first (stable), quartiles of all workers."""
    free = list(slots)
    current = list(loads)
    batches = list(running)
    placement = [WAITS] * len(sizes)
    admitted = list(range(min(len(sizes), sum(slots))))
    for request in sorted(admitted, key=lambda request: -sizes[request]):
        worker = iqr_worker(current, batches, workers_with_a_free_slot(free), Fraction(multiplier), percentile)
        placement[request] = worker
        free[worker] -= 1
        batches[worker] += 1
        current[worker] += sizes[request]
    return placement
