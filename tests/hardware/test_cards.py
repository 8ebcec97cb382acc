"""Cards: every constant has unit, source and ends; models count up to what their authors publish; refusals."""

import tomllib
from importlib.resources import files

import pytest

from lbopt.exceptions import InputError
from lbopt.hardware.cards import (
    ARCHITECTURE,
    CONSTANTS,
    DeviceCard,
    ModelCard,
    device_card,
    device_names,
    model_card,
    model_names,
)
from lbopt.hardware.quantity import BASES

DEVICES = ("a100", "ascend-910b", "ascend-910c", "h100", "h200", "h800", "mi300x")
NEWER = ("ascend-910c-die", "b200", "gb200", "h20", "mi325x", "mi355x", "tpu-v5p", "tpu-v6e")
MODELS = (
    "deepseek-v3",
    "glm-4.5",
    "gpt-oss-120b",
    "kimi-k2",
    "llama-3-70b",
    "llama-3.1-405b",
    "qwen3-235b-a22b",
    "qwen3-30b-a3b",
    "qwen3-next-80b-a3b",
)
# Some authors leave the embedding out of the parameters of a token.
WITHOUT_EMBEDDING = {"glm-4.5": 0.06, "gpt-oss-120b": 0.12, "qwen3-next-80b-a3b": 0.1}
# Google publishes no power of a chip.
UNKNOWN = {"tpu-v5p": {"idle_power", "peak_power"}, "tpu-v6e": {"idle_power", "peak_power"}}
# What `lbopt measure` alone can give: nobody publishes a kernel over no tokens.
ONLY_MEASURED = {"attention_call"}
# Devices that compute in four bits; all others unpack such weights.
FOUR_BITS = {"b200", "gb200", "mi355x"}


def test_the_catalogue():
    assert {*DEVICES, *NEWER} <= set(device_names())
    assert tuple(model_names()) == MODELS


@pytest.mark.parametrize("name", (*DEVICES, *NEWER))
def test_every_constant_of_a_device_can_be_looked_up(name):
    card = device_card(name)
    assert card.name == name
    assert card.origin == "documents"
    lacks = ONLY_MEASURED | UNKNOWN.get(name, set()) | (set() if name in FOUR_BITS else {"flops_4bit"})
    assert set(card.constants) == set(CONSTANTS) - lacks
    for constant, quantity in card.constants.items():
        assert quantity.unit == CONSTANTS[constant][0]
        assert len(quantity.source) > 10
        assert 0 < quantity.low <= quantity.value <= quantity.high
        assert quantity.basis in BASES
        assert quantity.basis != "measured", "a card from documents measured nothing"
        assert "assumed" in quantity.source or quantity.basis != "assumed", "an assumption says so"
    if name not in UNKNOWN:
        assert card["peak_power"].low >= card["idle_power"].high
    assert card["memory_efficiency"].high <= 1
    assert card["compute_efficiency"].high <= 1
    assert card["step_overhead"].high >= 4 * card["step_overhead"].low  # nobody knows it better


@pytest.mark.parametrize("name", (*DEVICES, *NEWER))
def test_a_device_survives_being_written(name):
    card = device_card(name)
    assert DeviceCard.from_dict(card.to_dict(), name) == card


@pytest.mark.parametrize("name", MODELS)
def test_a_model_survives_being_written(name):
    card = model_card(name)
    assert ModelCard.from_dict(card.to_dict(), name) == card


@pytest.mark.parametrize("name", MODELS)
def test_models_count_up_to_what_is_published(name):
    card = model_card(name)
    assert card.total_parameters == pytest.approx(card.quantities["total_parameters"].value, rel=0.02)
    near = WITHOUT_EMBEDDING.get(name, 0.02)
    assert card.active_parameters == pytest.approx(card.quantities["active_parameters"].value, rel=near)
    assert card.common_parameters < card.active_parameters
    for quantity in card.quantities.values():
        assert len(quantity.source) > 10
    for integer in card.architecture:
        assert card.entries[integer], f"{integer} has no entry in the config file"
    assert card.source.endswith("config.json")


def test_deepseek_by_hand():
    card = model_card("deepseek-v3")
    assert card.kv_values_per_token == 576 * 61 == 35_136
    assert 2 * card.kv_values_per_token == 70_272
    assert card.attention_flops == 2 * 128 * (576 + 512) * 61
    assert card.attention_flops / (2 * card.kv_values_per_token) == pytest.approx(242, abs=0.5)
    assert card.moe_layers == 58
    assert card.expert_parameters == 3 * 7168 * 2048
    # The projections of a layer, counted from the shapes of its six matrices.
    shapes = [(7168, 1536), (1536, 128 * 192), (7168, 576), (512, 128 * 128), (512, 128 * 128), (128 * 128, 7168)]
    assert card.attention_parameters == sum(rows * columns for rows, columns in shapes)


