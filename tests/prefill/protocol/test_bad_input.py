"""What the protocol refuses, in one sentence that names the thing, the value and the way out."""

import pytest

from lbopt.exceptions import InputError
from lbopt.prefill.protocol import ProtocolSetting, TripleCheck, initial_state
from lbopt.prefill.protocol.faults import Devices, FaultPlan, Outage
from lbopt.prefill.protocol.messages import Arrival, EndForward, IntervalTick, Watchdog
from lbopt.prefill.protocol.world import World

NAN = float("nan")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"num_instances": 0}, "there are 0 healthy instances; expected at least 1"),
        ({"default_pass": -1.0}, "default_pass is -1.0 s; expected more than 0"),
        ({"default_pass": 0.0}, "default_pass is 0.0 s"),
        ({"latency": -0.1}, "latency is -0.1 s; expected 0 or more"),
        ({"latency": NAN}, "latency is nan s"),
        ({"watchdog": 0.9}, r"watchdog is 0.9 mean passes = 0.9 s, shorter than a pass .* expected more than 1"),
        ({"watchdog": 2.0, "latency": 0.6}, "shorter than a pass and the way there and back, 2.2 s"),
        ({"watchdog": -5.0}, "watchdog is -5 mean passes"),
        ({"watchdog": NAN}, "watchdog is nan mean passes"),
        ({"window": 2}, "window is 2; expected at least 3 measured passes, so that one outlier is outvoted"),
        ({"spread": 1.0}, "spread is 1.0; expected more than 1"),
        ({"remembered": -1}, "remembered is -1 requests; expected 0 or more"),
        ({"timer": "sundial"}, "unknown timer 'sundial'"),
        ({"batch_tokens": 0}, "batch_tokens is 0; expected at least 1 token"),
        ({"patience": -1}, "patience is -1 dispatches"),
    ],
)
def test_setting(given, says):
    with pytest.raises(InputError, match=says):
        ProtocolSetting(**{"num_instances": 2, **given})


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([IntervalTick(NAN)], "IntervalTick comes at nan s; expected a finite time"),
        ([Watchdog(0.0, 2)], "Watchdog names instance 2; expected 0 to 1"),
        ([EndForward(0.0, 0, 1, -1.0, 0)], "a pass of instance 0 took -1.0 s; expected more than 0"),
        ([EndForward(0.0, 0, 1, 1.0, -3)], "a pass of instance 0 left -3 tokens; expected 0 or more"),
        ([Arrival(0.0, 7, 0)], "request 7 has 0 tokens; expected at least 1"),
    ],
)
def test_events(events, says):
    scheduler = TripleCheck(ProtocolSetting(2))
    state = initial_state(scheduler.setting)
    with pytest.raises(InputError, match=says):
        for event in events:
            state, _ = scheduler.step(state, event)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lose": 1.5}, "lose is 1.5; expected a probability"),
        ({"longest_delay": -1.0}, "longest_delay is -1.0 s"),
        ({"detection": NAN}, "detection is nan s"),
        ({"slow_factor": 0.0}, "slow_factor is 0.0; expected more than 0"),
        ({"early": 1.0}, "early is 1.0; expected 0 or more, and less than 1"),
        ({"timer_error": -1.0}, "timer_error is -1.0 s; expected 0 or more"),
        ({"lose_batch": 2.0}, "lose_batch is 2.0; expected a probability"),
        ({"clock": ((1.0, NAN),)}, "clock is .*; expected finite times and steps"),
    ],
)
def test_faults(given, says):
    with pytest.raises(InputError, match=says):
        FaultPlan(**given)


def test_outages_and_worlds():
    with pytest.raises(InputError, match=r"outage of instance 1 from 3.0 s to 2.0 s; expected 0 <= start <= end"):
        Outage(1, 3.0, 2.0)
    scheduler = TripleCheck(ProtocolSetting(1))
    with pytest.raises(InputError, match="chunk is 0"):
        Devices(0)
    with pytest.raises(InputError, match=r"poll_period is 0.0"):
        World(scheduler, [(0.0, 1)], FaultPlan(), 0, Devices(), poll_period=0.0)
    with pytest.raises(InputError, match="outage concerns instance 4"):
        World(scheduler, [(0.0, 1)], FaultPlan(mute=(Outage(4, 0.0, 1.0),)), 0, Devices())
