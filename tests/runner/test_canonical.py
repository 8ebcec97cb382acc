"""Canonical JSON: one value, one text, and the text gives the value back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.runner import canonical_json
from lbopt.runner.task import DEEPEST

ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))


def typed(value):
    """The value with its types, so that 1, 1.0, True and -0.0 differ; dicts by sorted keys."""
    if isinstance(value, list):
        return ["list", *map(typed, value)]
    if isinstance(value, dict):
        return ["dict", *[(key, typed(value[key])) for key in sorted(value)]]
    return type(value).__name__, repr(value)


@given(VALUES)
def test_the_text_gives_the_value_back(value):
    text = canonical_json(value, "value")
    assert typed(json.loads(text)) == typed(value)
    assert canonical_json(json.loads(text), "value") == text
    assert text.isascii()
    assert "\n" not in text


@given(VALUES, VALUES)
def test_texts_are_equal_where_values_are(one, other):
    assert (canonical_json(one, "one") == canonical_json(other, "other")) == (typed(one) == typed(other))


@given(st.dictionaries(st.text(), ATOMS), st.randoms())
def test_the_order_of_keys_does_not_matter(value, draw):
    items = list(value.items())
    draw.shuffle(items)
    assert canonical_json(dict(items), "value") == canonical_json(value, "value")


def test_one_is_three_numbers():
    assert [canonical_json(value, "value") for value in (1, 1.0, True)] == ["1", "1.0", "true"]
    assert canonical_json(-0.0, "value") != canonical_json(0.0, "value")


def test_depth_has_an_end():
    """A value that could be written but not read is refused, and so is one that holds itself."""
    value = 1
    for _ in range(DEEPEST):
        value = [value]
    assert json.loads(canonical_json(value, "value")) == value
    with pytest.raises(InputError, match="nested more than"):
        canonical_json([value], "value")
    around = {}
    around["again"] = [around]
    with pytest.raises(InputError, match="inside itself"):
        canonical_json(around, "value")
