"""Conditions of a step problem: what is accepted, what they mean for loads and costs, and how they are written."""

import json
import re

import numpy as np
import pytest

import lbopt
from lbopt import Conditions, InfeasibleDecisionError, InputError, StepProblem
from lbopt.model import (
    barrier_total,
    check_assignment,
    check_paused,
    imbalance,
    in_blocks,
    loads_after,
    objective,
    rank,
)
from lbopt.model.objective import costs, goals_reached

PLAIN = StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
WINDOW = StepProblem(base=[[9, 3], [4, 4], [1, 0]], slots=[1, 2, 0], work=[[4, 5], [7, 8], [9, 0]])

EVERYTHING = Conditions(
    capacity=[40, 50, 60],
    need=[30, 20, 10, 10, 10],
    allowed=[[True, True, False]] + [[True] * 3] * 4,
    credit=[[5, 0, 0]] * 5,
    pace=[5, 4, 4],
    prefill_budget=[400, 500, 600],
    waiting_cost=[1, 2, 3, 4, 5],
    overdue_first=True,
    admit="free",
    running_worker=[0, 2],
    running_work=[[100], [50]],
    pause_cost=[7, 8],
)


# ---------------------------------------------------------------------------------------------------------------------
# what they are


def test_a_problem_without_conditions_is_what_it_was():
    """Same digest, same file, as before there were conditions."""
    assert PLAIN.digest == "3bdf64993be11f87a15100c8fb3699b02ef893c8ed3fafa8ab66b38a7d2bfa0e"
    assert PLAIN.to_dict()["version"] == 1 and "conditions" not in PLAIN.to_dict()
    nothing = Conditions(
        allowed=[[1] * 3] * 5, credit=[[0] * 3] * 5, pace=[1] * 3, waiting_cost=[0] * 5, overdue_first=True, admit=4
    )
    for conditions in (None, Conditions(), nothing, Conditions(running_worker=[], running_work=[], pause_cost=[])):
        same = PLAIN.under(conditions)
        assert same == PLAIN and same.conditions is None and same.digest == PLAIN.digest
        assert repr(same) == repr(PLAIN)


def test_defaults_are_filled_in():
    """Needs are the tokens at the end of the window, prompts those at its beginning."""
    conditions = WINDOW.under(Conditions(capacity=[9, 9, 9], prefill_budget=[8, 8, 8])).conditions
    assert conditions.need.tolist() == [5, 8, 0] and conditions.prompt.tolist() == [4, 7, 9]
    assert [resource.name for resource in conditions.resources] == ["KV capacity", "prefill budget"]
    paused = WINDOW.under(Conditions(running_worker=[0], running_work=[2], pause_cost=[1])).conditions
    assert paused.running_work.tolist() == [[2, 2]] and paused.num_pausable == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"capacity": [1, 2]}, "capacity has 2 entries; the problem has 3 workers"),
        ({"capacity": [1, 2, -3]}, r"capacity\[2\] is -3; expected zero or more"),
        ({"capacity": [1, 2, 0.5]}, r"capacity\[2\] is 0.5; expected a whole number"),
        ({"capacity": [1] * 3, "need": [1]}, "need has 1 entries; the problem has 5 requests"),
        ({"need": [1] * 5}, "need is given without capacity"),
        ({"prompt": [1] * 5}, "prompt is given without prefill_budget"),
        ({"allowed": [True] * 3}, r"allowed must be 2-D; it has shape \(3,\)"),
        ({"allowed": [[1, 2, 0]] * 5}, r"allowed\[0, 1\] is 2; expected true, false, 0 or 1"),
        ({"allowed": [["a"] * 3] * 5}, "allowed must hold truth values"),
        ({"allowed": [[1, 1], [1]]}, "allowed is not a rectangular array"),
        ({"allowed": [[True] * 3] * 4}, r"allowed has shape \(4, 3\); expected a row for each of 5 requests"),
        ({"credit": [1, 1, 1]}, r"credit must be 2-D; it has shape \(3,\)"),
        ({"credit": [[1] * 3] * 4}, r"credit has shape \(4, 3\)"),
        ({"credit": [[0] * 3] * 4 + [[81, 0, 0]]}, r"credit\[4, 0\] is 81, but the smallest work of request 4 is 80"),
        ({"pace": [1, 0, 1]}, r"pace\[1\] is 0; expected at least 1"),
        ({"overdue_first": True}, "overdue_first is given without waiting_cost"),
        ({"waiting_cost": [1] * 5, "overdue_first": "yes"}, "overdue_first is 'yes'; expected true or false"),
        ({"admit": "all"}, "admit is 'all'; expected most or free, or how many to admit"),
        ({"admit": -1}, "admit is -1"),
        ({"admit": True}, "admit is True"),
        ({"admit": 5}, r"admit is 5, but only 4 can be admitted \(5 waiting, 4 free slots\)"),
        ({"running_worker": [0]}, "need running_worker, running_work, pause_cost; running_work is absent"),
        ({"running_worker": [3], "running_work": [1], "pause_cost": [1]}, r"running_worker\[0\] is 3; expected 0..2"),
        ({"running_worker": [0], "running_work": [1, 2], "pause_cost": [1]}, "expected one row each"),
        ({"running_worker": [0], "running_work": [[1, 2]], "pause_cost": [1]}, "of 1 columns or one"),
        ({"running_worker": [2, 2], "running_work": [300, 101], "pause_cost": [0, 0]}, "holds more at step 0"),
        ({"waiting_cost": [2**61] * 5}, "waiting_cost adds up to"),
        ({"pace": [2**60, 1, 1]}, r"could reach \d+, beyond 2\*\*62"),
    ],
)
def test_each_wrong_value_gets_its_sentence(given, says):
    with pytest.raises(InputError, match=says):
        PLAIN.under(Conditions(**given))


