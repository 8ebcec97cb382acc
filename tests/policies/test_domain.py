"""Blocks of workers for domains: the worked apportionments, and requests that stay in their block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulator.expert_traces import expert_trace

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, RequestExperts, Trace
from lbopt.policies import make_policy
from lbopt.policies.experts import apportioned, block_of_domain
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


def labelled(labels, profile):
    """Return requests of profiles with these labels."""
    M, N = len(labels), len(profile)
    cells = {"chosen": np.ones((M, 1, 2), int), "decode": np.ones((M, 1, 2))}
    experts = RequestExperts(**cells, domain=labels, profile=profile)
    return Trace(prompt=np.ones(N, int), output=np.ones(N, int), experts=experts)


def test_blocks_are_in_proportion_to_requests_and_not_to_prompts():
    training = labelled([0, 1, 2], [0] + [1] * 2 + [2] * 5)  # a prompt each, one to five times
    preference = make_policy("domain").guide.preferences(labelled([0, 1, 2], [0, 1, 2]), 8, training)
    assert preference.sum(axis=1).tolist() == [1, 2, 5]


def test_a_domain_that_nobody_learned_of_joins_the_rarest_block():
    training = labelled([0, 2, 3], [0] * 5 + [1] * 2 + [2])
    preference = make_policy("domain").guide.preferences(labelled([0, 1, 2, 3, 4, 99], [0]), 8, training)
    rarest = preference[3].tolist()
    assert sum(rarest) == 1 and preference[1].tolist() == preference[4].tolist() == preference[5].tolist() == rarest
    assert preference[0].tolist() != rarest != preference[2].tolist()


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
