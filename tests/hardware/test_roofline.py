"""The roofline law: the docstring's worked example, a naive twin, monotone on every card, affine where frozen."""

import math
import re
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.hardware import (
    Deployment,
    RooflineStepTime,
    device_card,
    device_names,
    make_step_time,
    model_card,
    model_names,
)
from lbopt.hardware.step_time import KINDS, roofline
from lbopt.hardware.step_time.roofline import roofline_terms

# A measured card may hold less than the law needs, and then says so.
CARDS = {name: device_card(name) for name in device_names()}
DEVICES = {name: card for name, card in CARDS.items() if card.origin == "documents"}
MODELS = {name: model_card(name) for name in model_names()}
LINE = re.compile(
    r"^    (?P<device>\S+) +(?P<bandwidth>[\d.]+) TB/s +(?P<peak>[\d.]+) ms +\* (?P<reached>[\d.]+) += "
    r"(?P<read>[\d.]+) ms +(?P<flops>[\d.]+) TFLOP/s \* (?P<computed>[\d.]+) += (?P<compute>[\d.]+) ms"
    r"  (?P<bound>memory|compute)$",
    re.MULTILINE,
)
EXAMPLE = [match.groupdict() for match in LINE.finditer(roofline.__doc__)]


def law(device="h800", model="deepseek-v3", replaced=None, **deployment):
    return RooflineStepTime(MODELS[model], DEVICES[device], Deployment(**deployment), replaced or {})


def test_the_worked_example_has_a_line_for_every_device_from_documents():
    assert [line["device"] for line in EXAMPLE] == [name for name, card in CARDS.items() if card.origin == "documents"]
    assert "70,272 B" in roofline.__doc__
    assert "16,990,208 FLOP" in roofline.__doc__


@pytest.mark.parametrize("line", EXAMPLE, ids=lambda line: line["device"])
def test_the_worked_example(line):
    card = DEVICES[line["device"]]
    number = {key: float(value) for key, value in line.items() if key not in ("device", "bound")}
    assert card["memory_bandwidth"].value == pytest.approx(number["bandwidth"] * 1e12)
    assert card["memory_efficiency"].value == number["reached"]
    assert card["flops_16bit"].value == pytest.approx(number["flops"] * 1e12)
    assert card["compute_efficiency"].value == number["computed"]
    half_a_digit = 0.00051
    assert 85_000 * 70_272 / (number["bandwidth"] * 1e9) == pytest.approx(number["peak"], abs=half_a_digit)
    assert number["peak"] / number["reached"] == pytest.approx(number["read"], abs=2 * half_a_digit)
    assert 85_000 * 16_990_208 / (number["flops"] * 1e9) / number["computed"] == pytest.approx(
        number["compute"], abs=half_a_digit
    )
    terms = law(line["device"]).terms(32, 35)
    assert 85_000e3 * terms.attention[0] == pytest.approx(number["read"], abs=half_a_digit)
    assert 85_000e3 * terms.attention[1] == pytest.approx(number["compute"], abs=half_a_digit)
    assert line["bound"] == ("memory" if number["read"] >= number["compute"] else "compute")


@pytest.mark.parametrize(
    ("device", "constants", "nanoseconds"),
    [  # sbs.md 9.2 and 9.3, bandwidth alone, then arithmetic
        ("h800", {"memory_efficiency": 1.0, "compute_efficiency": 100.0}, 20.98),
        ("h800", {"memory_efficiency": 1.0, "compute_efficiency": 100.0, "kv_bytes": 1.0}, 10.49),
        ("h800", {"memory_bandwidth": 3.0e12, "memory_efficiency": 1.0, "compute_efficiency": 100.0}, 23.42),
        ("ascend-910c", {"memory_efficiency": 1.0, "compute_efficiency": 100.0}, 21.96),
        ("ascend-910c", {"memory_bandwidth": 1.6e12, "memory_efficiency": 1.0, "compute_efficiency": 100.0}, 43.92),
        ("ascend-910c", {"memory_bandwidth": 1.346e12, "memory_efficiency": 1.0, "compute_efficiency": 100.0}, 52.21),
        ("h800", {"flops_16bit": 660e12, "compute_efficiency": 1.0}, 25.74),
        ("h800", {"flops_16bit": 580e12, "compute_efficiency": 1.0}, 29.29),
        ("ascend-910c", {}, 34.5),
        ("ascend-910c", {"flops_16bit": 376e12}, 69.1),
    ],
)
def test_the_slopes_of_the_sheet(device, constants, nanoseconds):
    assert law(device, replaced=constants).form(1, 1).per_token * 1e9 == pytest.approx(nanoseconds, abs=0.06)


