"""The promises of the triple check as a state machine of Hypothesis; the rules are in `adversary`."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from prefill.protocol.adversary import Adversary


@pytest.mark.parametrize("examples", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_nothing_it_hears_makes_it_break_a_promise(examples):
    allowed = settings(
        max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(Adversary, settings=allowed)
