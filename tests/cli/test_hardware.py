"""`lbopt show devices` and `models`: lists and cards of devices and models; and what it says of wrong words."""

import json
import re

import pytest

from lbopt.hardware import device_card, device_names, model_card, model_names


def test_devices_say_whether_they_were_measured(type_in):
    code, shown, _ = type_in("show", "devices")
    assert code == 0
    for name in device_names():
        said = "measured" if device_card(name).origin == "measurement" else "from documents"
        assert re.search(rf"^{re.escape(name)} .*{said}", shown, re.MULTILINE)


def test_a_device_shows_every_constant_with_its_source(type_in):
    code, shown, _ = type_in("show", "devices", "ascend-910c")
    assert code == 0
    assert "from documents, nothing measured" in shown
    assert re.search(r"memory_bandwidth +3\.2 TB/s +3\.2 TB/s +3\.2 TB/s +B/s +published", shown)
    assert re.search(r"step_overhead +15 ms +", shown)
    words = " ".join(shown.split())
    for name, constant in device_card("ascend-910c").constants.items():
        assert f"{name} {' '.join(constant.source.split())[:60]}" in words


def test_models_and_one_of_them(type_in):
    code, shown, _ = type_in("show", "models")
    assert code == 0
    for name in model_names():
        assert re.search(rf"^{name} ", shown, re.MULTILINE)
    code, shown, _ = type_in("show", "models", "deepseek-v3")
    assert code == 0
    assert re.search(r"kv_latent +512 +kv_lora_rank", shown)
    assert "35,136 – 70,272" in shown
    assert "16.99 MFLOP" in shown


@pytest.mark.parametrize(
    ("verb", "names", "read"), [("device", device_names, device_card), ("model", model_names, model_card)]
)
def test_json_is_the_card(type_in, verb, names, read):
    code, shown, _ = type_in("hardware", f"{verb}s", "--json")
    assert code == 0
    assert [card["name"] for card in json.loads(shown)] == [read(name).name for name in names()]
    name = names()[0]
    code, shown, _ = type_in("hardware", verb, name, "--json")
    assert code == 0
    assert json.loads(shown) == json.loads(json.dumps(read(name).to_dict()))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("devices", "h80"), "error: unknown device 'h80': did you mean h800"),
        (("models", "qwen3"), "error: unknown model 'qwen3'"),
        (("devices", "mine.toml"), "error: cannot read the device card 'mine.toml': No such file or directory"),
    ],
)
def test_wrong_words(type_in, words, message):
    code, _, said = type_in("show", *words)
    assert code == 2
    assert message in said
    assert said.count("\n") == 1
