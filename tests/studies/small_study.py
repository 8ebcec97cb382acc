"""A gap study of seconds, shared by the tests of the study and of its report."""

from dataclasses import fields
from functools import cache
from pathlib import Path

from lbopt.studies.gap import GapConfig, run_gap
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario

ROUTER = f"{Path(__file__).with_name('routers.py')}:lightest"
POLICIES = ("fcfs", "random", "bf-io", ROUTER)
NAMES = ("fcfs", "random", "bf-io", ROUTER)


def small_config(**changes):
    """Three workers of four slots, 300 requests, five states."""
    scenario = {"requests": RequestSource(trace="burstgpt-like", count=300), "num_workers": 3, "slots_per_worker": 4}
    names = {field.name for field in fields(Scenario)}
    scenario |= {name: changes.pop(name) for name in list(changes) if name in names}
    given = {
        "behaviours": ("fcfs",),
        "policies": POLICIES,
        "states": 5,
        "seed": 1,
        "time_limit": 20.0,
    }
    return GapConfig(scenario=Scenario(**scenario), **(given | changes))


@cache
def small_outcome():
    """The finished study of `small_config()`; nobody may change it."""
    return run_gap(small_config())


@cache
def seeds_outcome():
    """Three seeds of two policies, two behaviours."""
    return run_gap(small_config(policies=("fcfs", "random", "br-0"), behaviours=("fcfs", "br-0"), states=3, seeds=3))


def gaps(outcome):
    """Gaps of every state by policy."""
    return [{name: d.objective - s.best for name, d in s.decisions.items()} for s in outcome.solved]
