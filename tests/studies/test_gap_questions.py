"""Gap studies that cannot be, and those that are interrupted."""

import dataclasses
import math

import pytest
from studies.small_study import NAMES, POLICIES, small_config

from lbopt.exceptions import InputError
from lbopt.solvers import solve
from lbopt.studies.gap import GapConfig, decisions, run_gap, study
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario


def test_a_fleet_in_one_word_and_the_rule_in_use():
    scenario = Scenario(fleet="8x64")
    assert (scenario, scenario.to_dict()) == (plain := Scenario(slots_per_worker=64), plain.to_dict())
    for given, said in (
        ({"fleet": "8"}, "expected WORKERSxSLOTS"),
        ({"fleet": "2x3", "num_workers": 4}, "give one of both"),
        ({"fleet": "0x3"}, "workers"),
    ):
        with pytest.raises(InputError, match=said):
            Scenario(**given)
    assert GapConfig(baseline="round-robin", policies=("br-0",)).policies == ("round-robin", "br-0")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"baseline": "brr-0"}, "unknown policy 'brr-0'"),
        ({"policies": ("fcfs", "random", "fcfs")}, "policy 'fcfs' is named twice"),
        ({"policies": ("br-0", "br-0:stage_switch=7")}, "policy 'br-0' is named twice"),
        ({"policies": ("fcfs", "nonsense")}, "unknown policy 'nonsense'"),
        ({"behaviours": ("nonsense",)}, "unknown policy 'nonsense'"),
        ({"problems": "/nowhere/steps.jsonl", "long_runs": False}, "cannot read the problems"),
    ],
)
def test_a_study_that_cannot_be_is_refused_before_it_begins(changes, expected, monkeypatch):
    """Baselines that are not there, policies named twice and typos are named before a single state is solved."""
    monkeypatch.setattr(study, "solve_state", lambda *_: pytest.fail("the study began"))
    with pytest.raises(InputError, match=expected):
        run_gap(small_config(**changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"states": 0}, "states is 0"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"policies": ()}, "no policy was named"),
        ({"behaviours": ()}, "no behaviour was named"),
        ({"arrivals": "poisson"}, "unknown arrivals 'poisson'"),
        ({"load": 0.9}, "load has a meaning only"),
        ({"arrivals": "trace", "reveal_target": 3}, "reveal_target has a meaning only"),
        ({"time_limit": 0.0}, "time_limit is 0.0"),
        ({"time_limit": -1.0}, "time_limit is -1.0"),
        ({"time_limit": math.nan}, "time_limit is nan"),
        ({"solver": "highz"}, "'highz'"),
        ({"num_workers": 0}, "worker"),
        ({"slots_per_worker": 0}, "slot"),
        ({"kv_capacity": 0}, "capacity"),
        ({"event_order": "random"}, "'random'"),
        ({"arrivals": "trace", "load": 0.0}, "load"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_at_once(changes, expected):
    """A configuration is checked when it is made."""
    with pytest.raises(InputError, match=expected):
        small_config(**changes)


def test_a_run_without_choices_says_so():
    """One request leaves nothing to choose: an error that names ways out, not an empty report."""
    with pytest.raises(InputError, match="real choice"):
        run_gap(small_config(requests=RequestSource(trace="burstgpt-like", count=1)))


def test_fewer_states_than_wanted_are_noted():
    """Where a run has fewer choices than states wanted, the study goes on and says so."""
    outcome = run_gap(
        small_config(
            requests=RequestSource(trace="burstgpt-like", count=20), policies=("fcfs",), states=500, long_runs=False
        )
    )
    assert 0 < len(outcome.solved) < 500
    assert len(outcome.notes) == 1
    assert outcome.notes[0].startswith(
        f"behaviour fcfs: {len(outcome.solved)} states instead of 500; its run has no more decisions with a real choice"
    )


def interrupting(function, after):
    """`function`, with Ctrl-C instead of call number `after`, counted from 0."""
    calls = iter(range(10_000))

    def call(*arguments, **options):
        if next(calls) == after:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return call


def test_ctrl_c_between_states_keeps_what_is_done(monkeypatch):
    """Interrupted at the third state: two states with all their decisions, no long run, and the mark."""
    monkeypatch.setattr(study, "solve_state", interrupting(study.solve_state, 2))
    outcome = run_gap(small_config())
    assert outcome.interrupted
    assert len(outcome.solved) == 2
    assert all(tuple(s.decisions) == NAMES for s in outcome.solved)
    assert outcome.long_runs == []


def test_ctrl_c_between_long_runs_keeps_what_is_done(monkeypatch):
    """Interrupted at the third long run: all states and two runs."""
    monkeypatch.setattr(study, "long_run", interrupting(study.long_run, 2))
    outcome = run_gap(small_config())
    assert outcome.interrupted
    assert len(outcome.solved) == 5
    assert [r.policy for r in outcome.long_runs] == ["fcfs", "random"]


def test_ctrl_c_while_sampling_ends_the_study(monkeypatch):
    """Interrupted before the first state: an empty outcome that says so."""
    monkeypatch.setattr(study, "gather_states", interrupting(study.gather_states, 0))
    outcome = run_gap(small_config())
    assert outcome.interrupted
    assert (outcome.solved, outcome.long_runs) == ([], [])


def test_ctrl_c_that_a_solver_swallowed_ends_the_study(monkeypatch):
    """A solve that reports "interrupted" means that the user wants to stop, not that the next state is due."""

    def stopped(problem, **options):
        result = solve(problem, **options)
        return dataclasses.replace(result, stop_reason="interrupted")

    monkeypatch.setattr(decisions, "solve", stopped)
    outcome = run_gap(small_config(policies=("fcfs",)))
    assert outcome.interrupted
    assert len(outcome.solved) <= 1
    assert outcome.long_runs == []


def test_progress_is_told_stage_by_stage():
    """Somebody who listens hears three stages, each to its end."""

    class Listener:
        def __init__(self):
            self.stages = []

        def begin(self, what, total):
            self.stages.append([what, total, 0])

        def advance(self, units=1):
            self.stages[-1][2] += units

    listener = Listener()
    run_gap(small_config(policies=("fcfs", "random")), listener)
    assert [stage[1] for stage in listener.stages] == [1, 5, 2]
    assert all(total == done for _, total, done in listener.stages)


def test_a_policy_that_breaks_a_rule_is_named(tmp_path):
    """A router that sends too many requests to a worker ends the study with its name."""
    file = tmp_path / "bad.py"
    file.write_text("def all_to_zero(o):\n    return [0] * o.sizes.size\n")
    with pytest.raises(ValueError, match="all_to_zero"):
        run_gap(small_config(policies=(*POLICIES[:1], f"{file}:all_to_zero"), long_runs=False))
