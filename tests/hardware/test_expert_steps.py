"""The decode step of a model with experts: what is timed, the law, and what an H100 gave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.hardware.measure.timing import Estimate
from lbopt.studies.locality.laws import MEASURED, law_of
from tools.expert_step.measured import (
    StepTimes,
    fit,
    fit_part,
    fitting_layers,
    forecast,
    is_read,
    measure_steps,
)
from tools.expert_step.plan import PARTS, DecoderShape, Place, Sizes, choices, places, steering
from tools.expert_step.sweep import Sweep, Timed
from tools.expert_step.tables import step_time_tables, write_step_times

HERE = Path(__file__).parent
QWEN, GPT_OSS = DecoderShape.of("qwen3-30b-a3b"), DecoderShape.of("gpt-oss-120b")
TINY = DecoderShape("tiny", 2, 128, 8, 2, 16, 16, 4, 64, 50)
FEW = Sizes((2, 4, 8), (16, 64), (4, 8, 16), 512)


def measured(model: str, shape: DecoderShape) -> StepTimes:
    """The same as what the command has in hand."""
    data, timed = stored(model)
    return StepTimes(shape, data["layers"], timed, data["date"], data["machine"], data["plain_read"])


def stored(model: str) -> tuple[dict, list[Timed]]:
    """A measurement of 2026-11-26 and its medians."""
    data = json.loads((HERE / "expert_steps" / f"{model}.json").read_text(encoding="utf-8"))
    return data, [Timed(Place(*row[:5]), [row[5]]) for row in data["rows"]]


def test_shapes_of_cards_and_their_bytes() -> None:
    assert QWEN.expert_bytes == 3 * 2048 * 768 * 2
    assert QWEN.attention_bytes == 2 * (2048 * (32 + 8) * 128 + 32 * 128 * 2048)
    assert QWEN.token_bytes == 2 * 4 * 128 * 2
    assert QWEN.context(0, 8192) == 8192
    assert [GPT_OSS.context(layer, 8192) for layer in (0, 1)] == [128, 8192]
    with pytest.raises(InputError, match="has other layers than those that are measured here"):
        DecoderShape.of("deepseek-v3")


@pytest.mark.parametrize("shape", [QWEN, GPT_OSS, TINY], ids=lambda shape: shape.name)
def test_as_many_experts_are_active_as_a_place_says(shape: DecoderShape) -> None:
    rng = np.random.default_rng(1)
    planned = places(shape, FEW if shape is TINY else Sizes())
    assert {one.part for one in planned} == set(PARTS)
    assert len(set(planned)) == len(planned)
    for place in planned:
        if not place.active:
            continue
        chosen = choices(place, shape, rng)
        assert chosen.shape == (place.requests, shape.experts_per_token)
        assert len(np.unique(chosen)) == place.active
        assert all(len(set(row)) == shape.experts_per_token for row in chosen.tolist())
        used = np.bincount(chosen.ravel(), minlength=shape.experts)
        assert (used == place.requests).sum() >= place.generalists
        bias = steering(chosen, shape.experts)
        best = np.argsort(-bias, axis=1, kind="stable")[:, : shape.experts_per_token]
        np.testing.assert_array_equal(np.sort(best), np.sort(chosen))


def law_of_seconds(place: Place) -> float:
    """A step of two layers by hand."""
    tokens = place.requests * place.context
    seconds = 2 * (20e-6 + 3e-6 * place.active + 1e-7 * place.requests) if place.active else 0.0
    seconds += 2 * (30e-6 + 5e-8 * place.requests + 6e-10 * tokens) if place.context else 0.0
    return seconds + (2e-4 + 3e-7 * place.requests if place.part in ("head", "step") else 0.0)


def test_a_law_is_found_again_and_adds_up() -> None:
    timed = [Timed(place, [law_of_seconds(place)]) for place in places(TINY, FEW)]
    for one in timed:  # what is not read alone is left out
        if one.place.part == "experts" and not is_read(one.place, TINY):
            one.seconds[0] *= 3
    law = fit(timed, TINY, 2)
    found = {name: one.value for name, one in law.constants().items()}
    assert found == pytest.approx(
        {
            "other_seconds": 2 * 30e-6 + 2e-4,
            "seconds_per_request": 2 * (1e-7 + 5e-8) + 3e-7,
            "seconds_per_token": 2 * 6e-10,
            "layer_seconds": 20e-6,
            "seconds_per_expert": 3e-6,
        }
    )
    assert law.experts.worst < 1e-9
    for one in timed:
        if one.place.part == "step":
            assert law.of(one.place, 2) == pytest.approx(law_of_seconds(one.place))
    step = law.step_time()
    assert step.layers == 2
    assert step.seconds(np.array([64.0]), np.array([4]), np.array([8.0])) == pytest.approx(
        law_of_seconds(Place("step", 4, 16, 8))
    )
    assert law.ratio(16, 4) == pytest.approx((20 + 48) / (20 + 12))


def test_points_that_tell_nothing() -> None:
    with pytest.raises(InputError, match="2 points tell no fixed, active; expected 3 or more"):
        fit_part(("fixed", "active"), [(1, 2), (1, 3)], [1.0, 2.0])
    with pytest.raises(InputError, match="do not tell fixed, active apart"):
        fit_part(("fixed", "active"), [(1, 2)] * 4, [1.0] * 4)


def test_an_interval_holds_the_truth_of_noisy_points() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        rows = [(1.0, float(x)) for x in range(1, 13)]
        found = fit_part(("fixed", "slope"), rows, [(5 + 2 * x) * (1 + 0.01 * rng.standard_normal()) for _, x in rows])
        inside += found["slope"].low <= 2 <= found["slope"].high
    assert 180 <= inside <= 198


def test_a_forecast_by_hand() -> None:
    rate, launch = Estimate(3e12, 2e12, 3e12), Estimate(2e-6, 1e-6, 4e-6)
    found = forecast(QWEN, rate, launch, 5e14)
    assert found["seconds_per_expert"].value == pytest.approx(9_437_184 / 3e12)
    assert found["seconds_per_expert"].high == pytest.approx(9_437_184 / 2e12)
    assert found["seconds_per_token"].value == pytest.approx(98_304 / 3e12)
    assert found["other_seconds"].value == pytest.approx((48 * 37_748_736 + 622_329_856) / 3e12 + 291 * 2e-6)
    assert found["layer_seconds"].low == pytest.approx(2 * 128 * 2048 / 3e12 + 6e-6)
    assert 0 == found["seconds_per_request"].low < found["seconds_per_request"].value
    assert forecast(GPT_OSS, rate, launch, 5e14)["seconds_per_token"].value == pytest.approx(18 * 2048 / 3e12)


#: As docs/results/locality.md has them: µs, but for a token, in ns.
WANTED = {
    "qwen3-30b-a3b": (1920, 6.90, 32.1, 24.5, 3.065),
    "gpt-oss-120b": (1905, 10.4, 11.8, 34.8, 17.07),
}


@pytest.mark.parametrize(("model", "shape"), [("qwen3-30b-a3b", QWEN), ("gpt-oss-120b", GPT_OSS)])
def test_what_an_h100_gave(model: str, shape: DecoderShape) -> None:
    """The constants of the results page, by the fit as it is now; the whole step is the sum of its measured parts."""
    data, timed = stored(model)
    assert data["machine"]["device"] == "NVIDIA H100 80GB HBM3"
    assert max(error for one in data["errors"] for error in one.values()) < 6e-3
    law = fit(timed, shape, data["layers"])
    found = law.constants()
    for name, wanted in zip(found, WANTED[model], strict=True):
        assert 1e6 * found[name].value * (1e3 if name == "seconds_per_token" else 1) == pytest.approx(wanted, rel=4e-3)
    assert law.experts.worst < 0.02
    assert law.experts.numbers.rmse < 0.008
    assert max(law.attention.worst, law.head.worst) < 0.05
    medians = {one.place: one.median for one in timed}
    compared = 0
    for place, seconds in medians.items():
        n = place.requests
        of_experts = medians.get(Place("experts", n, 0, place.active))
        if place.part != "step" or of_experts is None:
            continue
        parts = of_experts + medians[Place("attention", n, place.context)] + medians[Place("head", n)]
        assert parts == pytest.approx(seconds, rel=2e-3)
        compared += 1
    assert compared >= 2
    for place, seconds in medians.items():
        if place.part == "step" and is_read(place, shape):
            assert law.of(place, data["layers"]) == pytest.approx(seconds, rel=0.02)
        if place.part == "experts" and place.generalists and is_read(place, shape):
            assert law.of(place, data["layers"]) == pytest.approx(seconds, rel=0.03)


def test_tables_and_folder_of_a_measurement(tmp_path: Path) -> None:
    found = measured("qwen3-30b-a3b", QWEN)
    constants, steps = step_time_tables(found)
    assert ("an active expert of a layer (c1)", "3.065 (3.055 … 3.075) µs") in constants.rows
    assert "An expert is read at 3.08 TB/s, a large block at 3.11" in constants.caption
    assert len(steps.rows) == 34
    assert sum(row[-1] == "beyond" for row in steps.rows) == 2
    write_step_times(found, tmp_path / "out", "python -m tools.expert_step")
    data = json.loads((tmp_path / "out" / "law.json").read_text(encoding="utf-8"))
    assert data["constants"]["seconds_per_expert"][0] == pytest.approx(3.065e-6, rel=1e-3)
    assert len((tmp_path / "out" / "steps.csv").read_text(encoding="utf-8").splitlines()) == len(found.timed) + 1


def test_layers_that_fit() -> None:
    """80 GB hold all layers of Qwen3-30B-A3B and ten of GPT-OSS-120B; 24 GB hold too few of the latter."""
    assert fitting_layers(QWEN, 83_000_000_000, Sizes()) == 48
    assert fitting_layers(GPT_OSS, 83_000_000_000, Sizes()) == 9
    with pytest.raises(
        InputError, match=r"4 layers of gpt-oss-120b, its head and a cache need 3\d GB, and 24 GB are free"
    ):
        fitting_layers(GPT_OSS, 24_000_000_000, Sizes())


def test_without_torch_or_an_accelerator_it_says_so() -> None:
    with pytest.raises((BackendUnavailableError, InputError), match="the step of a decoder is timed"):
        measure_steps("qwen3-30b-a3b", print, device="cpu")


def test_the_study_names_the_measured_constants() -> None:
    data, timed = stored("qwen3-30b-a3b")
    found = fit(timed, QWEN, data["layers"]).constants()
    name = MEASURED["h100-measured"]
    parts = dict(part.split("=") for part in name.split(","))
    units = {"other": "ms", "request": "us", "layer": "us", "expert": "us", "token": "ns"}
    fields = ("other_seconds", "seconds_per_request", "layer_seconds", "seconds_per_expert", "seconds_per_token")
    assert list(parts) == list(units)
    for (key, unit), constant in zip(units.items(), fields, strict=True):
        factor = {"ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
        assert float(parts[key].removesuffix(unit)) == pytest.approx(found[constant].value * factor, rel=2e-3)
    measured = fit(timed, QWEN, data["layers"]).step_time()
    step = law_of("h100-measured").step
    assert law_of(name).step == step
    for constant in fields:
        assert getattr(step, constant) == pytest.approx(getattr(measured, constant), rel=2e-3)
    assert replace(step, **{constant: getattr(measured, constant) for constant in fields}) == measured
    hosted = law_of("h100-measured,other=6.5ms,request=20us").step
    assert (hosted.other_seconds, hosted.seconds_per_request) == (pytest.approx(6.5e-3), pytest.approx(20e-6))
    assert hosted.seconds_per_expert == step.seconds_per_expert


@pytest.mark.parametrize("shape", [TINY, DecoderShape("windowed", 2, 96, 8, 2, 16, 16, 4, 64, 50, False, 8)])
def test_the_plain_parts_on_a_processor(shape: DecoderShape) -> None:
    """Everything but the kernels, where torch is installed."""
    pytest.importorskip("torch")
    sweep = Sweep(shape, 2, 2048, "cpu", plain=True)
    assert sweep.tune((2,)) == {}
    assert max(sweep.check(4, 16, 8).values()) == 0.0
    planned = places(shape, FEW)
    said: list[str] = []
    timed = sweep.time(planned, 2, 5.0, said.append)
    assert [len(one.seconds) for one in timed] == [2] * len(planned)
    assert len(said) == 2
    assert sweep.uncaptured(planned[-1], 2) > 0
    assert sweep.bandwidth(1 << 20) > 0


def test_the_kernels_in_tritons_interpreter() -> None:
    """With torch and Triton, and TRITON_INTERPRET=1 in the environment."""
    pytest.importorskip("torch")
    triton = pytest.importorskip("triton")
    if not triton.knobs.runtime.interpret:
        pytest.skip("TRITON_INTERPRET is not 1")
    for shape in (TINY, DecoderShape("windowed", 2, 64, 8, 2, 16, 16, 4, 64, 50, False, 8)):
        sweep = Sweep(shape, 2, 2048, "cpu")
        sweep.tune((2, 5))
        for requests, active in ((2, 8), (5, 16), (5, 4)):
            assert max(sweep.check(requests, 17, active).values()) < 1e-5
