"""Requests within the limits of a service, and what was served within them."""

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, Slo, TraceTimes, make_slo, simulate


def run_of(slo):
    """One worker, one slot: the second request waits for the three steps of the first; a step takes a second."""
    trace = Trace(prompt=[1, 1], output=[3, 2], arrival=[0.0, 0.5])
    setting = SimulationSetting(Fleet(1, 1), TraceTimes(), "theory", AffineStepTime(1.0, 0.0), slo=slo)
    return simulate(trace, make_policy("fcfs"), setting)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("tpot=1s", [True, True]),
        ("tpot=999ms", [False, False]),
        ("ttft=1s", [True, False]),  # the first token of the second comes at 4 s, 3.5 s after its arrival
        ("ttft=3500ms", [True, True]),
        ("ttft=3.499,tpot=2", [True, False]),
    ],
)
def test_requests_within_the_limits(text, kept):
    run = run_of(make_slo(text))
    assert run.setting.slo.kept(run).tolist() == kept
    metrics = run.metrics()
    assert metrics.slo_share == np.mean(kept)
    assert metrics.goodput_tokens_per_second == pytest.approx((3 * kept[0] + 2 * kept[1]) / 5)


def test_no_limits_no_goodput():
    metrics = run_of(None).metrics()
    assert metrics.slo_share is None
    assert metrics.goodput_tokens_per_second is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "slo names no limit"),
        ("tpot=0", "tpot is 0 s; expected more than 0 seconds"),
        ("tpot=fast", "tpot is 'fast'; expected a duration such as 100ms, 2s or 0.5"),
        ("tpot=3parsecs", "expected a duration"),
        ("latency=3s", "has no option 'latency'"),
    ],
)
def test_what_is_no_limit_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        make_slo(text)


def test_plain_data():
    assert make_slo("tpot=50ms,ttft=2s") == Slo(0.05, 2.0)
    assert Slo(ttft=2.0).describe() == {"tpot": None, "ttft": 2.0}