def test_conditions_of_another_type_are_refused():
    with pytest.raises(InputError, match="conditions is a dict; expected Conditions"):
        StepProblem([1], [1], [1], conditions={"pace": [2]})


def test_credit_needs_work():
    """A request that is there in no step has no prefix that a worker could hold."""
    empty = StepProblem.now([1], [1], [0])
    with pytest.raises(InputError, match="the smallest work of request 0 is 0"):
        empty.under(Conditions(credit=[[1]]))
    leaves = StepProblem([[0, 0]], [1], [[7, 0]])
    assert leaves.under(Conditions(credit=[[7]])).conditions.credit.tolist() == [[7]]


def test_blocks_are_rounded_up():
    assert in_blocks([0, 1, 15, 16, 17, 32]).tolist() == [0, 1, 1, 1, 2, 2]
    assert in_blocks([5], size=5).tolist() == [1] and in_blocks([2**62]).tolist() == [2**58]
    for size in (0, True, 1.5):
        with pytest.raises(InputError, match="size is"):
            in_blocks([1], size)


# ---------------------------------------------------------------------------------------------------------------------
# what they mean


def test_loads_by_hand():
    """Credits leave work where there is some, a pause leaves column 0, and paces multiply what remains."""
    problem = WINDOW.under(
        Conditions(
            credit=[[4, 0, 0], [0, 0, 0], [0, 9, 0]],
            pace=[2, 3, 1],
            running_worker=[0],
            running_work=[[5, 2]],
            pause_cost=[11],
            waiting_cost=[10, 20, 30],
        )
    )
    placed = np.array([0, -1, 1])
    assert loads_after(problem, placed).tolist() == [[18, 8], [12, 12], [1, 0]]
    assert loads_after(problem, placed, np.array([True])).tolist() == [[8, 8], [12, 12], [1, 0]]
    assert costs(problem, placed, np.array([True])) == 20 + 11
    assert objective(problem, placed, np.array([True])) == (36 - 21) + (36 - 20) + 31
    assert barrier_total(problem, placed, np.array([True])) == 72
    assert imbalance(loads_after(problem, placed)) == (54 - 31) + (36 - 20)


def test_goals_come_first():
    waiting = {"waiting_cost": [1, 2, 3, 4, 5]}
    placed = np.array([-1, 2, 1, 1, 0])
    ranks = {
        "most": rank(PLAIN.under(Conditions(**waiting)), placed),
        "free": rank(PLAIN.under(Conditions(**waiting, admit="free")), placed),
        "overdue": rank(PLAIN.under(Conditions(**waiting, overdue_first=True)), placed),
        "both": rank(PLAIN.under(Conditions(**waiting, overdue_first=True, admit="free")), placed),
        "number": rank(PLAIN.under(Conditions(**waiting, admit=4)), placed),
    }
    assert ranks == {"most": (1, 331), "free": (331,), "overdue": (1, 1, 330), "both": (1, 330), "number": (331,)}
    assert goals_reached(PLAIN, placed) == () and rank(PLAIN, placed) == (330,)


def test_assignments_are_checked_against_conditions():
    problem = PLAIN.under(Conditions(capacity=[200, 400, 300], allowed=[[True, True, False]] + [[True] * 3] * 4))
    assert check_assignment(problem, [-1, 2, 1, 1, 0]).tolist() == [-1, 2, 1, 1, 0]
    assert check_assignment(problem, [-1] * 5).tolist() == [-1] * 5  # how many is a goal here, not a rule
    for wrong, says in (
        ([2, -1, -1, -1, -1], "sends request 0 to worker 2, which may not take it"),
        ([0, -1, -1, -1, -1], "takes 310 of the KV capacity of worker 0, which has 200"),
        ([-1, -1, 0, 2, 0], "sends 2 requests to worker 0, which has 1 free slots"),
        ([-1, 1, 1, -1, -1], "takes 410 of the KV capacity of worker 1, which has 400"),
    ):
        for full in (True, False):
            with pytest.raises(InfeasibleDecisionError, match=says):
                check_assignment(problem, wrong, full=full)
    tight = PLAIN.under(Conditions(capacity=[310, 309, 400]))
    assert check_assignment(tight, [0, -1, -1, -1, -1]).tolist() == [0, -1, -1, -1, -1]
    with pytest.raises(InfeasibleDecisionError, match="takes 310 of the KV capacity of worker 1, which has 309"):
        check_assignment(tight, [1, -1, -1, -1, -1])
    three = PLAIN.under(Conditions(admit=3))
    assert three.num_admitted == 3
    with pytest.raises(InfeasibleDecisionError, match="admits 4 requests; exactly 3 must be admitted"):
        check_assignment(three, [2, -1, 1, 1, 0])
    forced = StepProblem.now([1, 2], [1, 1], [3, 4], [True, False]).under(Conditions(admit="free"))
    with pytest.raises(InfeasibleDecisionError, match="leaves request 0 waiting"):
        check_assignment(forced, [-1, 0])


