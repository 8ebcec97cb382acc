"""The searches behind the adversarial entries: what they measure, and that they find the same again."""

import json
import random
from dataclasses import asdict, replace
from itertools import islice

import pytest
from solvers.small_problems import naive_optimum

from lbopt import InputError, StepProblem, solve
from lbopt.instances import library
from tools.library import adversarial
from tools.library.adversarial import SEARCHES, climb, found, score
from tools.library.effort import effort
from tools.library.hardest_steps import hardest_step
from tools.library.pattern_bound import pattern_bound
from tools.library.recipes.hard_steps import WALKS


def small(rng, most_slots):
    slots = [rng.randint(1, most_slots) for _ in range(3)]
    return StepProblem.now(
        loads=[rng.randint(0, 20) for _ in slots],
        slots=slots,
        sizes=[rng.randint(1, 20) for _ in range(sum(slots) + 1)],
    )


def test_the_bound_over_patterns_is_a_bound():
    """It is never above the optimum."""
    rng = random.Random(1)
    for _ in range(10):
        problem = small(rng, 2)
        assert pattern_bound(problem) <= solve(problem).objective


def test_the_bound_over_patterns_is_exact_for_single_slots():
    """With one slot a worker the linear program is an assignment problem, which is integral."""
    rng = random.Random(2)
    for _ in range(20):
        problem = small(rng, 1)
        assert pattern_bound(problem) == naive_optimum(problem)[0]


def test_the_bound_over_patterns_says_what_it_is_for():
    """A window or a short pool is refused."""
    with pytest.raises(InputError, match="H = 0"):
        pattern_bound(StepProblem.now(loads=[0], slots=[2], sizes=[1]))


def test_effort_is_repeatable():
    """The same problem takes the same work; numbers beyond the search have none."""
    problem = library.load("steady-rich-burstgpt-g4-b72-r16-h0").problem
    assert effort(problem, 10) == effort(problem, 10) > 0
    assert effort(StepProblem.now(loads=[0, 0], slots=[1, 1], sizes=[2**58, 2**58]), 10) is None


def test_a_problem_without_a_proof_has_no_score(monkeypatch):
    """Where the time is not enough, nothing is compared."""
    monkeypatch.setattr(adversarial, "OPTIMUM_SECONDS", 1e-9)
    problem = library.load("hard-even-g8-c8-n80-max1000000000").problem
    assert score(problem, "br-0") is None


@pytest.mark.parametrize("name", library.names("adversarial"))
def test_the_opponents_reach_what_is_said(name):
    """The rule, or the bound, of an entry gives the number in its explanation; a rule is far from the optimum."""
    entry = library.load(name)
    against, reached = (entry.origin.parameters[key] for key in ("against", "reached"))
    if against == "effort":
        pytest.skip("the work of the search is that of the version that searched")
    assert entry.status == "proved"
    assert score(entry.problem, against).reached == reached
    assert f"{reached:,}" in entry.explanation
    assert reached != entry.best


@pytest.mark.parametrize("against", sorted({search.against for search in SEARCHES}))
def test_a_climb_is_repeatable(against, monkeypatch):
    """The same search finds the same problem, a request for every slot, and slots in their range.

    With time to spare: what is not proved in 0.3 s on a busy machine has no score.
    """
    monkeypatch.setattr(adversarial, "OPTIMUM_SECONDS", 30.0)
    search = next(replace(search, trials=12) for search in SEARCHES if search.against == against)
    problem, scored = climb(search)
    assert (problem, scored) == climb(search)
    assert problem.num_requests == search.requests >= problem.num_free_slots
    assert 1 <= problem.slots.min() <= problem.slots.max() <= search.most_slots


def test_the_file_is_kept_up(tmp_path, monkeypatch, capsys):
    """Searches that the file has are not repeated, new ones are added."""
    few = tuple(replace(search, trials=3) for search in SEARCHES[:2])
    monkeypatch.setattr(adversarial, "SEARCHES", few[:1])
    file = tmp_path / "a.json"
    assert adversarial.main(["--out", str(file)]) == 0
    first = json.loads(file.read_text())
    assert first == [found(few[0])]
    monkeypatch.setattr(adversarial, "SEARCHES", few)
    first[0]["reached"] = -1  # a mark: it is not computed again
    file.write_text(json.dumps(first))
    assert adversarial.main(["--out", str(file)]) == 0
    second = json.loads(file.read_text())
    assert second[0]["reached"] == -1
    assert asdict(few[1]).items() <= second[1].items()
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_hardest_step_is_the_hardest():
    """Among the first steps of a walk, none takes more work than the one that is named."""
    step, work = hardest_step(WALKS[0], 6, 10)
    problems = list(islice(WALKS[0].problems(), 6))
    works = [effort(problem, 10) if problem.num_free_slots else -1 for problem in problems]
    assert works[step] == work == max(works)
