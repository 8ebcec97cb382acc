"""Loads without what all share: shifted per column, which changes nothing in G max - sum, and divided by their gcd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbopt.model.integers import IntArray
from lbopt.model.step_problem import StepProblem


@dataclass(frozen=True, slots=True, eq=False)
class ReducedArrays:
    """Base and work of a problem after the shift per column and the division by `scale`.

    ``base * scale + shift`` and ``work * scale`` are the numbers of the problem. Sums over all workers, and over the
    requests that can be admitted, stay below 2**62 as those of the problem do.
    """

    base: IntArray
    work: IntArray
    shift: IntArray
    scale: int


@dataclass(frozen=True, slots=True)
class ReducedLoads:
    """The same in Python's integers: ``base[g][h]`` and ``work[i][h]``."""

    base: tuple[tuple[int, ...], ...]
    work: tuple[tuple[int, ...], ...]
    shift: tuple[int, ...]
    scale: int


def reduced_arrays(problem: StepProblem) -> ReducedArrays:
    """Shift each column of base by its minimum and divide base and work by their greatest common divisor."""
    shift = problem.base.min(axis=0)
    base, work = problem.base - shift, problem.work
    scale = int(np.gcd(np.gcd.reduce(base, axis=None), np.gcd.reduce(work, axis=None))) or 1
    return ReducedArrays(base=base // scale, work=work // scale, shift=shift, scale=scale)


def reduce_loads(problem: StepProblem) -> ReducedLoads:
    """Return `reduced_arrays` in Python's integers."""
    arrays = reduced_arrays(problem)
    return ReducedLoads(
        base=tuple(map(tuple, arrays.base.tolist())),
        work=tuple(map(tuple, arrays.work.tolist())),
        shift=tuple(arrays.shift.tolist()),
        scale=arrays.scale,
    )
