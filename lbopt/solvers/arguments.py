"""Checks of what a user passes to the solvers. They need neither Numba nor a solver package."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import StepProblem, check_assignment
from lbopt.solvers.engine import Question
from lbopt.solvers.registry import OWN, require
from lbopt.solvers.result import TIES

#: Which of equal requests and workers lbopt's own search takes; `lbopt.solvers.exact.tie_orders` has their meaning.
TIE_ORDERS = ("oldest", "newest", "random")


def checked_question(problem: Any, solver: Any, *, time_limit: Any, seed: Any, hint: Any, tie: Any) -> Question:
    """Return what is asked, or raise if an argument of `solve` cannot be used; arguments are those of `solve`.

    Parameters
    ----------
    problem, solver, time_limit, seed, hint, tie
        As in `lbopt.solvers.solve.solve`, and of any type.
    """
    if not isinstance(problem, StepProblem):
        raise InputError(f"problem is a {type(problem).__name__}; expected a StepProblem")
    check_solver(solver, time_limit)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed is {seed!r}; expected a whole number of zero or more")
    if tie not in TIES:
        raise InputError(f"tie is {tie!r}; expected {' or '.join(TIES)}")
    given = None if hint is None else check_assignment(problem, hint, who="the hint")
    return Question(problem=problem, hint=given, tie=tie)


def check_solver(solver: Any, time_limit: Any) -> None:
    """Raise if `solver` is unknown or its package is absent, or if `time_limit` is not a positive number."""
    if solver not in OWN:
        require(solver)
    if time_limit is not None:
        number = isinstance(time_limit, int | float | np.integer | np.floating) and not isinstance(time_limit, bool)
        if not number or not time_limit > 0:  # NaN is not above 0 either
            raise InputError(f"time_limit is {time_limit!r}; expected seconds above 0, or None for no limit")


def check_tie_order(tie: str, who: str) -> None:
    """Raise if `tie` is not a tie order; `who` begins the message."""
    if tie not in TIE_ORDERS:
        raise InputError(f"{who}: tie order is '{tie}'; expected {', '.join(TIE_ORDERS[:-1])} or {TIE_ORDERS[-1]}")
