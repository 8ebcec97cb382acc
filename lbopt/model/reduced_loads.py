"""Loads without what all share: shifted per column, which changes nothing in G max - sum, and divided by their gcd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbopt.model.step_problem import StepProblem


@dataclass(frozen=True, slots=True)
class ReducedLoads:
    """Base and work after the shift per column and the division by `scale`, ``base[g][h]`` and ``work[i][h]``.

    ``base * scale + shift`` and ``work * scale`` are the numbers of the problem.
    """

    base: tuple[tuple[int, ...], ...]
    work: tuple[tuple[int, ...], ...]
    shift: tuple[int, ...]
    scale: int


def reduce_loads(problem: StepProblem) -> ReducedLoads:
    """Shift each column of base by its minimum and divide base and work by their greatest common divisor."""
    shift = problem.base.min(axis=0)
    base, work = problem.base - shift, problem.work
    scale = int(np.gcd(np.gcd.reduce(base, axis=None), np.gcd.reduce(work, axis=None))) or 1
    return ReducedLoads(
        base=tuple(map(tuple, (base // scale).tolist())),
        work=tuple(map(tuple, (work // scale).tolist())),
        shift=tuple(shift.tolist()),
        scale=scale,
    )
