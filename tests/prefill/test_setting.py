"""What a setting says of itself, and the calibrated pass."""

import json

import numpy as np
import pytest

from lbopt.prefill import PassTime, PrefillSetting


def test_calibrated_pass():
    """Table 1 of SBS: the fit at 2725 tokens, and the four points that it goes through."""
    law = PassTime()
    assert law.seconds(2725) == pytest.approx(0.3126, abs=5e-5)
    for tokens, cycle in ((1592, 0.2235), (2725, 0.3114), (2714, 0.3101), (4506, 0.4563)):
        assert law.seconds(tokens) == pytest.approx(cycle, abs=2.5e-3)
    assert PassTime(1.0, 0.0, 0.5).seconds(7, 2) == 2.0
    assert PassTime(1.0, 0.0, 0.0, 0.5).seconds(7, 2, 3.0) == 2.5


def test_described_as_plain_data():
    setting = PrefillSetting(
        3, 8, "staggered:window=16", chunk_tokens=3072, phases=(0.0, 0.1, 0.2), topology=((1.0, 2), (3.0, 3))
    )
    found = json.loads(json.dumps(setting.describe()))
    assert found["policy"]["name"] == "staggered:window=16"
    assert found["pass_time"] == {"base": 0.0943, "per_token": 80.1e-6, "per_longest": 0.0, "per_mean": 0.0}
    assert found["topology"] == [[1.0, 2], [3.0, 3]]
    assert found["chunk_tokens"] == 3072


def test_phases():
    base = PassTime.constant(2.0)
    assert PrefillSetting(4, pass_time=base, phases="even").initial_phases(0).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert PrefillSetting(4, pass_time=base, phases="free").initial_phases(0).tolist() == [0.0] * 4
    drawn = np.concatenate([PrefillSetting(4, pass_time=base).initial_phases(seed) for seed in range(200)])
    assert drawn.min() >= 0 and drawn.max() < 2.0 and drawn.mean() == pytest.approx(1.0, abs=0.1)
    assert (np.diff(PrefillSetting(4).initial_phases(3)) >= 0).all(), "instances are numbered by phase"


def test_saturation():
    """Two instances of four units, 100 tokens each in 0.5 + 0.1 + 0.2 + 0.2 s, in prompts of 20 tokens."""
    setting = PrefillSetting(2, 4, pass_time=PassTime(0.5, 1e-3, 2e-3, 2e-3), chunk_tokens=100)
    assert setting.saturating_rate(20) == pytest.approx(2 * 4 * 100 / 1.0 / 20)
    assert PrefillSetting(2, 4).saturating_rate(20) == float("inf")
