"""Measured decode steps: every row has its document, conversions recomputed, and a draw that can be repeated."""

from dataclasses import fields

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hardware.published import MeasuredStep
from tools.measured_steps import held_out_sources, measured_sources, measured_steps, the_draw

STEPS = measured_steps()


def test_every_row_names_a_document_and_a_place_in_it():
    documents = measured_sources()
    assert {step.source for step in STEPS} == set(documents)
    assert len(STEPS) >= 40
    for document in documents.values():
        assert set(document) == {"title", "address", "date", "converted", "uncertain"}
        assert document["address"].startswith("https://")
        assert np.datetime64(document["date"]) < np.datetime64("2026-12-01")
        assert len(document["converted"]) > 20
    for step in STEPS:
        assert len(step.place) > 15
        assert 0.001 < step.seconds < 0.4, "a decode step of a current engine"


def test_the_sources_that_are_held_out_were_drawn():
    draw = the_draw()
    order = np.random.default_rng(draw["seed"]).permutation(draw["drawable"]).tolist()
    assert order == draw["order"]
    assert draw["drawable"] == sorted(draw["drawable"])
    assert not set(draw["not_drawable"]) & set(draw["drawable"])
    known = {step.source for step in STEPS}
    assert draw["held_out"] == sorted([name for name in order if name in known][:2])
    later = draw["later"]
    assert later["drawable"] == sorted(set(later["drawable"]) - set(draw["drawable"]) - set(draw["not_drawable"]))
    assert later["order"] == np.random.default_rng(later["seed"]).permutation(later["drawable"]).tolist()
    assert set(later["drawable"]) <= known
    assert later["held_out"] == later["order"][:1]
    assert list(held_out_sources()) == draw["held_out"] + later["held_out"]


@pytest.mark.parametrize(
    ("source", "batch", "devices", "tokens_per_second"),
    [
        ("sglang-96-h100", 256, 72, 22_282 * 9),
        ("deepseek-profile", 128, 128, 18_598 * 16),
        ("sglang-kimi-k2", 480, 96, 288_000),
    ],
)
def test_a_step_makes_the_tokens_that_are_printed(source, batch, devices, tokens_per_second):
    (step,) = (step for step in STEPS if step.source == source)
    assert (step.running, step.devices, step.workers) == (batch, devices, devices)
    assert step.running * step.workers * step.accepted / step.seconds == pytest.approx(tokens_per_second, rel=1e-3)


def test_with_multi_token_prediction_a_step_makes_more_tokens_than_requests():
    (step,) = (s for s in STEPS if s.source == "sglang-h20" and s.running == 48)
    assert step.drafted == 2
    assert step.running * step.accepted / step.seconds == pytest.approx(714, rel=1e-3)


def test_static_batches_are_batch_over_throughput():
    (step,) = (s for s in STEPS if s.run == "llama2-70b-0.6.1" and s.running == 480)
    assert step.tp * 1486 * step.seconds == pytest.approx(480, rel=1e-3)
    assert step.prompt_share == pytest.approx(128 / 2048, abs=1e-4)


def test_steps_that_cannot_be():
    given = {field.name: getattr(STEPS[0], field.name) for field in fields(MeasuredStep)}
    with pytest.raises(InputError, match="7 devices in workers of 2; expected a whole number of workers"):
        MeasuredStep(**(given | {"devices": 7, "tp": 2}))
    with pytest.raises(InputError, match="the step takes 0 s; expected a time above 0"):
        MeasuredStep(**(given | {"seconds": 0}))
    with pytest.raises(InputError, match="deepseek-v3 on h200: running is 0; expected a number above 0"):
        MeasuredStep(**(given | {"running": 0}))
