"""Where no decision meets the conditions, the message names what binds, and says only what is true."""

from collections import Counter

import pytest
from naive.conditions import is_feasible, least_rank
from solvers.conditions.drawn import drawn, problem_of

from lbopt import Conditions, InfeasibleDecisionError, InputError, StepProblem, solve
from lbopt.model.paced_numbers import paced_numbers
from lbopt.solvers.elementary import greedy_decision
from lbopt.solvers.opening import reason
from lbopt.solvers.registry import is_available

MUST = [True, False, False]


def at(conditions: Conditions, must=MUST, slots=(1, 1)) -> StepProblem:
    return StepProblem.now([5, 0], list(slots), [700, 300, 900], must).under(conditions)


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (
            at(Conditions(capacity=[512, 600])),
            "request 0 must be admitted, and no worker that may take it has room: it takes 700 of the KV capacity, and "
            "at most 600 are free on one of them",
        ),
        (
            at(Conditions(prefill_budget=[699, 9000], allowed=[[True, False]] + [[True] * 2] * 2)),
            "request 0 must be admitted, and no worker that may take it has room: it takes 700 of the prefill budget, "
            "and at most 699 are free on one of them",
        ),
        (
            at(Conditions(capacity=[700, 1], prefill_budget=[1, 700])),
            "request 0 must be admitted, and no worker that may take it has room for it in both KV capacity and "
            "prefill budget",
        ),
        (
            at(Conditions(allowed=[[False, False]] + [[True] * 2] * 2)),
            "request 0 must be admitted, and `allowed` names no worker that may take it",
        ),
        (
            at(Conditions(allowed=[[False, True]] + [[True] * 2] * 2), slots=(2, 0)),
            "request 0 must be admitted, and no worker that may take it has a free slot",
        ),
        (
            at(Conditions(admit=2, capacity=[200, 2000]), must=None),
            "exactly 2 requests must be admitted, and at most 1 can be: worker 0 can take nothing: its free KV "
            "capacity is 200, the smallest waiting request it may take needs 300",
        ),
        (
            at(Conditions(admit=3, capacity=[600, 2000]), must=None, slots=(2, 1)),
            "exactly 3 requests must be admitted, and at most 2 can be: worker 0 can take only 1: its free KV capacity "
            "is 600, the smallest ones it may take need 300, 700",
        ),
        (
            at(Conditions(admit=2, allowed=[[True, False]] * 3), must=None),
            "exactly 2 requests must be admitted, and at most 1 can be: worker 1 can take nothing: `allowed` names no "
            "request for it",
        ),
        (
            at(Conditions(admit=2, allowed=[[True, True], [False, False], [False, False]]), must=None, slots=(1, 1)),
            "exactly 2 requests must be admitted, and at most 1 can be: the others have no worker that may take them",
        ),
        (
            at(Conditions(allowed=[[True, False], [True, False], [True, True]]), must=[True] * 2 + [False]),
            "2 requests must be admitted (0, 1), and the workers that may take them (0) have 1 free slots",
        ),
        (
            at(Conditions(capacity=[700, 800]), must=[True] * 2 + [False], slots=(2, 2)),
            None,
        ),
        (
            at(Conditions(capacity=[950, 900]), must=[True] * 3, slots=(2, 2)),
            "the requests of must_admit take 1900 of the KV capacity, and the workers that may take them have 1850 "
            "free together",
        ),
    ],
)
def test_the_message_names_what_binds(problem, says):
    if says is None:
        assert solve(problem).assignment is not None
        return
    for solver in ("exact", "search", "brute-force", "auto"):
        with pytest.raises(InfeasibleDecisionError) as caught:
            solve(problem, solver)
        assert str(caught.value) == says


def test_more_must_start_than_may():
    with pytest.raises(InputError, match="must_admit names 2 requests, but only 1 can be admitted"):
        at(Conditions(admit=1), must=[True] * 2 + [False])


def test_what_fits_alone_but_not_together():
    """A packing: exhaustion or a solver says so, and the conditions that stand in the way are named."""
    problem = StepProblem.now([0, 0], [3, 3], [1, 2, 3]).under(
        Conditions(capacity=[8, 4], need=[5, 4, 4], admit=3, prefill_budget=[9, 9])
    )
    assert reason(paced_numbers(problem)) is None
    begin = "no placement admits exactly 3 requests, must_admit among them, under the conditions"
    own = {"exact": "found by exhaustion", "brute-force": "found by exhaustion"}
    claims = {name: f"as {name} claims" for name in ("cp-sat", "highs", "pulp") if is_available(name)}
    for solver, by in {**own, **claims}.items():
        with pytest.raises(InfeasibleDecisionError) as caught:
            solve(problem, solver)
        assert str(caught.value) == f"{begin} ({by}): each finds room, but not together; without capacity there is one"


@pytest.mark.more
def test_reasons_are_proofs_and_greedy_placements_are_feasible():
    """No reason is given for a problem with a decision; what greedy placement finds is feasible."""
    seen: Counter = Counter()
    for kind in ("capacity", "allowed", "prefill", "exactly", "packing", "mixture"):
        for number in range(400):
            case = drawn(f"reasons/{number}", kind)
            if number % 2 and case["work"]:
                case["must"] = [i < min(len(case["work"]), sum(case["slots"])) for i in range(len(case["work"]))]
                case.pop("admit", None)
            numbers = paced_numbers(problem_of(case)) if problem_of(case).conditions else None
            if numbers is None:
                continue
            why, truth, found = reason(numbers), least_rank(case), greedy_decision(numbers)
            assert why is None or truth is None, (why, case)
            assert found is None or is_feasible(case, tuple(found.assignment.tolist()))
            seen["infeasible", why is None] += truth is None
            seen["greedy finds none"] += truth is not None and found is None
    assert seen["infeasible", False] > 100 and seen["infeasible", True] > 20 and seen["greedy finds none"] > 5


def test_an_infeasible_problem_has_no_program():
    from lbopt.model.formulation import formulate

    problem = at(Conditions(allowed=[[False, False]] + [[True] * 2] * 2))
    with pytest.raises(InfeasibleDecisionError, match="request 0 must be admitted, and no worker"):
        formulate(problem)
    problem = at(Conditions(admit=1, capacity=[1, 1]), must=None)
    with pytest.raises(InfeasibleDecisionError, match="exactly 1 requests must be admitted, and no worker may take"):
        formulate(problem)
