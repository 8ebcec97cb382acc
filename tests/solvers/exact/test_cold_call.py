"""The first call in a process returns what a later one returns: loading kernels is at nobody's expense."""

import json
import subprocess
import sys

import pytest

import lbopt

pytestmark = pytest.mark.jit

#: Problems whose kernels have little in common; solved within milliseconds.
PROBLEMS = {
    "five requests": lbopt.StepProblem.now([9, 0, 3], [2, 1, 1], [1, 2, 4, 5, 7]),
    "now": lbopt.StepProblem.now(
        [20_000 + 811 * g for g in range(12)], [2] * 12, [1 + i * 37 % 991 for i in range(40)]
    ),
    "all admitted": lbopt.StepProblem.now([0] * 8, [12] * 8, [1 + i * i % 97 for i in range(60)]),
    "window": lbopt.StepProblem.survives(
        [20_000 + 811 * g for g in range(12)], [2] * 12, [1 + i * 37 % 991 for i in range(30)], 6, active=range(12)
    ),
    "departures": lbopt.StepProblem.known_ends(
        *([0, 40, 90, 130], [1] * 4, [1 + i * 37 % 91 for i in range(9)], [1 + i % 7 for i in range(9)], 6),
        active=[1, 2, 3, 4],
    ),
}
TIES = ("any", "leximax")

FIRST_CALLS = """
import json, sys, lbopt
for name, text, tie in json.loads(sys.argv[1]):
    print(lbopt.solve(lbopt.StepProblem.from_json(text), "search", time_limit=float(sys.argv[2]), tie=tie).to_json())
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("limit", ["1e-9", "2"])
def test_a_first_call_returns_what_a_later_one_does(limit):
    calls = [
        (name, problem.to_json(), tie)
        for tie in TIES
        for name, problem in PROBLEMS.items()
        if tie == "any" or problem.horizon == 0
    ]
    command = [sys.executable, "-c", FIRST_CALLS, json.dumps(calls), limit]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(printed) == len(calls)
    for (name, _, tie), line in zip(calls, printed, strict=True):
        cold = json.loads(line)
        later = lbopt.solve(PROBLEMS[name], "search", time_limit=float(limit), tie=tie)
        assert cold | {"seconds": None} == json.loads(later.to_json()) | {"seconds": None}, (name, tie)
        if limit == "2":
            assert later.stop_reason == "proved"
