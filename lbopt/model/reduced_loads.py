"""Loads without what all share: shifted per column, which changes nothing in G max - sum, and divided by their gcd."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from lbopt.model.step_problem import StepProblem


@dataclass(frozen=True, slots=True)
class ReducedLoads:
    """Base and work of a problem after the shift per column and the division by `scale`.

    ``base[g][h] * scale + shift[h]`` and ``work[i][h] * scale`` are the numbers of the problem.
    """

    base: tuple[tuple[int, ...], ...]
    work: tuple[tuple[int, ...], ...]
    shift: tuple[int, ...]
    scale: int


def reduce_loads(problem: StepProblem) -> ReducedLoads:
    """Shift each column of base by its minimum and divide base and work by their greatest common divisor."""
    base, work = problem.base.tolist(), problem.work.tolist()
    shift = tuple(map(min, zip(*base, strict=True)))
    shifted = [[load - low for load, low in zip(row, shift, strict=True)] for row in base]
    scale = gcd(*(load for row in shifted for load in row), *(w for row in work for w in row)) or 1
    return ReducedLoads(
        base=tuple(tuple(load // scale for load in row) for row in shifted),
        work=tuple(tuple(w // scale for w in row) for row in work),
        shift=shift,
        scale=scale,
    )