def test_two_query_tokens_double_the_arithmetic():
    assert law(query_tokens=2).form(1, 1).per_token == 2 * law().form(1, 1).per_token  # compute-bound already


def naive_step(model, numbers, tp, parallel, queries, overlap, balancedness, loads, running):
    """Seconds of one step, term by term, from the law's formulas."""
    bandwidth = numbers["memory_bandwidth"] * numbers["memory_efficiency"]
    flops = numbers["flops_16bit"] * numbers["compute_efficiency"]
    fast = numbers.get("flops_8bit", numbers["flops_16bit"]) * numbers["compute_efficiency"]
    workers = len(loads)
    latent = model.attention == "mla"
    layers = model["layers"] - model["dense_layers"]
    experts, chosen = model["experts"], model["experts_per_token"]
    bytes_of_expert = numbers["weight_bytes"] * 3 * model["hidden"] * model["expert_width"]

    def union(tokens):
        return experts * (1 - (1 - chosen / experts) ** tokens)

    own = []
    for tokens, requests in zip(loads, running, strict=True):
        cached = tokens * numbers["kv_bytes"] * model.kv_values_per_token
        reading = cached / bandwidth / (1 if latent else min(tp, model["kv_heads"]))
        seconds = max(reading, queries * tokens * model.attention_flops / tp / flops)
        if requests:
            n = queries * requests
            weights = model.common_parameters / tp
            size = numbers.get("common_bytes", numbers["weight_bytes"])
            seconds += max(weights * size / bandwidth, 2 * weights * n / fast)
            if experts and not parallel:
                computing = 2 * n * chosen * 3 * model["hidden"] * model["expert_width"]
                seconds += layers * max(union(n) * bytes_of_expert / tp / bandwidth, computing / tp / fast)
            if tp > 1:
                payload = 2 * (tp - 1) / tp * n * model["hidden"] * 2
                seconds += 2 * model["layers"] * (numbers["collective_latency"] + payload / numbers["link_bandwidth"])
        own.append(seconds)
    total = numbers["step_overhead"] + max(own)
    n, devices = queries * sum(running), workers * tp
    if experts and parallel and n:
        computing = 2 * n * chosen * 3 * model["hidden"] * model["expert_width"] / devices
        busiest = 1 / balancedness if workers > 1 else 1
        total += layers * busiest * max(max(1, union(n) / devices) * bytes_of_expert / bandwidth, computing / fast)
        if devices > 1:
            payload = n / devices * (1 - 1 / devices) * chosen * model["hidden"] * (numbers["weight_bytes"] + 2)
            messages = layers * (2 * numbers["collective_latency"] + payload / numbers["link_bandwidth"])
            total += messages - overlap * messages
    return total


def fleets(workers=4, slots=64):
    loads = st.lists(st.integers(0, 400_000), min_size=workers, max_size=workers)
    return st.tuples(loads, st.lists(st.integers(0, slots), min_size=workers, max_size=workers))


ANY_LAW = st.builds(
    law,
    device=st.sampled_from(sorted(DEVICES)),
    model=st.sampled_from(sorted(MODELS)),
    devices_per_worker=st.sampled_from([1, 2, 4, 8, 16]),
    expert_parallel=st.booleans(),
    query_tokens=st.integers(1, 3),
    overlap=st.sampled_from([0.0, 0.0, 0.4, 1.0]),
    balancedness=st.sampled_from([1.0, 1.0, 0.5]),
    weight_bytes=st.sampled_from([None, 1.0, 2.0]),
)


