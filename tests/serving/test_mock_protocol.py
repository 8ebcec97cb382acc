"""What clients may send: any JSON is understood or refused, and what is understood is answered in JSON."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.serving.mock.answers import Answer
from lbopt.serving.mock.group import LENGTH, RECOMPUTED
from lbopt.serving.mock.protocol import BadRequestError, count_tokens, ids_of, read_ask, words

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.dictionaries(st.sampled_from(["function", "type"]), VALUES, max_size=2)
MESSAGES = st.lists(st.dictionaries(st.sampled_from(["role", "content"]), VALUES, max_size=2), max_size=3)
USABLE = {
    "prompt": st.just("one two"),
    "messages": st.just([{"role": "user", "content": "one"}]),
    "max_tokens": st.integers(1, 50),
    "max_completion_tokens": st.integers(1, 50),
    "min_tokens": st.integers(0, 9),
    "n": st.just(1),
    "stream": st.booleans(),
    "stream_options": st.just({"include_usage": True, "continuous_usage_stats": True}),
    "logprobs": st.sampled_from([True, False, 0, 2]),
    "top_logprobs": st.integers(0, 2),
    "tools": st.just([{"type": "function", "function": {"name": "f"}}]),
    "tool_choice": st.sampled_from(["auto", "required", "none"]),
    "kv_transfer_params": st.just({"do_remote_decode": True}),
    "model": st.text(max_size=5),
    "ignore_eos": st.booleans(),
}
ODD = st.one_of(
    st.tuples(st.sampled_from(list(USABLE)), VALUES),
    st.tuples(st.just("tool_choice"), CALLS),
    st.tuples(st.just("messages"), MESSAGES),
)
#: Bodies in which one field holds anything, and others what they may hold.
BODIES = st.builds(
    lambda body, odd: body | dict([odd]),
    st.fixed_dictionaries(
        {"prompt": USABLE["prompt"], "messages": USABLE["messages"]},
        optional={name: kind for name, kind in USABLE.items() if name not in ("prompt", "messages")},
    ),
    ODD,
)


@settings(max_examples=400)
@given(BODIES | VALUES, st.booleans())
def test_any_json_is_understood_or_refused(body, chat):
    try:
        ask = read_ask(json.dumps(body).encode(), chat, "m", 4096)
    except BadRequestError as error:
        assert str(error)
        return
    assert ask.prompt_tokens >= 1 and 1 <= ask.limit <= 4096 - ask.prompt_tokens
    answer = Answer(ask, "name", 0)
    whole = json.loads(answer.body(3, LENGTH))
    events = [answer.opening, answer.tokens(0, 1, ""), answer.tokens(1, 3, LENGTH), answer.closing(3)]
    parsed = [json.loads(event[6:]) for event in b"".join(events).split(b"\n\n") if event and event != b"data: [DONE]"]
    assert {one["model"] for one in parsed} == {whole["model"]} == {ask.model}
    if not chat:
        assert "".join(one["choices"][0]["text"] for one in parsed if one["choices"]) == whole["choices"][0]["text"]
    assert json.loads(answer.body(2, RECOMPUTED))["choices"][0]["stop_reason"] == "recomputed"


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_understood_or_refused(body, chat):
    try:
        read_ask(body, chat, "m", 4096)
    except BadRequestError as error:
        assert str(error)


@given(st.text(max_size=200))
def test_tokens_of_a_text_are_counted_as_they_are_numbered(text):
    assert len(ids_of(text)) == count_tokens(text)


@given(
    st.lists(st.text("ab", min_size=1, max_size=9), min_size=1, max_size=30), st.integers(0, 500), st.integers(0, 40)
)
def test_a_continued_prompt_counts_both(prompt, start, made):
    text = " ".join(prompt)
    assert count_tokens(text + words(start, 0, made)) == count_tokens(text) + made
