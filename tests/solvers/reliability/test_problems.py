"""Random problems of every kind, with numbers up to 2**62, against an enumeration from the definition."""

import json
import random
from collections import Counter

import pytest
from naive.step_optimum import least_imbalance, most_even_loads
from solvers.reliability.answers import as_case, contradiction, from_case
from solvers.reliability.drawn import KINDS, drawn
from solvers.reliability.long_run import run
from solvers.reliability.problems import CASES
from solvers.small_problems import naive_optimum, random_problem

pytestmark = pytest.mark.jit


def test_the_enumeration_is_that_of_all_assignments():
    for seed in range(60):
        problem = random_problem(random.Random(seed), (3, 40)[seed % 2], requests=5)
        optimum, loads = naive_optimum(problem)
        numbers = (problem.base.tolist(), problem.slots.tolist(), problem.work.tolist(), problem.must_admit.tolist())
        assert least_imbalance(*numbers) == optimum
        assert most_even_loads(*numbers, optimum) == loads


def test_no_answer_contradicts_the_enumeration():
    seen: Counter = Counter()
    for number in range(120):
        one = drawn(f"0/{number}", requests=7)
        wrong = contradiction(one, seen)
        assert wrong is None, (number, wrong, json.dumps(as_case(one, wrong)))
    assert seen["exact: optimal, proved"] == seen["problems"] == 120
    assert min(seen[f"kind: {kind}"] for kind in KINDS) > 2
    assert min(seen["must admit"], seen["hints"], seen["all admitted"], seen["closed workers"]) > 20
    assert min(seen["loads beyond 2**31"], seen["loads beyond 2**53"], seen["ties broken"]) > 20
    assert seen["slots beyond 2**30"] > 2


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_wrong_once_stays_right(path):
    assert contradiction(from_case(json.loads(path.read_text(encoding="utf-8"))), Counter()) is None


def test_a_wrong_optimum_would_be_noticed(monkeypatch):
    """Each planted error is found among few problems, and its case can be asked again."""
    for name, planted in (
        ("least_imbalance", lambda *numbers: least_imbalance(*numbers) + 1),
        ("elementary_bound", lambda problem: 2**62),
        ("most_even_loads", lambda *numbers: [-1]),
        ("_broken_rule", lambda one, placed: "no rule" if one.tie == "leximax" else None),
    ):
        with monkeypatch.context() as patched:
            patched.setattr("solvers.reliability.answers.most_even_loads", lambda *numbers: [])
            patched.setattr(f"solvers.reliability.answers.{name}", planted)
            found = [one for number in range(12) if contradiction(one := drawn(f"0/{number}", requests=6), Counter())]
        assert found
        again = from_case(json.loads(json.dumps(as_case(found[0], name))))
        assert contradiction(again, Counter()) is None


def test_a_run_goes_on_where_it_was_stopped(tmp_path, capsys):
    asked = []

    def trial(number, seen):
        asked.append(number)
        seen["trials"] += 1
        if len(asked) == 4:
            raise KeyboardInterrupt
        return "it is seven" if number == 7 else None

    state = tmp_path / "state.json"
    assert run(lambda number, seen: None, 3, state) == 0
    with pytest.raises(KeyboardInterrupt):
        run(trial, 8, state)
    assert asked == [3, 4, 5, 6]
    assert run(trial, 8, state) == 1
    assert asked[4:] == [6, 7]
    assert "trial 7: it is seven" in capsys.readouterr().out
