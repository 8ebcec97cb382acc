"""What a step problem accepts, what it refuses and why, and that it survives the way through a file."""

import json

import numpy as np
import pytest
from hypothesis import given
from solvers.small_problems import step_problems

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.model import StepProblem, barrier_total, check_assignment, imbalance, loads_after, objective


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base": [[1, 2], [3]]}, "not a rectangular array"),
        ({"base": [-1, 2]}, "zero or more"),
        ({"base": [0.5, 2]}, "a whole number"),
        ({"base": [float("nan"), 2]}, "finite"),
        ({"base": ["a", "b"]}, "whole numbers"),
        ({"base": []}, "at least one worker"),
        ({"base": 3}, "1-D or 2-D"),
        ({"slots": [1]}, "slots has 1 entries"),
        ({"slots": [1, -1]}, "zero or more"),
        ({"work": [[1, 2], [3, 4]], "base": [[1, 2, 3], [1, 2, 3]]}, "H \\+ 1"),
        ({"work": [2**63]}, "2\\*\\*62"),
        ({"work": [10**5000]}, "a number of 16610 bits"),
        ({"slots": [1, 2**62 + 1]}, "2\\*\\*62"),
        ({"work": [2**61, 2**61]}, "divide all loads"),
        ({"work": [1e17]}, "2\\*\\*53"),
        ({"must_admit": [1]}, "shape"),
        ({"must_admit": [2, 0]}, r"must_admit\[0\] is 2; expected true, false, 0 or 1"),
        ({"must_admit": [1, 1], "slots": [1, 0]}, "must_admit names 2"),
    ],
)
def test_bad_input_is_named(change, words):
    good = {"base": [1, 2], "slots": [1, 1], "work": [3, 4]}
    with pytest.raises(InputError, match=words):
        StepProblem(**{**good, **change})


def test_arrays_are_frozen_copies():
    loads = np.array([1, 2])
    problem = StepProblem.now(loads, [1, 1], [3])
    loads[0] = 99
    assert problem.base[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        problem.work[0, 0] = 5


@given(step_problems())
def test_json_round_trip_keeps_the_problem_and_its_digest(problem):
    again = StepProblem.from_json(problem.to_json())
    assert again == problem
    assert again.digest == problem.digest
    assert hash(again) == hash(problem)


def test_a_changed_file_is_refused(tmp_path):
    data = StepProblem.now([1, 2], [1, 1], [3]).to_dict()
    data["work"] = [[4]]
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="changed after it was written"):
        StepProblem.from_json(path)
    for text, words in (
        ("{", "not valid JSON"),
        ("[]", "not a step problem"),
        ('{"format": "x"}', "not a step problem"),
    ):
        with pytest.raises(InputError, match=words):
            StepProblem.from_json(text)
    with pytest.raises(InputError, match="cannot read"):
        StepProblem.from_json(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ([0], "shape"),
        ([0.0, 1.0, -1.0], "float64"),
        ([0, 7, -1], "worker 7"),
        ([-2, 0, 0], "worker -2"),
        ([0, 0, -1], "1 free slots"),
        ([0, -1, -1], "admits 1"),
        ([0, 1, -1], "request 2 waiting"),
    ],
)
def test_an_infeasible_assignment_is_named(assignment, words):
    problem = StepProblem.now([1, 2], [1, 1], [3, 4, 5], must_admit=[0, 0, 1])
    with pytest.raises(InfeasibleDecisionError, match=words):
        check_assignment(problem, assignment)


def test_the_objective_by_hand():
    problem = StepProblem.survives([10, 20], [1, 1], [5, 9], horizon=1)
    chosen = np.array([1, 0])
    assert loads_after(problem, chosen).tolist() == [[19, 20], [25, 26]]
    assert objective(problem, chosen) == 12
    assert barrier_total(problem, chosen) == 2 * (25 + 26)
    assert imbalance(np.array([3, 5, 5])) == 2


def test_one_column_stands_for_a_constant_load():
    problem = StepProblem(base=[1, 2], slots=[1, 1], work=[[1, 2, 3]])
    assert problem.base.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert problem.horizon == 2


def test_known_ends_drop_out_of_the_window():
    problem = StepProblem.known_ends([0, 0], [1, 1], [5, 5], [1, 3], horizon=2)
    assert problem.work.tolist() == [[5, 0, 0], [5, 6, 7]]
