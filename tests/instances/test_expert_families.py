"""Families whose requests use experts."""

import numpy as np
import pytest

from lbopt.instances import open_trace
from lbopt.instances.families import ALL_NAMES, EXPERT_NAMES


@pytest.mark.parametrize("name", EXPERT_NAMES)
def test_a_draw(name):
    assert name in ALL_NAMES
    trace, again, other = (open_trace(name, count=60, seed=seed) for seed in (1, 1, 2))
    experts = trace.experts
    assert trace.digest == again.digest != other.digest
    assert len(trace) == 60 and (trace.output == 512).all() and trace.arrival is not None
    assert (experts.chosen[experts.profile].sum(axis=2) == 8 * trace.prompt[:, None]).all()
    assert len(np.unique(experts.profile)) > 30, "prompts are repeated by chance alone"
    assert np.allclose(experts.decode.sum(axis=2), 8)


def test_seeds_share_their_world():
    one, other = (open_trace("moe-task", count=80, seed=seed).experts for seed in (1, 2))
    alike = np.corrcoef(one.chosen.sum(axis=0).ravel(), other.chosen.sum(axis=0).ravel())[0, 1]
    assert alike > 0.9


@pytest.mark.more
def test_requests_come_at_random_60_a_second():
    gaps = np.diff(open_trace("moe-task", count=3000, seed=0).arrival)
    assert abs(60 * gaps.mean() - 1) < 0.06
    assert abs(gaps.std() / gaps.mean() - 1) < 0.08, "exponential gaps"
