"""Small problems: exhaustion in plain Python, which has nothing to compile.

The first use of the compiled search takes most of a minute, and a problem of five requests should not wait for that. So
`solve` exhausts what is small. What is small is read from the problem alone, never from what happens to be compiled
already: the same problem has the same answer on every machine. `lbopt verify` exhausts such a problem again.
"""

from __future__ import annotations

import numpy as np

from lbopt.model import StepProblem, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.backend import Task
from lbopt.solvers.brute_force import leaf_estimate, minimise
from lbopt.solvers.budget import Budget
from lbopt.solvers.elementary import elementary_bound, greedy_assignment
from lbopt.solvers.engine import Answer, Knowledge, Question
from lbopt.solvers.registry import Capabilities
from lbopt.solvers.workers_alike import with_workers_in_order

#: Leaves of the exhaustion, estimated from above: mostly some milliseconds, at most some 30.
LEAVES = 5_000

#: Loads that one look at all ways to place the requests would compute: beyond it, not even the leaves are estimated.
CELLS = 4_096


class Small:
    """The engine, which answers as `exact`.

    Parameters
    ----------
    capabilities
        Its entry in the registry.
    question
        What is asked.
    """

    breaks_ties = True

    def __init__(self, capabilities: Capabilities, question: Question) -> None:
        self.name, self.solver = capabilities.name, capabilities.solver
        self.question = question
        self._answer: Answer | None = None

    def refusal(self) -> str | None:
        """Refuse what is not small."""
        problem = self.question.problem
        if problem.num_admitted == 0:
            return "no requests"
        if problem.num_requests * problem.base.size > CELLS:
            return "leaves"
        return "leaves" if leaf_estimate(self.question.problem) > LEAVES else None

    def run(self, known: Knowledge, budget: Budget) -> None:
        """Exhaust, from the hint or a greedy placement; where the time is over, the bound is the elementary one."""
        problem, tie = self.question.problem, self.question.tie
        given, floor = known.assignment, elementary_bound(problem)
        best = greedy_assignment(problem) if given is None else given
        cost, stop, ending = objective(problem, best), "done", "any"
        if cost > floor or tie == "leximax":
            program = self.question.program
            start, left = program.encode(best.tolist()), budget.remaining()
            found = minimise(Task(program=program, hint=start, time_limit=left, tie=tie))
            assert found.values is not None, "it starts from a placement"
            stop, ending = found.stop, found.tie
            placed = np.array(program.decode([int(value) for value in found.values]), dtype=np.int64)
            value = objective(problem, placed)
            if given is None or value < cost or ending == "leximax":
                best, cost = placed, value
        if given is None or best is not given:
            best = _oldest_of_equals(problem, best)
        proved_by_search = stop == "done" and cost > floor
        self._answer = Answer(
            assignment=best,
            bound=cost if proved_by_search else floor,
            proof="exhaustion" if proved_by_search else "elementary-bound",
            stop=stop,
            tie=ending,
        )

    def answer(self) -> Answer:
        """Return the optimum."""
        assert self._answer is not None, "it ran"
        return self._answer

    def break_ties(self, known: Knowledge, budget: Budget) -> Knowledge:
        """Return `known`: the run has broken ties."""
        return known


def _oldest_of_equals(problem: StepProblem, assignment: IntArray) -> IntArray:
    """Return the placement that tie order "oldest" names, as the compiled search does; without a window only.

    It is `lbopt.solvers.exact.tie_orders.canonical` in plain Python.
    """
    if problem.horizon > 0:
        return assignment
    chosen = with_workers_in_order(problem, assignment)
    by_size: dict[int, list[int]] = {}
    for i in np.argsort(~problem.must_admit, kind="stable").tolist():
        by_size.setdefault(int(problem.work[i, 0]), []).append(i)
    for equals in by_size.values():
        workers = sorted(int(chosen[i]) for i in equals if chosen[i] >= 0)
        for place, i in enumerate(equals):
            chosen[i] = workers[place] if place < len(workers) else -1
    return chosen
