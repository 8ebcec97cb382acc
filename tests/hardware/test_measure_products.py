"""Products of a layer: what is multiplied, how it is timed, what a card makes of it; on devices whose law is known."""

import numpy as np
import pytest
from hardware.fake_backend import FakeBackend, Heard, linear

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import device_card, model_card, model_names
from lbopt.hardware.measure import MeasureConfig, compare, forecasts, layers_of, make_backend, make_card, measure
from lbopt.hardware.measure.attention import attention_shape
from lbopt.hardware.measure.numpy_backend import NumpyBackend, random_block
from lbopt.hardware.measure.products import Product, layer_products, whole_layers
from lbopt.report.measure_report import compared_table, forecast_csv, forecast_table, measure_csv, measure_tables


class Accelerator(FakeBackend):
    """A fake that is no host: products are timed by default."""

    is_host = False


def run(backend, **options):
    config = MeasureConfig(**({"budget": 30.0, "attention": ("qwen3-30b-a3b",), "most": 262_144} | options))
    return measure(config, backend, Heard(), now=backend.now)


@pytest.mark.parametrize("name", model_names())
def test_a_layer_has_the_parameters_of_the_model_card(name):
    model = model_card(name)
    layer = layer_products(model, 2)
    experts = model["experts"] * model.expert_parameters if model.moe_layers else 0
    shared = model["shared_experts"] * model.expert_parameters + model["hidden"] * model["experts"]
    dense = 0 if model.moe_layers else 3 * model["hidden"] * model["dense_width"]
    assert layer.parameters + layer.left_out == model.attention_parameters + dense + shared + experts
    assert layer.left_out in (0, experts)
    assert (layer.left_out > 0) == (2 * experts > 4e9)


def test_experts_meet_their_share_of_the_requests():
    layer = layer_products(model_card("qwen3-30b-a3b"), 2)
    gate, down = layer.products[-2:]
    assert (gate.copies, gate.inputs, gate.outputs) == (128, 2048, 2 * 768)
    assert (down.inputs, down.outputs) == (768, 2048)
    assert [gate.tokens(requests) for requests in (1, 16, 17, 1024)] == [1, 1, 2, 64]
    assert Product("x", 3, 5).flops(7) == 2 * 3 * 5 * 7


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_backends_multiply(backend):
    if backend == "torch":
        pytest.importorskip("torch")
    made = NumpyBackend() if backend == "numpy" else make_backend("torch", "cpu")
    product = Product("x", 8, 6, copies=4, share=0.5)
    found = made.multiply((product,))(3)()
    found = np.asarray(found[0] if backend == "numpy" else found)
    left, right = random_block((4 * 2 * 8,), 6).reshape(4, 2, 8), random_block((4 * 8 * 6,), 5).reshape(4, 8, 6)
    assert found == pytest.approx(np.einsum("cti,cio->cto", left, right), abs=1e-4)


def test_times_rates_and_whole_layers_are_those_of_the_device():
    """Weights are read at 2 TB/s, 500 TFLOP/s computed, attention takes 30 µs, 2 µs a request and 5 ns a token."""
    found = run(Accelerator(linear, noise=0.005), layers=("llama-3-70b",))
    (times,) = found.layers
    assert times.batches == [1, 8, 32, 64, 128, 256, 512, 1024]
    assert times.bandwidth(0).value == pytest.approx(2e12, rel=0.02)
    assert times.flops_rate(-1).value == pytest.approx(5e14, rel=0.02)
    assert times.square_rate().value == pytest.approx(5e14, rel=0.02)
    assert [(step.batch, step.tokens) for step in times.steps] == [
        (batch, tokens) for batch in (8, 64) for tokens in (16_384, 65_536, 262_144)
    ]
    products = {batch: one.value for batch, one in zip(times.batches, times.medians, strict=True)}
    for step in times.steps:
        assert step.seconds.value == pytest.approx(products[step.batch] + linear(step.batch, step.tokens), rel=0.03)


def test_the_card_has_arithmetic_and_what_a_layer_reaches_of_it():
    card = make_card(run(Accelerator(linear, noise=0.005)))
    assert card["flops_16bit"].value == pytest.approx(5e14, rel=0.02)
    # the layer with experts is bound by memory at every batch and says nothing of arithmetic
    assert card["compute_efficiency"].low > 0.95
    assert set(card.account["products"]) == {"qwen3-30b-a3b", "llama-3-70b"}
    assert len(card.account["products"]["llama-3-70b"]["whole_layers"]) == 6
    bound = make_card(run(Accelerator(linear, noise=0.005), layers=("qwen3-30b-a3b",)))
    assert "compute_efficiency" not in bound.constants


