"""What the prefill simulation refuses, in one sentence that names the thing, the value and the way out."""

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, make_prefill_policy, simulate_prefill

NAN = float("nan")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"num_instances": 0}, "there are 0 instances; expected at least 1"),
        ({"num_instances": 5000}, "5000 instances; expected at most 4096"),
        ({"units_per_instance": 0}, "units_per_instance is 0"),
        ({"chunk_tokens": 0}, "chunk_tokens is 0; expected at least 1 token"),
        ({"requests_per_pass": 0}, "requests_per_pass is 0; expected at least 1 request"),
        ({"queue_limit": 0}, "queue_limit is 0; expected at least 1 request"),
        ({"latency": -1e-3}, "latency is -0.001 s; expected 0 or more"),
        ({"latency": NAN}, "latency is nan s"),
        ({"policy": "stagered"}, "unknown prefill policy 'stagered': did you mean staggered"),
        ({"policy": "staggered:timer=sundial"}, "unknown timer of a staggered policy 'sundial'"),
        ({"policy": "staggered:target=moon"}, "unknown target of a staggered policy 'moon'"),
        ({"policy": "pooled:ready=soon"}, "unknown ready of a pooled policy 'soon'"),
        ({"policy": "staggered:interval=0"}, "interval is 0.0 s; expected at least"),
        ({"policy": "staggered:window=-1"}, "window is -1"),
        ({"policy": "staggered:interval=1,window=3"}, "window and default_pass say nothing"),
        ({"policy": "jsq:by=colour"}, "by is 'colour'; expected requests or tokens"),
        ({"allocation": "shortest"}, "unknown allocation 'shortest'"),
        ({"engine": "lazy"}, "unknown engine 'lazy'"),
        ({"phases": "odd"}, "unknown phases 'odd'"),
        ({"phases": (0.0,)}, "1 phases; expected one for each of 2 instances"),
        ({"phases": (0.5, 0.0)}, "expected times from 0 on, in ascending order"),
        ({"policy": "random", "topology": ((1.0, 1),)}, "binds on arrival and does not follow a changing topology"),
        ({"topology": ((2.0, 1), (1.0, 2))}, "topology changes at 1.0 s after 2.0 s"),
        ({"topology": ((2.0, 3),)}, "topology leaves 3 instances at 2.0 s"),
        ({"topology": ((2.0, 0),)}, "leaves no healthy instance from 2.0 s on"),
    ],
)
def test_setting(given, says):
    with pytest.raises(InputError, match=says):
        PrefillSetting(**{"num_instances": 2, **given})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"base": -0.1}, "base is -0.1 s; expected 0 or more"),
        ({"base": 0.0}, "base is 0.0 s; expected at least 1e-06 s"),
        ({"per_token": -1e-6}, "per_token is -1e-06 s"),
        ({"per_longest": NAN}, "per_longest is nan s"),
        ({"per_mean": -1e-6}, "per_mean is -1e-06 s"),
    ],
)
def test_pass_time(given, says):
    with pytest.raises(InputError, match=says):
        PassTime(**given)


@pytest.mark.parametrize(
    ("arrival", "length", "hits", "says"),
    [
        ([0.0, 2.0, 1.0], [1, 1, 1], None, r"arrival\[2\] = 1.0 s is before its predecessor; sort by arrival first"),
        ([0.0, NAN], [1, 1], None, r"arrival\[1\] is nan; expected a time"),
        ([-1.0], [1], None, r"arrival\[0\] is -1.0"),
        ([], [], None, "at least 1 request"),
        ([0.0], [1, 2], None, "1 arrivals but 2 lengths"),
        ([0.0], [0], None, r"length\[0\] is 0; expected prompts of at least 1 token"),
        ([0.0], [2**50], None, "expected below 2"),
        ([0.0], [5], [[[4], [6]]], r"hits\[0, 1, 0\] is 6, but the prompt has 5 tokens"),
        ([0.0], [5], np.zeros((2, 2, 1), int), "hits are of 2 requests, but there are 1"),
    ],
)
def test_requests(arrival, length, hits, says):
    with pytest.raises(InputError, match=says):
        PrefillRequests(arrival, length, hits)


def test_hits_of_another_fleet():
    requests = PrefillRequests([0.0], [5], np.zeros((1, 3, 1), int))
    with pytest.raises(InputError, match="hits are for 3 instances of 1 units; the setting has 2 of 1"):
        simulate_prefill(requests, PrefillSetting(2), seed=0)


def test_rates_and_times():
    with pytest.raises(InputError, match=r"rate is 0.0 requests a second"):
        PrefillRequests.poisson(0.0, 1, 0, 10)
    with pytest.raises(InputError, match="count is 0"):
        PrefillRequests.poisson(1.0, 1, 0, 0)
    trace = Trace(prompt=[5, 6], output=[1, 1], name="timeless")
    with pytest.raises(InputError, match="trace 'timeless' has no arrival times"):
        PrefillRequests.of_trace(trace)
    with pytest.raises(InputError, match="rate is -1"):
        PrefillRequests.of_trace(Trace(prompt=[5, 6], output=[1, 1], arrival=[0, 1]), rate=-1)
    with pytest.raises(InputError, match="confidence is 99"):
        simulate_prefill(PrefillRequests([0.0], [5]), PrefillSetting(1), seed=0).metrics(99)


def test_names_can_be_read_back():
    for spec in ("random", "jsq:by=tokens", "pooled", "staggered", "staggered:timer=tick,window=8,idle_bypass=yes"):
        assert make_prefill_policy(make_prefill_policy(spec).name) == make_prefill_policy(spec)
