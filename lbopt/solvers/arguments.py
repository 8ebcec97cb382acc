"""Checks of what a user passes to the solvers. They need neither Numba nor a solver package."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import StepProblem, check_assignment
from lbopt.solvers.budget import Stops
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
        As in `lbopt.solvers.front.solve`, and of any type.
    """
    if not isinstance(problem, StepProblem):
        raise InputError(f"problem is a {type(problem).__name__}; expected a StepProblem")
    check_solver(solver, time_limit)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed is {seed!r}; expected a whole number of zero or more")
    if tie not in TIES:
        raise InputError(f"tie is {tie!r}; expected {' or '.join(TIES)}")
    if problem.conditions is not None and tie != "any":
        raise InputError(f"tie is {tie!r}, which a problem with conditions does not take; expected any")
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


def check_stops(solver: str, **stops: Any) -> None:
    """Raise if what ends a search early cannot be used, or is for another solver.

    Parameters
    ----------
    **stops
        As in `lbopt.solvers.Stops`, and of any type.
    """
    given = {name: stops.pop(name, None) for name in Stops.__annotations__}
    if stops:
        raise TypeError(f"solve() got an unexpected keyword argument {next(iter(stops))!r}")
    named = [name for name, value in given.items() if value is not None]
    if named and solver not in ("exact", "search"):
        raise InputError(
            f"{named[0]} is for solver='exact' and 'search', not for {solver!r}; leave it out, or use time_limit"
        )
    for name, least in (("effort", 1), ("target", 0), ("gap", 0)):
        value = given[name]
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (whole and value >= least):
            raise InputError(f"{name} is {value!r}; expected a whole number of {least} or more, or None")
    cancel, callback = given["cancel"], given["callback"]
    if cancel is not None and not callable(getattr(cancel, "is_set", None)):
        raise InputError(f"cancel is a {type(cancel).__name__}; expected a threading.Event, or None")
    if callback is not None and not callable(callback):
        raise InputError(f"callback is a {type(callback).__name__}; expected a function of one argument, or None")


def check_tie_order(tie: str, who: str) -> None:
    """Raise if `tie` is not a tie order; `who` begins the message."""
    if tie not in TIE_ORDERS:
        raise InputError(f"{who}: tie order is '{tie}'; expected {', '.join(TIE_ORDERS[:-1])} or {TIE_ORDERS[-1]}")
