"""How much work the exact search needs for a proof, in its own deterministic units (about microseconds)."""

from __future__ import annotations

import time

from lbopt.model import StepProblem


def effort(problem: StepProblem, seconds: float) -> int | None:
    """Return the work until the proof of a problem without a window; None where there is none in time."""
    from lbopt.kernels.search.state import OPEN, PROVED
    from lbopt.solvers.exact.decision import Decision
    from lbopt.solvers.exact.search import SLICE

    decision = Decision(problem)
    if decision.scale == 0:
        return None
    _, cost = decision.first_assignment()
    search = decision.start(cost)
    until = time.perf_counter() + seconds
    state = OPEN
    while state == OPEN and time.perf_counter() < until:
        state = decision.advance(search, SLICE)
    return int(search.known.work) if state == PROVED else None
