"""A checker that never cries says nothing: every planted defect is caught, by random faults and by the adversary."""

import re

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from prefill.protocol.adversary import Adversary
from prefill.protocol.defects import (
    DEFECTS,
    DeliversTwice,
    ForgetsTheBatch,
    KeepsWhatItGaveUp,
    PostponesForEver,
    ResetsTheLedger,
)
from prefill.protocol.monitor import BrokenPromiseError
from prefill.protocol.schedules import UNTIL, check_outcome, draw, run_and_check

from lbopt.exceptions import LbOptError

#: Settings that show a defect of which few do.
FIXED = {PostponesForEver: {"latency": 0.4, "watchdog": 2.0, "timer": "spacing", "batch_tokens": 60}}


def caught(defect, seeds, enough):
    said = set()
    for seed in seeds:
        try:
            run_and_check(draw(seed, defect, **FIXED.get(defect, {})))
        except BrokenPromiseError as error:
            said.add(str(error))
            if len(said) == enough:
                break
    return said


@pytest.mark.some(22)
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_is_caught(defect):
    assert caught(defect, range(100), 1), "caught in no schedule"


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_is_caught_for_what_it_is(defect):
    said = caught(defect, range(500), 3)
    assert len(said) == 3, "caught in too few of 500 schedules"
    assert any(re.search(DEFECTS[defect], message) for message in said), said


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_the_adversary_finds_it(defect):
    class Against(Adversary):
        scheduler_class = defect

    unshrunk = settings(
        max_examples=200,
        stateful_step_count=40,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    with pytest.raises((LbOptError, AssertionError)):
        run_state_machine_as_test(Against, settings=unshrunk)


@pytest.mark.parametrize("defect", [ResetsTheLedger, KeepsWhatItGaveUp, DeliversTwice, ForgetsTheBatch])
def test_the_end_of_a_run_shows_it_without_the_monitor(defect):
    """The engines' own count is a second witness: who was prefilled, and how often."""
    caught = 0
    for seed in range(12):
        world = draw(seed, defect, **FIXED.get(defect, {}))
        world.monitor.after = lambda *step: None
        try:
            check_outcome(world.run(UNTIL, most_events=4000))
        except (LbOptError, AssertionError):
            caught += 1
    assert caught >= 3
