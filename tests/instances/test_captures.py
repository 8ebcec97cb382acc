"""A capture of a model as a trace."""

from dataclasses import replace

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances import open_trace
from lbopt.locality import MoEShape, capture_of, draw_workload, task_workload, write_capture


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    config = task_workload(shape=MoEShape(2, 16, 3), requests=12, prompt_tokens=9, decode_steps=8)
    _, activity = draw_workload(config, 0)
    path = tmp_path_factory.mktemp("captures") / "mine.npz"
    write_capture(capture_of(activity, 3, "a model"), path)
    return path, activity


def test_requests_come_with_their_experts(captured):
    path, activity = captured
    trace = open_trace(path)
    assert trace.name == "mine" and len(trace) == 12 and trace.arrival is None
    assert (trace.prompt == 9).all() and (trace.output == 512).all()
    assert (trace.experts.chosen == activity.counts).all() and trace.experts.profile.tolist() == list(range(12))
    assert np.allclose(trace.experts.decode, activity.decode) and (trace.experts.domain == activity.domain).all()
    assert len(open_trace(path, count=5)) == 5


def test_a_capture_that_is_off_by_rounding_is_a_trace(captured, tmp_path):
    _, activity = captured
    decode = np.array(activity.decode)
    decode[0, 0, [np.argmin(decode[0, 0]), np.argmax(decode[0, 0])]] += (-1e-4, 1e-4)
    assert decode.min() < 0
    write_capture(replace(capture_of(activity, 3), decode=decode), tmp_path / "rounded.npz")
    assert open_trace(tmp_path / "rounded.npz").experts.decode.min() == 0


def test_something_else_with_that_suffix_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(InputError, match=r"other\.npz"):
        open_trace(tmp_path / "other.npz")
