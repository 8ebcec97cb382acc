"""Kernels that once read or wrote beyond an array: compiled code does not notice, plain Python raises IndexError.

So these cases say most in the reduced profile, with NUMBA_DISABLE_JIT=1. `make test-bounds` runs the searches compiled
with bounds checks.
"""

from pathlib import Path

from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE
from lbopt.model import StepProblem
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.windows import search_window

CASES = Path(__file__).parent / "cases"


def test_a_window_may_have_more_cuts_than_classes_and_workers():
    """The scratch of a window was as long as its classes, workers and steps; cuts are marked in it too."""
    problem = StepProblem.from_json(CASES / "window_with_many_cuts.json")
    answer = search_window(problem, None, Limits(effort=20_000))
    assert answer.assignment is not None
    assert answer.bound >= 0


def test_a_worker_of_one_slot_with_nobody_left():
    """Its list of choices is empty; the place -1 of an empty list was read for the best of them."""
    decision = Decision(StepProblem.now([14, 3], [1, 1], [9, 102, 0]))
    _, cost = decision.first_assignment()
    search = decision.start(cost)
    step = decision.step
    step.n[:] = 0
    step.sums[1:] = -1
    search.price[:] = 0
    assert evaluate(step, search, 200, EXACT) == NONE