@given(ANY_LAW, fleets())
@settings(max_examples=60, deadline=None)
def test_against_a_naive_twin(roof, fleet):
    put = roof.deployment
    loads, running = (np.array(part) for part in fleet)
    expected = naive_step(
        roof.model,
        roof.constants(),
        put.devices_per_worker,
        put.expert_parallel,
        put.query_tokens,
        put.overlap,
        put.balancedness,
        loads.tolist(),
        running.tolist(),
    )
    assert roof.form(4, 64).seconds(loads, running) == pytest.approx(expected, rel=1e-12)


@pytest.mark.some(27)
@pytest.mark.parametrize("device", sorted(DEVICES))
@pytest.mark.parametrize("model", sorted(MODELS))
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_monotone_in_load_batch_and_horizon(device, model, data):
    tp, parallel = data.draw(st.sampled_from([1, 4, 8])), data.draw(st.booleans())
    form = law(device, model, devices_per_worker=tp, expert_parallel=parallel).form(4, 64)
    window = data.draw(st.lists(fleets(), min_size=2, max_size=5))
    loads, running = (np.array([step[part] for step in window]) for part in (0, 1))
    seconds = form.seconds(loads, running)
    more = data.draw(fleets())
    heavier = form.seconds(loads + np.array(more[0]), running)
    fuller = form.seconds(loads, np.minimum(running + np.array(more[1]), 64))
    assert (seconds > 0).all()
    assert (heavier >= seconds).all()
    assert (fuller >= seconds - 1e-15).all()
    assert (np.diff(np.cumsum(seconds)) > 0).all()  # a longer window takes longer


@given(ANY_LAW, st.integers(1, 64), fleets())
@settings(max_examples=40, deadline=None)
def test_affine_where_the_batch_is_frozen(roof, requests, fleet):
    loads = np.array(fleet[0])
    frozen = roof.frozen(4, requests)
    seconds = roof.form(4, 64).seconds(loads, np.full(4, requests))
    assert frozen.seconds(int(loads.max())) == pytest.approx(seconds, rel=1e-14)