def test_a_host_times_no_products_unless_it_is_told():
    assert run(FakeBackend(linear)).layers == []
    assert [one.layer.model for one in run(FakeBackend(linear), products=True, layers=("llama-3-70b",)).layers] == [
        "llama-3-70b"
    ]
    assert run(Accelerator(linear), products=False).layers == []


def test_weights_that_do_not_fit_are_a_note():
    found = run(Accelerator(linear, free=15 * 10**8), layers=("llama-3-70b",), read=False)
    assert found.layers == []
    assert found.attention[0].law is not None
    assert any("a layer of llama-3-70b has 1.88 GB of weights in bfloat16" in note for note in found.notes)


def test_a_forecast_is_the_roofline_by_hand():
    card, shape = device_card("h100"), attention_shape("llama-3-70b")
    layer = layer_products(model_card("llama-3-70b"), 2)
    made = {one.key: one for one in forecasts(card, [shape], [layer], (8, 1024), 2, 2**21)}
    rate = card["memory_bandwidth"].value * card["memory_efficiency"].value
    flops = card["flops_16bit"].value * card["compute_efficiency"].value
    of_token = made["attention", "llama-3-70b", None, None].forecast.value
    assert of_token == pytest.approx(4096 / rate)
    few, many = (made["products", "llama-3-70b", batch, None].forecast for batch in (8, 1024))
    assert few.value == pytest.approx(2 * layer.parameters / rate)
    assert many.value == pytest.approx(2 * layer.parameters * 1024 / flops)
    assert few.low <= few.value <= few.high
    whole = made["layer", "llama-3-70b", 8, 2**21].forecast
    assert whole.value == pytest.approx(few.value + 2**21 * of_token)
    assert made["power", "idle", None, None].forecast.value == card["idle_power"].value
    bare = forecasts(device_card("amd-epyc-1-of-2-cores"), [shape], [layer], (8,), 2, 2**21)
    assert bare == []  # a card without arithmetic and power forecasts nothing


def test_forecasts_stand_beside_what_was_measured():
    backend = Accelerator(linear, noise=0.005, streams=True)
    config = MeasureConfig(budget=30.0, attention=("qwen3-30b-a3b",), layers=("llama-3-70b",), most=262_144)
    card = device_card("h100")
    shapes = [attention_shape(name) for name in config.attention]
    made = forecasts(card, shapes, layers_of(config, backend), config.layer_batches, 2, config.tokens(False)[1])
    found = measure(config, backend, Heard(), now=backend.now)
    compared = compare(made, found)
    kinds = {one.forecast.kind for one in compared}
    assert kinds == {"attention", "products", "layer", "read", "arithmetic"}
    read = next(one for one in compared if one.forecast.kind == "read")
    assert read.error == pytest.approx(card["memory_bandwidth"].value / 1e12 - 1, rel=0.05)
    assert not read.inside
    for table in (forecast_table(card, made), compared_table(card, compared), *measure_tables(found)):
        assert all(len(row) == len(table.headers) for row in table.rows)
    assert len(forecast_csv(compared)) == len(compared)
    whats = {row["what"] for row in measure_csv(found)}
    assert whats == {"grid", "barrier", "plain read", "one device", "products", "square product", "whole layer"}


def test_workers_that_share_a_device_take_their_total():
    """The fake's streams run one after another, so every vector takes the time of its total."""
    found = run(Accelerator(linear, noise=0.002, streams=True), products=False)
    shared = found.attention[0].shared
    assert [step.vector.name for step in shared] == ["balanced", "ramp", "two groups", "long tail", "one heavy"]
    for step in shared:
        # the law of one worker has its fixed part once, the fake eight times
        expected = 8 * 30e-6 + 2e-6 * 8 * 8 + 5e-9 * sum(step.vector.loads)
        assert step.measured.value == pytest.approx(expected, rel=0.02)
        assert step.error_of_max < -0.4
    assert run(Accelerator(linear), products=False).attention[0].shared == []


def test_whole_layers_need_an_attention_that_is_known():
    assert whole_layers(layer_products(model_card("glm-4.5"), 2), (8, 64), 2**21) == []
    places = whole_layers(layer_products(model_card("llama-3-70b"), 2), (8,), 2**21)
    assert [place.tokens for place in places] == [2**17, 2**19, 2**21]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layers": ()}, "layers is empty"),
        ({"layers": ("llama-3-70",)}, "unknown model 'llama-3-70'"),
        ({"layer_batches": (0, 8)}, "batch is 0; expected at least one request"),
        ({"power_seconds": 0.0}, "power_seconds is 0.0; expected seconds above 0"),
    ],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        run(Accelerator(linear), **options)