def test_grouped_queries_by_hand():
    qwen, llama = model_card("qwen3-30b-a3b"), model_card("llama-3-70b")
    assert qwen.kv_values_per_token == 2 * 4 * 128 * 48
    assert 2 * qwen.expert_parameters == 9_437_184  # bytes of an expert, eldr.md 9.2
    assert 48 * 128 * 2 * qwen.expert_parameters == pytest.approx(57.98e9, rel=1e-3)
    assert llama.kv_values_per_token == 2 * 8 * 128 * 80
    assert llama.attention_flops == 4 * 64 * 128 * 80
    assert (llama.moe_layers, llama.expert_parameters) == (0, 0)


@pytest.mark.parametrize(
    ("read", "name", "message"),
    [
        (device_card, "h8000", r"unknown device 'h8000': did you mean .*h800"),
        (device_card, "ascend-910", "did you mean ascend-910"),
        (device_card, "nothing-like-it", "known: a100, amd-epyc-1-of-2-cores, ascend-910b"),
        (model_card, "deepseek", "unknown model 'deepseek': did you mean deepseek-v3"),
        (device_card, "gone.toml", "cannot read the device card 'gone.toml': No such file"),
        (model_card, "gone.toml", "cannot read the model card 'gone.toml'"),
    ],
)
def test_names_that_are_not_there(read, name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        read(name)


def test_files_that_are_no_cards(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("name = ")
    with pytest.raises(InputError, match=r"the device card '.*mine\.toml' is not valid TOML"):
        device_card(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is UTF-16 text; expected text in UTF-8"):
        device_card(path)
    path.write_text('name = "x"')
    with pytest.raises(InputError, match="has no title"):
        device_card(path)


def test_a_card_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    text = files("lbopt.hardware.cards").joinpath("devices/h800.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('name = "h800"', 'name = "mine"'))
    assert device_card(str(path)).name == "mine"
    assert device_card(path)["memory_bandwidth"] == device_card("h800")["memory_bandwidth"]


def changed(*path_and_value):
    """The shipped card of DeepSeek-V3 as data, with one entry replaced, or removed where the value is None."""
    text = files("lbopt.hardware.cards").joinpath("models/deepseek-v3.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    *path, last, value = path_and_value
    inner = data
    for step in path:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("title", None), "model card 'x' has no title"),
        (("attention", "linear"), "attention 'linear'; expected gqa or mla"),
        (("colour", "red"), "unknown entry 'colour'"),
        (("architecture", "lairs", {"value": 1, "source": "s"}), "unknown integer 'lairs'; known are"),
        (("architecture", "layers", 61), "layers is 61; expected a table of value and source"),
        (("architecture", "layers", {"value": 1.5, "source": "s"}), r"layers is 1\.5; expected a whole number"),
        (("architecture", "kv_latent", None), r"has no kv_latent \(latent vector"),
        (("architecture", "expert_width", None), "has no expert_width"),
        (("architecture", "dense_layers", {"value": 99, "source": "s"}), "dense_layers is 99 of 61 layers"),
        (("architecture", "cached_layers", {"value": 62, "source": "s"}), "cached_layers is 62 of 61 layers"),
        (("architecture", "experts_per_token", {"value": 300, "source": "s"}), "300, more than the 256 experts"),
        (("quantities", "kv_bytes", None), "has no kv_bytes"),
        (("quantities", "kv_bytes", "low", 0), "has no kv_bytes, or not above 0 B"),
        (("quantities", "kv_bytes", "unit", "bit"), "kv_bytes has unit 'bit'; expected 'B'"),
    ],
)
def test_models_that_cannot_be(change, message):
    with pytest.raises(InputError, match=message):
        ModelCard.from_dict(changed(*change), "x")


def test_an_integer_that_no_architecture_has():
    with pytest.raises(KeyError):
        model_card("deepseek-v3")["lairs"]
    assert model_card("llama-3-70b")["experts"] == 0
    assert "experts" in ARCHITECTURE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "device card 'mine.toml' has no name, or not as text"),
        ({"title": 3}, "device card 'mine.toml' has no title, or not as text"),
        ({"constants": []}, "device card 'mine.toml' has no constants, or not as a table"),
        ({"note": 3}, "device card 'mine.toml': note is 3; expected text"),
        ({"account": [1]}, r"device card 'mine.toml': account is \[1\]; expected a table"),
    ],
)
def test_devices_that_cannot_be(change, message):
    with pytest.raises(InputError, match=message):
        DeviceCard.from_dict(device_card("h800").to_dict() | change, "mine.toml")


def test_a_device_does_not_idle_above_its_peak():
    data = device_card("h800").to_dict()
    data["constants"]["idle_power"] |= {"value": 900.0, "high": 900.0}
    with pytest.raises(InputError, match="idle_power is 900 W, above peak_power, 400 W; are they exchanged"):
        DeviceCard.from_dict(data, "mine.toml")


def test_a_die_is_half_of_its_package():
    package, die = device_card("ascend-910c"), device_card("ascend-910c-die")
    for name in ("memory_bandwidth", "memory_capacity", "flops_16bit", "link_bandwidth", "peak_power", "rental"):
        for end in ("value", "low", "high"):
            assert getattr(die[name], end) == pytest.approx(getattr(package[name], end) / 2)
    assert package["memory_bandwidth"].low > 1.5 * die["memory_bandwidth"].high  # no draw mixes the two
