"""Messages that overlap, hot experts and drafted tokens in a step's time: by hand, and against DeepEP's own table."""

import re
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.hardware import Deployment, RooflineStepTime, device_card, make_step_time, model_card
from lbopt.hardware.calibrated import StepFeatures, shipped_posterior, step_parts
from lbopt.hardware.step_time import CalibratedStepTime, roofline_terms_at

#: Dispatch and combine of DeepEP's low-latency kernels on H800, us by expert parallelism: 128 tokens a device, hidden
#: 7168, 8 experts a token, dispatch in FP8 and combine in BF16 (docs/legacy.md of https://github.com/deepseek-ai/DeepEP).
DEEP_EP = {8: (77, 114), 16: (118, 195), 32: (155, 273), 64: (173, 314), 128: (192, 369), 256: (194, 360)}


def terms(devices, running=128, **deployment):
    """Return the terms of DeepSeek-V3 on H800s, one device a worker."""
    put = Deployment(1, True, weight_bytes=1.0, **deployment)
    law = RooflineStepTime(model_card("deepseek-v3"), device_card("h800"), put)
    requests = np.array([float(running)])
    return roofline_terms_at(law.constants(), law.model, put, devices, requests, requests * devices)


@pytest.mark.parametrize("devices", [32, 64, 128, 256])
def test_the_exchange_is_within_a_seventh_of_what_deep_ep_prints_beyond_two_nodes(devices):
    layer = terms(devices).exchange[0] / model_card("deepseek-v3").moe_layers
    assert layer * 1e6 == pytest.approx(sum(DEEP_EP[devices]), rel=1 / 7)


def test_within_a_node_the_exchange_is_too_long():
    """The card's link is that between nodes."""
    layers = model_card("deepseek-v3").moe_layers
    ratios = [terms(devices).exchange[0] / layers * 1e6 / sum(DEEP_EP[devices]) for devices in (8, 16)]
    assert ratios == pytest.approx([2.3, 1.5], abs=0.1)


def test_overlap_hides_its_share_of_the_messages_and_nothing_else():
    whole, half, none = (terms(32, overlap=overlap) for overlap in (0.0, 0.5, 1.0))
    assert half.exchange == pytest.approx(whole.exchange / 2, rel=1e-15)
    assert not none.exchange.any()
    for part in ("experts", "weights", "attention"):
        assert getattr(half, part) == getattr(whole, part)


def test_the_busiest_device_takes_the_inverse_of_balancedness():
    even, hot = terms(32), terms(32, balancedness=0.8)
    for mean, busiest in zip(even.experts, hot.experts, strict=True):
        assert busiest == pytest.approx(mean / 0.8, rel=1e-15)
    assert hot.exchange == even.exchange
    assert terms(1, balancedness=0.8).experts == terms(1).experts, "one worker shares nothing with others"


def test_experts_of_ones_own_have_no_hot_device():
    local = [make_step_time(f"roofline:experts=local{text}").form(4, 8) for text in ("", ",balancedness=0.5,overlap=1")]
    loads, running = np.array([9000, 100, 0, 40]), np.array([3, 1, 0, 2])
    assert local[0].seconds(loads, running) == local[1].seconds(loads, running)


@pytest.mark.parametrize(
    "text",
    [
        "roofline:device=h800,model=deepseek-v3,tp=1,experts=parallel,query_tokens=2,overlap=0.25,balancedness=0.8",
        "calibrated:device=h200,model=deepseek-v3,tp=2,experts=parallel,kv_bytes=1,balancedness=0.7,query_tokens=2,"
        "overlap=yes,prompt_share=0.5",
    ],
)
def test_a_law_names_itself(text):
    law = make_step_time(text)
    assert law.name == text
    assert make_step_time(law.name) == law
    assert (law.describe()["overlap"], law.describe()["balancedness"]) == (
        (0.25, 0.8) if "0.25" in text else (True, 0.7)
    )


def test_what_is_not_used_is_not_described():
    """As in run.json of version 0.1."""
    assert not {"overlap", "balancedness"} & set(make_step_time("roofline").describe())


CALIBRATED = st.builds(
    CalibratedStepTime,
    device=st.sampled_from(["h200", "mi300x", "ascend-910c", "tpu-v6e"]),
    model=st.sampled_from(["deepseek-v3", "qwen3-30b-a3b", "llama-3-70b"]),
    deployment=st.builds(
        Deployment,
        devices_per_worker=st.sampled_from([1, 2, 8]),
        expert_parallel=st.booleans(),
        query_tokens=st.integers(1, 3),
    ),
    overlap=st.booleans(),
    balancedness=st.sampled_from([None, 0.5, 1.0]),
    prompt_share=st.sampled_from([0.0, 3.0]),
)


@given(CALIBRATED, st.integers(1, 5), st.integers(1, 12), st.integers(1, 200_000))
@settings(max_examples=40, deadline=None)
def test_alike_workers_take_the_calibrated_step(law, workers, running, load):
    """The barrier form splits the parts by who waits for whom; together they are the law that was fitted."""
    parameters, effects = law.parameters()
    step = law.step(workers, running, load / running)
    expected = step_parts(parameters, StepFeatures.of([step])).of_run(effects)[0]
    found = law.form(workers, 12).seconds(np.full(workers, load), np.full(workers, running))
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_longer_worker_waits_for_nobody():
    form = make_step_time("calibrated:device=h200,experts=local,model=qwen3-30b-a3b").form(3, 8)
    loads, running = np.array([1000, 90_000, 0]), np.array([2, 5, 0])
    alone = [form.seconds(np.array([one, 0, 0]), np.array([n, 0, 0])) for one, n in zip(loads, running, strict=True)]
    assert form.seconds(loads, running) == pytest.approx(max(alone), rel=1e-12)


def test_learnt_and_given_balancedness():
    learnt, given_ = make_step_time("calibrated"), make_step_time("calibrated:balancedness=0.5")
    hot = learnt.parameters()[0] != given_.parameters()[0]
    assert hot.sum() == 1
    assert given_.parameters()[0][hot][0] == pytest.approx(np.log(2))
    assert learnt.parameters()[0] == pytest.approx(shipped_posterior().mean[:-2])


def test_a_card_that_changes_is_read_again(tmp_path):
    file = tmp_path / "board.toml"
    text = files("lbopt.hardware.cards").joinpath("devices", "h200.toml").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    law = make_step_time(f"calibrated:device={file}")
    before = law.form(2, 4).per_token
    changed = re.sub(r"(?s)(memory_bandwidth\].*?value = )([0-9.e+]+)", r"\g<1>1e12", text, count=1)
    changed = re.sub(r"(?s)(memory_bandwidth\].*?low = )([0-9.e+]+)", r"\g<1>1e12", changed, count=1)
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    assert law.form(2, 4).per_token > 1.5 * before