def test_pauses_are_checked():
    problem = PLAIN.under(Conditions(running_worker=[0, 1], running_work=[3, 4], pause_cost=[1, 1]))
    assert check_paused(problem, None).tolist() == [False, False]
    assert check_paused(problem, [True, False]).tolist() == [True, False]
    assert check_paused(PLAIN, None) is None
    for wrong in ([True], [1, 0]):
        with pytest.raises(InfeasibleDecisionError, match="expected true or false for each of the 2 running requests"):
            check_paused(problem, wrong)


def test_others_refuse_conditions():
    """What does not know conditions says so rather than leave them out."""
    from lbopt.instances.library.entry import compact
    from lbopt.policies.observation import Observation

    problem = PLAIN.under(Conditions(pace=[2, 1, 1]))
    for ask in (compact, Observation.of_problem):
        with pytest.raises(InputError, match="does not know conditions, and the problem has some"):
            ask(problem)


# ---------------------------------------------------------------------------------------------------------------------
# files


def test_json_keeps_everything():
    problem = PLAIN.under(EVERYTHING)
    data = json.loads(problem.to_json())
    again = StepProblem.from_json(problem.to_json())
    assert data["version"] == 2 and again == problem and again.digest == problem.digest and hash(again) == hash(problem)
    assert again.conditions.allowed.dtype == np.bool_ and data["conditions"]["allowed"][0] == [1, 1, 0]
    assert "overdue_first" not in PLAIN.under(Conditions(pace=[2, 1, 1])).to_dict()["conditions"]


def test_the_digest_covers_each_condition():
    """Every field changes it, and so does moving numbers from one to another."""
    data = PLAIN.under(EVERYTHING).to_dict()
    seen = {PLAIN.digest, data.pop("digest")}
    for name, values in data["conditions"].items():
        changed = json.loads(json.dumps(data))
        if name == "overdue_first":
            changed["conditions"][name] = False
        elif name == "admit":
            changed["conditions"][name] = "most"
        elif name == "allowed":
            changed["conditions"][name][1][1] = 0
        elif isinstance(values[0], list):
            changed["conditions"][name][0][0] -= 1
        else:
            changed["conditions"][name][0] += 1
        seen.add(StepProblem.from_dict(changed).digest)
    assert len(seen) == 2 + len(data["conditions"])
    one = PLAIN.under(Conditions(capacity=[1, 2, 3], need=[1] * 5))
    other = PLAIN.under(Conditions(prefill_budget=[1, 2, 3], prompt=[1] * 5))
    assert one.digest != other.digest and one != other


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 3}, "has format version 3; this lbopt reads version 1, and 2 with conditions"),
        ({"version": True}, "has format version True"),
        ({"version": 1}, "has conditions, which version 2 has, but says version 1"),
        ({"conditions": None}, "lacks conditions"),
        ({"conditions": [1]}, re.escape("conditions is [1]; expected an object")),
        ({"conditions": {"speed": [1]}}, "condition 'speed' is unknown; expected some of capacity"),
        ({"conditions": {"pace": "fast"}}, "pace must be 1-D"),
        ({"conditions": {"pace": [{}, 1, 1]}}, "expected a whole number"),
        ({"conditions": {"allowed": {}}}, "allowed must be 2-D"),
        ({"conditions": {"admit": [1]}}, re.escape("admit is [1]; expected")),
        ({"conditions": {"pace": [7, 1, 1]}}, "it was changed after it was written"),
    ],
)
def test_wrong_files_get_one_sentence(change, says):
    data = PLAIN.under(Conditions(pace=[2, 1, 1])).to_dict() | change
    with pytest.raises(InputError, match=says):
        StepProblem.from_dict(data)


def test_version_two_without_a_word_is_the_plain_problem():
    data = {**PLAIN.to_dict(), "version": 2, "conditions": {"admit": "most"}}
    assert StepProblem.from_dict(data) == PLAIN


def test_the_flat_name():
    assert lbopt.Conditions is Conditions and "pace" in repr(PLAIN.under(Conditions(pace=[2, 1, 1])))
    assert Conditions(pace=[2]) == Conditions(pace=[2]) != Conditions(pace=[3])
    assert hash(Conditions(pace=[2])) == hash(Conditions(pace=[2])) and Conditions() != "none"
