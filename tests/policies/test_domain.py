"""Blocks of workers for domains: the worked apportionments, and requests that stay in their block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulator.expert_traces import expert_trace

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.policies.domain import apportioned, block_of_domain
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate

SETTING = SimulationSetting(Fleet(6, 4), ClosedLoop(5), step_time=AffineStepTime(0.01, 1e-5))


def test_worked_apportionments():
    task, language = np.array([3600, 2779, 2744, 2545]), np.array([500, 250, 80, 46, 124])
    assert apportioned(task, 16).tolist() == [5, 4, 4, 3]
    assert apportioned(task, 8).tolist() == [2, 2, 2, 2]
    assert apportioned(language, 16).tolist() == [8, 4, 1, 1, 2]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=9), st.integers(0, 20))
def test_every_block_has_a_worker_and_none_is_left(counts, more):
    given_ = apportioned(np.array(counts), len(counts) + more)
    assert given_.sum() == len(counts) + more and given_.min() >= 1


def test_the_commonest_domains_have_blocks_of_their_own():
    assert block_of_domain(np.array([3, 0, 9, 5, 1]), 3).tolist() == [2, 2, 0, 1, 2]
    assert block_of_domain(np.array([3, 9]), 5).tolist() == [1, 0]


def test_requests_stay_in_their_block():
    trace, training = expert_trace(1, count=200), expert_trace(2, count=100)
    preference = make_policy("domain").guide.preferences(trace, 6, training)
    assert set(np.unique(preference)) == {0.0, 1.0} and (preference.sum(axis=1) >= 1).all()
    run = simulate(trace, make_policy("domain"), SETTING, training=training)
    assert (preference[trace.experts.profile, run.requests["worker"]] == 1).all()


def test_errors():
    trace = expert_trace()
    bare = Trace(prompt=trace.prompt, output=trace.output)
    for policy, given_, training, words in (
        ("domain:blocks=0", trace, trace, "blocks is 0"),
        ("domain", bare, trace, "does not say which"),
        ("domain", trace, bare, "does not say which"),
        ("domain", trace, None, "needs requests to count"),
    ):
        with pytest.raises(InputError, match=words):
            simulate(given_, make_policy(policy), SETTING, training=training)
