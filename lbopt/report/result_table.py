"""The tables of one solved step problem: what is known, a line per worker that gets something, and who proved first."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from lbopt import numbers
from lbopt.model import StepProblem, loads_after
from lbopt.solvers import Result
from lbopt.table import Table


def result_table(problem: StepProblem, result: Result) -> Table:
    """Return the placement, one line per worker with free slots, under a sentence that says what it is worth."""
    rows = []
    if result.assignment is not None:
        after = loads_after(problem, result.assignment, result.paused)
        for g in np.flatnonzero(problem.slots > 0).tolist():
            placed = np.flatnonzero(result.assignment == g)
            sizes = ", ".join(f"#{i} ({numbers.tokens(problem.work[i, 0])})" for i in placed.tolist()) or "–"
            rows.append(
                (str(g), numbers.tokens(problem.base[g, 0]), str(problem.slots[g]), sizes, numbers.tokens(after[g, 0]))
            )
    waiting = 0 if result.assignment is None else int((result.assignment < 0).sum())
    return Table(
        title=result.summary(),
        caption=f"{problem.num_requests} requests, {_admitted(problem, result)} admitted, {waiting} keep waiting; "
        f"{_pauses(result)}problem {problem.digest[:12]}.{_unit(problem)}",
        headers=("worker", "load before", "free slots", "gets request (tokens)", "load after"),
        rows=rows,
    )


def comparison_table(results: Mapping[str, Result]) -> Table:
    """Return a line per solver: value, bound and seconds; the caption says who proved first."""
    best = min(map(_value, results.values()))
    rows = [
        (
            name,
            *map(numbers.tokens, (one.objective, one.bound)),
            f"{one.seconds:.3g}",
            "refuted" if one.bound > best else one.stop_reason,
        )
        for name, one in results.items()
    ]
    first = first_of(results)
    did = "proved it first" if results[first].proved else "claims it, and no solver proved it"
    if results[first].status != "optimal":
        did = "has the best of it, and no solver proved it"
    return Table(
        title=f"{first} {did}",
        caption="The solvers answered in turn. Refuted: another solver has a placement below the bound.",
        headers=("solver", "value", "bound", "seconds", "ended"),
        rows=rows,
    )


def first_of(results: Mapping[str, Result]) -> str:
    """Return who proved the optimum first; where none did, who claimed it first, else who has the best value."""
    best = min(map(_value, results.values()))
    sound = {name: one for name, one in results.items() if one.bound <= best}

    def rank(name: str) -> tuple[bool, bool, float, float]:
        one = sound[name]
        return not one.proved, one.status != "optimal", _value(one), one.seconds

    return min(sound, key=rank)


def _value(result: Result) -> float:
    return math.inf if result.objective is None else result.objective


def _admitted(problem: StepProblem, result: Result) -> int:
    """Return how many are admitted; under conditions fewer than slots permit may be."""
    plain = problem.conditions is None or result.assignment is None
    return problem.num_admitted if plain else int((result.placed() >= 0).sum())


def _pauses(result: Result) -> str:
    if result.paused is None:
        return ""
    return f"running requests that pause: {', '.join(map(str, np.flatnonzero(result.paused).tolist())) or 'none'}; "


def _unit(problem: StepProblem) -> str:
    if problem.conditions is None or problem.conditions.pace is None:
        return ""
    return " Loads after are in units of pace, as the objective is."
