"""Server-sent events: counted the same however the network cuts them, and what is damaged stops nothing."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.serving.router.ask import PromptEstimate, read_ask, with_field
from lbopt.serving.router.events import LARGEST_EVENT, EventCounter
from lbopt.serving.scrape import Reading, of_rank, read_metrics


def event(**fields):
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def text(words, **more):
    return event(choices=[{"index": 0, "text": words, "finish_reason": None} | more])


STREAM = (
    b": a comment\n\n"
    + event(choices=[{"delta": {"role": "assistant", "content": ""}}])
    + text("one")
    + text('with "usage" and "finish_reason":"stop" and "error" inside')
    + text("last", finish_reason="stop")
    + event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 3})
    + b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
@given(cuts=st.lists(st.integers(1, 40), max_size=60))
def test_events_are_counted_however_the_network_cuts_them(ends, cuts):
    """One chunk may hold many events, and half of one; all three ends of lines are known."""
    data = STREAM.replace(b"\n", ends)
    counter, at = EventCounter(), 0
    for cut in cuts:
        counter.take(data[at : at + cut])
        at += cut
    counter.take(data[at:])
    counter.take(b"data: x" + ends)  # with CR alone an end is known by what follows
    assert (counter.tokens, counter.prompt_tokens) == (3, 9)
    assert counter.done
    assert counter.finished
    assert not counter.error
    assert not counter.recomputed


@given(cuts=st.lists(st.integers(1, 40), max_size=60))
def test_sifting_leaves_the_bytes_of_other_events(cuts):
    """The event that holds usage alone goes; every other byte stays."""
    counter, at, passed = EventCounter(without_usage=True), 0, b""
    for cut in cuts:
        passed += counter.take(STREAM[at : at + cut])
        at += cut
    passed += counter.take(STREAM[at:])
    passed += counter.take_rest()
    assert passed == STREAM.replace(event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 3}), b"")
    assert counter.tokens == 3


def test_continuous_usage_counts_several_tokens_an_event():
    """Speculative decoding makes several tokens a step."""
    counter = EventCounter()
    counter.take(event(choices=[{"text": "a b c"}], usage={"prompt_tokens": 4, "completion_tokens": 3}))
    counter.take(event(choices=[{"text": "d e"}], usage={"prompt_tokens": 4, "completion_tokens": 5}))
    assert counter.tokens == 5
    counter.take(event(choices=[{"text": "f"}], usage={"prompt_tokens": 4, "completion_tokens": -1}))
    assert counter.tokens == 6, "nonsense counts as one"


def _event(kind, text):
    choice = {"index": 0, "text": text, "finish_reason": None, "stop_reason": None}
    event = {"id": "x", "choices": [choice], "usage": None}
    if kind == "usage":
        event["usage"] = {"prompt_tokens": 7, "completion_tokens": 50}
    elif kind == "stop":
        choice["finish_reason"] = "stop"
    elif kind == "recomputed":
        choice["stop_reason"] = "recomputed"
    elif kind == "role":
        choice |= {"delta": {"role": "assistant", "content": ""}, "text": ""}
    elif kind == "error":
        event["error"] = {"message": text}
    elif kind == "other":
        event["id"] = "another"
    return event


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["plain"] * 6 + ["usage", "stop", "recomputed", "role", "error", "other"]),
            st.text(max_size=8) | st.sampled_from(['"', "\\", '"usage":{', "\n\n", "", '","finish_reason":"']),
        ),
        max_size=12,
    ),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)
def test_an_event_that_was_seen_before_is_counted_as_one_that_was_parsed(kinds, separators):
    """Event by event, where most are told by their shape, and each by a counter of its own that parses: the same."""
    events = [_event(*kind) for kind in kinds]
    by_shape = EventCounter()
    tokens = 0
    for event in events:
        data = b"data: " + json.dumps(event, separators=separators).encode() + b"\n\n"
        alone = EventCounter(text=[])  # a counter that keeps text parses every event
        before = by_shape.tokens
        by_shape.take(data)
        made = by_shape.tokens - before
        alone.tokens = before
        empty = not event["choices"][0]["text"] and "delta" not in event["choices"][0]
        alone.take(data)
        expected = alone.tokens - before
        assert made == expected or (empty and made == expected + 1), "an empty text may count as a token"
        assert by_shape.recomputed >= alone.recomputed
        assert by_shape.finished >= alone.finished
        assert by_shape.error >= alone.error
        tokens += made
    assert by_shape.tokens == tokens
    assert by_shape.events == len(events)


@given(cuts=st.lists(st.integers(1, 40), max_size=60), cut_off=st.integers(0, len(STREAM)))
def test_only_whole_events_go_on(cuts, cut_off):
    """A stream that breaks off anywhere leaves a client with whole events: what goes on ends with an empty line."""
    data, counter, at, passed = STREAM[:cut_off], EventCounter(), 0, b""
    for cut in [*cuts, len(data)]:
        passed += counter.take(data[at : at + cut])
        at += cut
    assert data.startswith(passed)
    assert not passed or passed.endswith(b"\n\n")
    assert b"\n\n" not in data[len(passed) :]


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
def test_nothing_behind_done_counts_or_goes_on(ends):
    """In the same bytes, in others, and of the shape that was known before."""
    one, done = text("one").replace(b"\n", ends), b"data: [DONE]" + ends + ends
    for pieces in ([one, done, one, one], [one + done + one, one], [one, done + one[:9], one[9:]]):
        counter = EventCounter()
        passed = b"".join([*map(counter.take, pieces), counter.take(b":" + ends)])
        assert (counter.tokens, counter.done) == (1, True)
        assert passed == one + done


def read_whole(data):
    """What of a stream goes on, its tokens, and whether it is done: read at once, one byte after the other."""
    tokens, at, passed, lines, line, is_new = 0, 0, 0, [], b"", False
    while at < len(data):
        if data[at] not in b"\r\n":
            line, is_new, at = line + data[at : at + 1], False, at + 1
            continue
        at += 2 if data[at : at + 2] == b"\r\n" else 1
        lines, line, is_new = [*lines, line], b"", not is_new
        if is_new:
            continue
        found, lines, passed = [one[5:].removeprefix(b" ") for one in lines if one[:5] == b"data:"], [], at
        if b"\n".join(found) == b"[DONE]":
            return data[:passed], tokens, True
        tokens += bool(found)
    return data[:passed], tokens, False


def test_streams_of_all_ends_are_read_as_one_that_comes_at_once():
    """Ends of lines of all kinds in any mixture, cut anywhere; the colon at the end says what a last CR is."""
    pieces = [b"data: x", b"data:", b": c", b"id: 3", b"data: [DONE]", b"\n", b"\n", b"\n\n", b"\n\n", b"\r", b"\r\n"]
    pieces += [b"\r\n\r\n", *(b'data: {"text":"%s"}\n\n' % word for word in (b"a", b"b", b"c"))]
    rng = random.Random(5)
    for _ in range(4000):
        data = b"".join(rng.choices(pieces, k=rng.randrange(1, 14))) + b":"
        counter, at, passed = EventCounter(), 0, b""
        while at < len(data):
            size = rng.choice((1, 2, 3, 5, 8, 40))
            passed += counter.take(data[at : at + size])
            at += size
        assert (passed, counter.tokens, counter.done) == read_whole(data), data


def test_a_stream_without_ends_of_events_is_looked_at_once():
    """Four million bytes in pieces of four: the work grows with the bytes, not with their square."""
    counter, looked = EventCounter(), 0
    for _ in range(LARGEST_EVENT // 4):
        counter.take(b"abcd")
        looked += len(counter._tail) + 4
    assert looked < 2 * LARGEST_EVENT
    assert counter.take(b"x") == b"abcd" * (LARGEST_EVENT // 4) + b"x"
    assert counter.is_torn
    assert counter.take(b"y\n\n" + text("one")) == b"y\n\n" + text("one")
    assert not counter.is_torn
    assert counter.tokens == 1


@pytest.mark.parametrize("number", [10**30, 2**24 + 1, -1, 1.0, "7", None, True, [1]])
def test_a_count_that_cannot_be_is_none(number):
    """It would stop every decision, or count a prompt of eleven bytes as millions."""
    counter = EventCounter()
    counter.take(event(choices=[{"text": "a"}], usage={"prompt_tokens": number, "completion_tokens": number}))
    assert counter.prompt_tokens is None
    assert counter.tokens == 1


@pytest.mark.parametrize("ends", [b"\n\n", b"\r\r", b"\r\n\r\n"])
def test_no_event_hides_in_the_text_of_another(ends):
    """The shape is known, and the text holds an end of events: what a client sees is what is counted."""
    counter, one = EventCounter(), text("one")
    hidden = one.replace(b"one", b"one" + ends + b"data: [DONE]" + ends)
    assert counter.take(one) == one
    passed = counter.take(hidden)
    assert counter.done
    assert passed.endswith(b"data: [DONE]" + ends)


def test_an_event_without_end_is_not_kept():
    """Memory is bounded; what follows is read again."""
    counter = EventCounter()
    counter.take(b"data: " + b"x" * (LARGEST_EVENT + 1))
    counter.take(b"rest of it\n\n" + text("one"))
    assert counter.tokens == 1


def test_damaged_streams_stop_nothing():
    """Three thousand of them: a count that is no less than zero, and the same bytes passed on."""
    rng = random.Random(3)
    for _ in range(3000):
        data = bytearray(STREAM)
        for _ in range(rng.choice((1, 2, 8))):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(4)))
        counter, other = EventCounter(), EventCounter([])
        passed = b""
        for begin in range(0, len(data), 50):
            before = counter.tokens
            counter.take(bytes(data[begin : begin + 50]))
            assert counter.tokens >= before
            passed += other.take(bytes(data[begin : begin + 50]))
        assert other.recomputed or passed + other.take_rest() == bytes(data) or other.done


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.floats(allow_nan=False)), max_size=4))
def test_a_field_is_added_and_no_other_byte_changes(data):
    """Also to an empty object, and behind blanks."""
    data.pop("new", None)
    for body in (json.dumps(data).encode(), b" \n " + json.dumps(data, indent=2).encode()):
        changed = with_field(body, "new", {"a": [1]})
        assert json.loads(changed) == {"new": {"a": [1]}} | data
        assert changed.replace(b'"new":{"a":[1]},', b"").replace(b'"new":{"a":[1]}', b"") == body


def test_what_is_read_of_a_body():
    """Bytes of text, tokens where the prompt is tokens, nothing of pictures."""
    chat = {"messages": [{"role": "user", "content": "é" * 3}, {"content": [{"type": "text", "text": "ab"}, {"a": 1}]}]}
    assert read_ask(json.dumps(chat).encode(), chat=True).units == 8
    ask = read_ask(b'{"prompt": [1, 2, 3], "max_tokens": 5, "stream": true, "model": "m"}', chat=False)
    assert (ask.units, ask.exact, ask.most_tokens, ask.streams, ask.model) == (3, True, 5, True, "m")
    assert read_ask(b'{"prompt": [[1, 2], [3]]}', chat=False).units == 3
    assert read_ask(b'{"prompt": ["ab", "c"]}', chat=False).units == 3
    for odd in (b'{"prompt": 7}', b'{"prompt": []}', b'{"prompt": null}', b'{"messages": 5}'):
        assert read_ask(odd, chat=False).units == 0
        assert read_ask(odd, chat=True).units == 0
    with pytest.raises(InputError, match="JSON object"):
        read_ask(b"3", chat=True)


def test_the_estimate_learns_a_line():
    """Within 3 % after two hundred points of another language, and never below one token."""
    rng = random.Random(1)
    estimate = PromptEstimate()
    assert abs(estimate.tokens(4000) - 1004) < 10
    assert estimate.tokens(0) >= 1
    for _ in range(200):
        size = rng.randrange(50, 20_000)
        estimate.learn(size, round(30 + 0.6 * size + rng.gauss(0, 5)))
    for size in (100, 1000, 15_000):
        assert abs(estimate.tokens(size) - (30 + 0.6 * size)) < 0.03 * (30 + 0.6 * size) + 5
    constant = PromptEstimate()
    for _ in range(2000):
        constant.learn(100, 50)
    assert abs(constant.tokens(100) - 50) <= 1


def test_metrics_of_engines():
    """By rank, of both engines; what is no number says nothing."""
    found = read_metrics(
        b"# HELP x\n"
        b'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
        b'vllm:num_requests_running{engine="1",model_name="m"} 5.0\n'
        b'vllm:num_requests_waiting{engine="1",model_name="m"} 2\n'
        b'vllm:kv_cache_usage_perc{engine="1"} 0.5 1700000000\n'
        b'vllm:kv_cache_usage_perc{engine="0"} NaN\nvllm:num_requests_waiting{engine="0"} -1\nvllm:bad\n\x00{'
    )
    assert found == {0: Reading(3, None, None), 1: Reading(5, 2, 0.5)}
    assert of_rank(found, 1).running == 5
    assert of_rank(found, None) == Reading()
    found = read_metrics(b'sglang:token_usage{dp_rank="2"} 0.25\nsglang:num_running_reqs{dp_rank="2"} 7\n')
    assert of_rank(found, None) == Reading(7, None, 0.25)
    assert read_metrics(b"") == {}


def test_labels_may_hold_any_sign():
    """Braces, quotes and engines in the value of another label; labels that only end like one; ranks that are none."""
    found = read_metrics(
        b'vllm:num_requests_running{model_name="a}b{\\"engine=\\"9\\",",engine="3"} 4 1700000000\r\n'
        b'vllm:num_requests_running{an_engine="7"} 1e0\nvllm:num_requests_running_total{engine="3"} 50\n'
        b'vllm:num_requests_waiting 6\nvllm:num_requests_waiting{engine="1" 5\nvllm:num_requests_waiting{engine="2"\n'
        b'vllm:num_requests_waiting{engine="' + b"9" * 5000 + b'"} 1\nx vllm:num_requests_waiting 7'
    )
    assert found == {3: Reading(4, None, None), None: Reading(1, 6, None)}


@pytest.mark.parametrize(
    "piece",
    [
        b"a{",
        b"\n",
        b"{",
        b'vllm:num_requests_running{a="',
        b'\nvllm:num_requests_running{a="b\\"',
        b"\nvllm:num_requests_running{a=",
        b"\nvllm:num_requests_running",
        b"\nvllm:num_requests_running ",
        b'\nvllm:num_requests_running{engine="1"} 1',
        b"\nvllm:num_requests_runnin",
        b"vllm:num_requests_running 1",
        b"\nvllm:kv_cache_usage_perc 0." + b"1" * 4000,
    ],
)
def test_hostile_metrics_are_read_in_a_time_linear_in_their_bytes(piece):
    """Eight MiB of it take some milliseconds; a reader that goes back takes hours."""
    data = (piece * (2**23 // len(piece) + 1))[: 2**23]
    begun = time.process_time()
    read_metrics(data)
    assert time.process_time() - begun < 1.0
