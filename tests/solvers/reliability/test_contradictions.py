"""Mid-size steps are solved in ways that must agree, and a lie in any of them is noticed."""

import json
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from naive.step_optimum import least_imbalance
from solvers.reliability.contradictions import main, table, trial
from solvers.reliability.held_together import contradiction
from solvers.reliability.long_run import FAILED, kept, run
from solvers.reliability.mid_steps import MADE, TRACES, mid_step
from solvers.reliability.ways import engines, forms

from lbopt.model import objective

pytestmark = pytest.mark.jit

#: A minute in all.
STEPS = 250

ADMISSIONS = ("all admitted", "some wait")


@pytest.mark.first
@pytest.mark.parametrize("first", [0, STEPS])
def test_no_step_contradicts_itself(tmp_path, first):
    """`make test-long` asks an hour of them."""
    seen = Counter()
    for number in range(first, first + STEPS):
        assert trial(number, seen, seed=0, effort=50_000, compared="forms", cases=tmp_path) is None
    assert sum(seen[f"{family}, {how}|steps"] for family in (*TRACES, *MADE) for how in ADMISSIONS) == STEPS
    assert min(sum(seen[f"{family}, {how}|steps"] for family in (*TRACES, *MADE)) for how in ADMISSIONS) > STEPS // 4
    assert seen["seed 0|optimal"] > 0.8 * STEPS
    assert not any(number for key, number in seen.items() if key.endswith(("|guarded", "|contradictions")))


@pytest.mark.parametrize("ways", [forms, engines])
def test_every_way_asks_for_the_same_optimum(ways):
    for number in range(6):
        step = mid_step(f"small {number}", workers=(2, 3), requests=(2, 6))
        for way in ways(step, random.Random(number), 50_000):
            columns = [[load] for load in step.loads], way.slots, [[size] for size in step.sizes]
            optimum = least_imbalance(*columns, [False] * len(step.sizes))
            said = way.ask(way.problem)
            assert said.bound <= way.factor * optimum
            assert said.optimal == (said.bound == way.factor * optimum)
            assert said.optimal or way.name in ("highs", "pulp")  # whose claims about large numbers are not used


def test_lies_are_noticed():
    step = mid_step("lies", workers=(4, 6), requests=(10, 12))
    honest = list(forms(step, random.Random(1), 50_000))
    said = [way.ask(way.problem) for way in honest]
    assert contradiction(step, _saying(honest, said), Counter()) is None
    for k, way in enumerate(honest):
        worse = _worse(way.problem, said[k])
        for lie, word in (
            (replace(said[k], bound=said[k].bound + way.factor, optimal=False), "was found"),
            (replace(said[k], assignment=worse, optimal=True), "optimal with bound"),
            (replace(said[k], assignment=[-1] * len(step.sizes)), "breaks the slots"),
            (None, "raises"),
        ):
            told = [lie if i == k else one for i, one in enumerate(said)]
            seen = Counter()
            found = contradiction(step, _saying(honest, told), seen)
            assert found is not None, (way.name, word)
            assert way.name in found.told
            assert word in found.told
            assert [number for key, number in seen.items() if key.endswith("|contradictions")] == [1]


def _saying(ways, said):
    """The ways, with answers that are given; None raises."""

    def ask(one):
        def answer(problem):
            assert one is not None
            return one

        return answer

    return [replace(way, ask=ask(one)) for way, one in zip(ways, said, strict=True)]


def _worse(problem, said):
    """A placement in which two requests have changed places, and that is worth something else."""
    for i in range(problem.num_requests):
        for j in range(i):
            placed = np.array(said.assignment)
            placed[[i, j]] = placed[[j, i]]
            if objective(problem, placed) != said.bound:
                return placed.tolist()
    raise AssertionError("no two can change")


def test_a_contradiction_is_kept_and_the_run_goes_on(tmp_path, monkeypatch, capsys):
    cases, state, log = tmp_path / "cases", tmp_path / "state.json", tmp_path / "log"

    def lying(step, rng, effort):
        honest = list(forms(step, rng, effort))[:2]
        said = [way.ask(way.problem) for way in honest]
        return _saying(honest, [said[0], replace(said[1], bound=said[0].bound + 10**9, optimal=False)])

    monkeypatch.setattr("solvers.reliability.contradictions.forms", lying)
    words = ["contradictions", "--steps", "3", "--effort", "20000", "--cases", cases, "--state", state, "--log", log]
    monkeypatch.setattr("sys.argv", list(map(str, words)))
    assert main() == 1
    assert "seed 1: at least" in capsys.readouterr().out
    done, seen = kept(state)
    assert (done, seen[FAILED]) == (3, 3)
    assert log.read_text() == table("3 steps, --compared forms --seed 1 --effort 20000", seen)
    data = [json.loads(path.read_text()) for path in cases.glob("*.json")]
    assert len(data) == 3
    assert {tuple(one) for one in data} == {("loads", "slots", "sizes", "optimum", "why")}


def test_a_run_stops_after_its_minutes(tmp_path):
    state = tmp_path / "state.json"
    assert run(lambda number, seen: None, 5, state, go_on=True, minutes=0) == 0
    assert kept(state)[0] == 1


@pytest.mark.slow
def test_processes_count_what_one_counts(tmp_path, monkeypatch):
    logs = []
    for jobs in (1, 2):
        state, log = tmp_path / f"state-{jobs}.json", tmp_path / f"log-{jobs}"
        words = ["contradictions", "--steps", "12", "--jobs", jobs, "--state", state, "--log", log]
        monkeypatch.setattr("sys.argv", list(map(str, words)))
        assert main() == 0
        logs.append(log.read_text())
    assert logs[0] == logs[1]
