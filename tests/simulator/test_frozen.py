"""Running and waiting requests of a frozen state: numbers, windows written out by hand, and what is refused."""

import copy

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.policies import ActiveRequests, Observation
from lbopt.simulator import FrozenRequests

#: Two workers: 10 + 2 and 4 + 0 tokens on the first, 7 + 3 on the second; two requests wait.
NOW = StepProblem.now([16, 10], [1, 2], [5, 8])
DATA = {
    "running": {"worker": [0, 1, 0], "prompt": [10, 7, 4], "generated": [2, 3, 0], "output": [3, 9, 4]},
    "waiting_output": [6, 1],
}


def frozen(data=DATA, problem=NOW):
    return FrozenRequests.from_dict(data, problem, source="state 4")


def changed(column, value, waiting=None):
    data = copy.deepcopy(DATA)
    if waiting is None:
        data["running"][column] = value
    else:
        data["waiting_output"] = waiting
    return data


def test_it_survives_its_plain_data():
    requests = frozen()
    assert requests.to_dict() == DATA
    assert requests.waiting_prompt.tolist() == [5, 8]


def test_running_requests_have_the_first_numbers_and_waiting_ones_the_next():
    requests = frozen()
    assert requests.active.requests.tolist() == [0, 1, 2]
    assert requests.active.generated.tolist() == [2, 3, 0]
    assert requests.waiting.tolist() == [3, 4]
    assert requests.truth.prompt.tolist() == [10, 7, 4, 5, 8]
    assert requests.truth.output.tolist() == [3, 9, 4, 6, 1]


def test_windows_by_hand():
    """One request of worker 0 leaves after a step and one after four, the one of worker 1 after six."""
    survives = frozen().window_problem(NOW, 4, "survives")
    assert survives.base.tolist() == [[16, 4 + 1, 4 + 2, 4 + 3, 0], [10, 11, 12, 13, 14]]
    assert survives.work.tolist() == [[5, 6, 7, 8, 9], [8, 9, 10, 11, 12]]
    ends = frozen().window_problem(NOW, 4, "ends")
    assert ends.base.tolist() == survives.base.tolist()
    assert ends.work.tolist() == [[5, 6, 7, 8, 9], [8, 0, 0, 0, 0]]
    assert frozen().window_problem(NOW, 3, "survives").base.tolist() == [[16, 5, 6, 7], [10, 11, 12, 13]]


@pytest.mark.parametrize("new", ["survives", "ends"])
def test_requests_that_must_be_admitted_stay_so(new):
    must = StepProblem.now([16, 10], [1, 0], [5, 8], must_admit=[False, True])
    assert frozen(problem=must).window_problem(must, 2, new).must_admit.tolist() == [False, True]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "lack a list of running ones with worker, prompt, generated, output"),
        ({"running": [1]}, "lack a list of running ones"),
        ({"running": {"worker": [], "prompt": [], "generated": []}}, "lack a list of running ones"),
        (changed("output", [3, 9]), r"columns of \[3, 3, 3, 2\] entries and 2 outputs for 2 waiting requests"),
        (changed("", [], waiting=[6]), "and 1 outputs for 2 waiting requests"),
        (changed("worker", [0, 2, 0]), "a request runs on worker 2 of 2"),
        (changed("output", [2, 9, 4]), "a running request has made all its tokens"),
        (changed("", [], waiting=[6, 0]), "a waiting one has none to make"),
        (changed("prompt", [10, 8, 4]), "running requests of worker 1 hold 11 tokens, its load is 10"),
        (changed("prompt", [9, 7, 4]), "running requests of worker 0 hold 15 tokens, its load is 16"),
    ],
)
def test_what_does_not_fit_its_problem_is_refused(data, says):
    with pytest.raises(InputError, match=f"state 4.*{says}"):
        frozen(data)


def test_limits_that_are_allowed():
    """One token left to make, one to make at all, the last worker, and nothing running."""
    assert frozen(changed("output", [3, 4, 1])).output.tolist() == [3, 4, 1]
    empty = {"running": {name: [] for name in DATA["running"]}}
    idle = StepProblem.now([0, 0], [1, 2], [])
    assert frozen(empty, idle).active.requests.tolist() == []


def test_an_observation_becomes_frozen_with_the_truth_of_its_numbers():
    active = ActiveRequests(worker=[1], requests=[2], prompt=[7], generated=[3])
    sees = {"running": [0, 1], "queued": [0, 0], "queued_tokens": [0, 0], "sizes": [8], "waited": [0], "requests": [0]}
    observation = Observation(step=3, clock=0.0, loads=[0, 10], free_slots=[1, 0], **sees, active=active)
    requests = FrozenRequests.of(observation, np.array([6, 5, 9]))
    assert (requests.output.tolist(), requests.waiting_output.tolist()) == ([9], [6])
    assert (requests.worker.tolist(), requests.waiting_prompt.tolist()) == ([1], [8])
    blind = Observation(step=3, clock=0.0, loads=[0, 10], free_slots=[1, 0], **sees)
    assert FrozenRequests.of(blind, np.array([6, 5, 9])) is None