@given(ANY_LAW, st.lists(fleets(), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_the_parts_are_the_whole(roof, window):
    loads, running = (np.array([step[part] for step in window]) for part in (0, 1))
    parts = roof.breakdown(loads, running)
    seconds = roof.form(4, 64).seconds(loads, running)
    assert parts.seconds == pytest.approx(seconds, rel=1e-12)
    assert np.sum(list(parts.by_kind.values()), axis=0) == pytest.approx(seconds, rel=1e-12)
    for step, kind in enumerate(parts.kind):
        assert kind in KINDS
        assert parts.by_kind[kind][step] == max(parts.by_kind[other][step] for other in KINDS)


def test_what_binds_a_step():
    loads, running = np.full((1, 32), 85_000), np.full((1, 32), 35)
    assert law(replaced={"step_overhead": 0.02}).breakdown(loads, running).kind == "overhead"
    assert law().breakdown(loads[:, :8], running[:, :8]).kind == "memory"  # 32 experts a device
    quick = {"step_overhead": 0.0, "collective_latency": 0.0, "link_bandwidth": 1e15}
    assert law(replaced=quick).breakdown(loads, running).kind == "memory"
    assert law(replaced=quick, query_tokens=4).breakdown(50 * loads, running).kind == "compute"
    assert law(replaced={"step_overhead": 0.0, "link_bandwidth": 1e9}).breakdown(loads, running).kind == "collective"
    one = law().breakdown(np.full(8, 85_000), np.full(8, 35))
    assert one.kind == "memory"
    assert one.terms["attention"].shape == ()


def test_a_public_service_lies_in_the_range():
    """DeepSeek on H800: 20 to 22 tokens/s per user, a step of 45 to 50 ms; our ends must span it."""
    roof = law()
    loads, running = np.full(32, 85_000), np.full(32, 35)

    def seconds(slow):
        """All constants at the ends that make a step slow, or fast: low rates, long times and many bytes."""
        numbers = roof.constants(lambda quantity: quantity.high if (quantity.unit in "sB") == slow else quantity.low)
        return roof.with_constants(numbers).form(32, 35).seconds(loads, running)

    assert seconds(slow=False) < 0.045
    assert seconds(slow=True) > 0.050


def test_latents_are_on_every_device_and_heads_are_shared():
    memory_only = {"compute_efficiency": 1000.0}
    mla, gqa = (
        [law("h800", name, memory_only, devices_per_worker=tp).form(1, 1).per_token for tp in (1, 4, 16)]
        for name in ("deepseek-v3", "llama-3-70b")
    )
    assert mla[0] == mla[1] == mla[2]
    assert gqa[0] == pytest.approx(4 * gqa[1])
    assert gqa[0] == pytest.approx(8 * gqa[2])  # 8 heads of keys and values, no more


def test_constants_are_drawn_once_each_and_replace_the_cards():
    roof = law(kv_bytes=1.0, replaced={"step_overhead": 0.005})
    asked = []
    numbers = roof.constants(lambda quantity: asked.append(quantity) or quantity.low)
    assert len(asked) == len(roof.quantities()) == len(numbers) - 2
    assert numbers["kv_bytes"] == 1.0
    assert numbers["step_overhead"] == 0.005
    assert numbers["memory_bandwidth"] == DEVICES["h800"]["memory_bandwidth"].low
    drawn = roof.with_constants(numbers)
    direct = roofline_terms(numbers, roof.model, roof.deployment, 3, 5).form()
    assert drawn.constants() == numbers
    assert drawn.quantities() == {}
    assert np.array_equal(drawn.form(3, 5).of_running, direct.of_running)
    assert drawn.form(3, 5).per_token > roof.form(3, 5).per_token


def test_eight_bits_only_where_weights_have_them():
    assert "flops_8bit" in law().constants()
    assert "flops_8bit" not in law(weight_bytes=2.0).constants()
    assert "flops_8bit" not in law(model="qwen3-30b-a3b").constants()
    assert "link_bandwidth" not in law(model="llama-3-70b").constants()


@pytest.mark.parametrize(
    "text",
    [
        "roofline:device=h800,model=deepseek-v3,tp=1,experts=parallel",
        "roofline:device=mi300x,model=qwen3-30b-a3b,tp=2,experts=local,kv_bytes=1,query_tokens=2,step_overhead=0.006",
        "roofline:device=ascend-910c,model=deepseek-v3,tp=4,experts=parallel,memory_bandwidth=1.6e+12",
    ],
)
def test_the_text_form(text):
    assert make_step_time(text).name == text
    assert make_step_time(text).describe()["kind"] == "roofline"


def test_a_card_in_a_file_can_be_named_again(tmp_path):
    path = tmp_path / "mine.toml"
    text = files("lbopt.hardware.cards").joinpath("devices/h100.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('name = "h100"', 'name = "mine"'))
    mine = make_step_time(f"roofline:device={path},memory_efficiency=0.8123456789")
    again = make_step_time(mine.name)
    assert again.describe() == mine.describe()
    assert again.describe()["device"] == "mine"
    assert again.describe()["constants"]["memory_efficiency"] == 0.8123456789


def test_the_default_is_deepseek_on_h800():
    assert make_step_time("roofline").name == "roofline:device=h800,model=deepseek-v3,tp=1,experts=parallel"


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("name", ["memory_bandwidth", "link_bandwidth", "compute_efficiency"])
def test_rates_that_cannot_be(name, bad):
    with pytest.raises(InputError, match=f"{name} is {bad}; expected a finite number of more than zero"):
        make_step_time(f"roofline:{name}={bad}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roofline:device=h8000", "unknown device 'h8000': did you mean"),
        ("roofline:model=deepseek-v4", "unknown model 'deepseek-v4': did you mean deepseek-v3"),
        ("roofline:experts=some", r"experts is 'some'; expected parallel \(.*\) or local"),
        ("roofline:tp=0", "devices_per_worker is 0; expected 1 or more"),
        ("roofline:tp=256", r"devices_per_worker \(tp\) is 256; expected at most the 128 heads of deepseek-v3"),
        ("roofline:query_tokens=0", "query_tokens is 0"),
        ("roofline:overlap=1.5", r"overlap is 1\.5; expected a share of the messages from 0 to 1"),
        ("roofline:balancedness=0", r"balancedness is 0\.0; expected more than 0 and at most 1"),
        ("calibrated:experts=some", r"experts is 'some'; expected parallel \(.*\) or local"),
        ("calibrated:prompt_share=-1", r"prompt_share is -1\.0; expected a finite number of zero or more"),
        ("calibrated:overlap=0.5", r"overlap is '0\.5'; expected yes or no"),
        ("roofline:kv_bytes=0", r"kv_bytes is 0\.0; expected a finite number above 0"),
        ("roofline:step_overhead=-1", "step_overhead is -1; expected a finite number of zero or more"),
        ("roofline:bandwidth=1", "has no option 'bandwidth'; it takes device, model"),
        ("roofline:model=llama-3-70b,link_bandwidth=1", "'link_bandwidth'.*this deployment does not use it"),
        ("roofline:device=gone.toml", "cannot read the device card 'gone.toml'"),
    ],
)
def test_what_cannot_be_is_refused(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        make_step_time(text)


def test_a_card_without_a_constant_is_asked_for_it():
    data = DEVICES["h100"].to_dict()
    del data["constants"]["link_bandwidth"]
    poor = type(DEVICES["h100"]).from_dict(data, "poor")
    with pytest.raises(InputError, match="device card 'h100' has no link_bandwidth"):
        RooflineStepTime(MODELS["deepseek-v3"], poor)
    assert math.isfinite(RooflineStepTime(MODELS["llama-3-70b"], poor).form(1, 1).fixed)


def test_breakdown_refuses_what_does_not_fit():
    with pytest.raises(InputError, match=r"shapes \(2,\) and \(3,\)"):
        law().breakdown(np.zeros(2), np.zeros(3, int))
    with pytest.raises(InputError, match="negative"):
        law().breakdown(np.array([-1.0]), np.array([1]))


def test_terms_that_seldom_bind_by_hand():
    """A fleet of many devices reads at least one expert each; many tokens compute longer than their experts read."""
    model, card = MODELS["qwen3-30b-a3b"], DEVICES["h800"]
    bandwidth = card["memory_bandwidth"].value * card["memory_efficiency"].value
    arithmetic = card["flops_16bit"].value * card["compute_efficiency"].value
    of_expert = 48 * 3 * 2048 * 768
    few = law(model="qwen3-30b-a3b").terms(300, 1).experts[0]  # two bytes a parameter
    assert few[0] == 0
    assert few[[1, 300]] == pytest.approx(2 * of_expert / bandwidth)  # 300 devices, fewer experts than that
    computing = law(model="qwen3-30b-a3b").terms(4, 2000).experts[1]
    assert computing[8000] == pytest.approx(8000 * 2 * 8 * of_expert / 4 / arithmetic)
    assert model.expert_parameters == 3 * 2048 * 768


def test_dispatch_is_never_wider_than_16_bit():
    """Weights of four bytes do not make the vectors longer that are sent to the experts."""
    wide, plain = (law(weight_bytes=size).terms(8, 10).exchange for size in (4.0, 2.0))
    narrow = law(weight_bytes=1.0).terms(8, 10).exchange
    assert wide == pytest.approx(plain)
    assert narrow[80] < plain[80]
