"""What is read of a request's body: the same as a parser would find, whatever is in it, and never at length."""

from __future__ import annotations

import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving.engines import Engine, becomes, fleet, is_empty, run

from lbopt.exceptions import InputError
from lbopt.serving.router import operators
from lbopt.serving.router.ask import DEEPEST, WIDEST, read_answer, read_ask, refuse_shape
from lbopt.serving.router.events import LARGEST_EVENT, EventCounter

#: Text without lone surrogates, which are no text: they are refused.
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
PROMPT = TEXT | st.lists(st.integers(0, 9**9), min_size=1) | st.lists(TEXT, min_size=1) | ANY
PART = st.fixed_dictionaries({}, optional={"type": TEXT, "text": TEXT, "image_url": ANY})
MESSAGE = st.fixed_dictionaries({}, optional={"role": TEXT, "content": TEXT | st.none() | st.lists(PART), "more": ANY})


def bytes_of(texts):
    return sum(len(text.encode()) for text in texts if isinstance(text, str))


@given(
    body=st.fixed_dictionaries(
        {},
        optional={
            "model": TEXT | st.none(),
            "stream": st.booleans() | st.none(),
            "prompt": PROMPT,
            "stream_options": ANY,
            "max_tokens": st.integers(-3, 10**6) | st.none() | TEXT,
            "more": ANY,
        },
    ),
    ascii=st.booleans(),
)
def test_it_is_what_a_parser_finds(body, ascii):
    """However the text is escaped, and beside fields of any kind."""
    ask = read_ask(json.dumps(body, ensure_ascii=ascii).encode(), chat=False, whole=True)
    assert {name: json.loads(bytes(value)) for name, value in ask.data.items()} == body
    assert (ask.model, ask.streams) == (body.get("model"), bool(body.get("stream")))
    assert ask.wants_usage is ("stream_options" in body)
    most = body.get("max_tokens")
    assert ask.most_tokens == (most if isinstance(most, int) and most > 0 else None)
    prompt = body.get("prompt")
    if isinstance(prompt, list) and prompt and all(isinstance(part, str) for part in prompt):
        assert ask.prompts == len(prompt)
    if isinstance(prompt, str):
        assert (ask.units, ask.exact) == (bytes_of([prompt]), False)
    elif isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        assert (ask.units, ask.exact) == (len(prompt), True)
    elif isinstance(prompt, list) and prompt and all(isinstance(part, str) for part in prompt):
        assert (ask.units, ask.exact) == (bytes_of(prompt), False)


@given(st.lists(MESSAGE), st.booleans())
def test_all_texts_of_a_chat_are_counted(messages, ascii):
    """Messages that are texts, and the texts among the parts of others."""
    contents = [message.get("content") for message in messages]
    parts = [part.get("text") for content in contents if isinstance(content, list) for part in content]
    ask = read_ask(json.dumps({"messages": messages}, ensure_ascii=ascii).encode(), chat=True)
    assert (ask.units, ask.exact) == (bytes_of([*contents, *parts]), False)


def test_the_last_of_equal_fields_counts_as_in_an_engine():
    """Also where its name is written with escapes; a mark of the coding is no part of the text."""
    ask = read_ask(
        b'\xef\xbb\xbf{"model": "a", "prompt": "x", "mod\\u0065l": "b", "pr\\u006fmpt": "\\ud83d\\ude00"}', chat=False
    )
    assert (ask.model, ask.units) == ("b", 4)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"prompt": NaN}', "not valid JSON"),
        (b'{"prompt": "\\ud83d"}', "not valid JSON"),
        (b'{"prompt": "\xed\xa0\xbd"}', "not UTF-8"),
        (b'{"more": {"\xff": 1}}', "not UTF-8"),
        (b'{"prompt": 1} x', "not valid JSON"),
        (b'{"ec_transfer_params": {}}', "ec_transfer_params is set by the router"),
        (b'{"bootstrap_host": "10.0.0.1"}', "bootstrap_host is set"),
        (b'{"routed_dp_rank": null}', "routed_dp_rank is set"),
        (b'{"model": ["' + b"x" * 10**6 + b'"]}', "model is '"),
        (b'{"model": {"a": 1}}', "model is {'a': 1}"),
        (b'{"stream": 2}', "stream is 2"),
        (b'{"more": ' + b"[" * 127 + b"]" * 127 + b"}", None),
        (b'{"more": ' + b"[" * 128 + b"]" * 128 + b"}", "deeper than 128"),
        (b'{"more": ' + b'{"a":[' * 64 + b"1" + b"]}" * 64 + b"}", "deeper than 128"),
        (b'{"more": "' + b"[" * 10**6 + b'"}', None),
        (b'{"more": "' + b'\\"[' * 10**6 + b'"}', None),
        (b'{"more": "' + b"\\\\" * 10**6 + b'", "b": {}}', None),
        (b'{"more": ' + b"[" * 10**6 + b"]" * 10**6 + b"}", "not valid JSON"),
        (b'{"more": [' + b"{}," * (WIDEST - 4) + b"1]}", None),
        (b'{"more": [' + b"{}," * WIDEST + b"1]}", "more than 131,072"),
        (b"{" + b'"a":1,' * WIDEST + b'"b":1}', "more than 131,072"),
        (b'{"max_tokens": ' + b"9" * 10**6 + b"}", None),
    ],
)
def test_what_is_too_much_is_said_in_one_sentence(body, words):
    """Brackets in texts are none; numbers may be long."""
    if words is None:
        assert read_ask(body, chat=False).most_tokens is None
        return
    with pytest.raises(InputError) as told:
        read_ask(body, chat=False)
    assert words in str(told.value)
    assert len(str(told.value)) < 200
    assert "\n" not in str(told.value)


@given(ANY, st.integers(0, 3))
def test_depth_is_that_of_the_text_however_it_is_cut(data, escapes):
    """Where blocks end, in an escape or not, changes nothing."""
    long = "x" * (2**16 - 9)
    refuse_shape(json.dumps(["\\" * escapes, data, long, '"[' * 200]).encode())
    for _ in range(DEEPEST):
        long = [long]
    with pytest.raises(InputError, match="deeper"):
        refuse_shape(json.dumps(["\\" * escapes, data, long, '"[' * 200]).encode())


PIECES = [
    b"[],",
    b"[[],[]],",
    b"{},",
    b'{"a":1},',
    b"1,",
    b"12345,",
    b"1e5,",
    b'"",',
    b'"a":1,',
    b"\\n",
    b'\\\\\\"',
    b"{[:",
]


@pytest.mark.some(6)
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("chat", [False, True])
def test_fifteen_mebibytes_are_read_in_little_time(piece, chat):
    """Some tenths of a second at most, of which no step stops the interpreter for long; a parser takes seconds."""
    many = piece * (15 * 2**20 // len(piece))
    name = b"messages" if chat else b"prompt"
    if piece in PIECES[-3:]:
        body = b'{"' + name + b'":"' + many + b'"}'
    elif piece == b'"a":1,':
        body = b"{" + many + b'"b":1}'
    else:
        body = b'{"' + name + b'":[' + many + piece[:-1] + b"]}"
    begun = time.process_time()
    try:
        read_ask(body, chat=chat)
    except InputError as error:
        assert "more than" in str(error)
    assert time.process_time() - begun < 2.0


def test_large_bodies_are_read_beside_the_loop(monkeypatch):
    """So that other clients' streams go on; small ones at once."""
    where = []

    def noted(*args, **more):
        where.append(threading.current_thread() is threading.main_thread())
        return read_ask(*args, **more)

    async def check():
        async with fleet([Engine()]) as (router, client, base):
            for size, status in ((10, 200), (2**20, 200)):
                async with client.post(base + "/v1/completions", json={"model": "m", "prompt": "x" * size}) as answer:
                    assert answer.status == status
            body = {"model": "m", "prompt": "x" * 2**20, "more": [{}] * WIDEST}
            async with client.post(base + "/v1/completions", json=body) as answer:
                assert answer.status == 400
                assert "fields" in (await answer.json())["error"]["message"]
            assert is_empty(router)

    monkeypatch.setattr(operators, "read_ask", noted)
    run(check())
    assert where == [True, False, False]


@pytest.mark.parametrize("number", [b"1e999", b"9" * 5000])
def test_numbers_beyond_all_bounds_are_an_engines_to_refuse(number, tmp_path):
    """Also where somebody reads the prompt, or sends it to a prefiller."""

    async def check():
        bodies = [b'{"model": "m", "max_tokens": 1, "prompt": [' + number + b"]}"]
        bodies += [b'{"model": "m", "prompt": "x", "seed": ' + number + b"}"]
        hashing = {"record": str(tmp_path), "prefixes": True, "prefix_key": str(tmp_path / "key")}
        prefiller = Engine()
        prefiller.handoff = True
        for more in ({}, hashing, {"prefillers": [prefiller]}):
            engine = Engine()
            async with fleet([engine], retries=0, **more) as (router, client, base):
                for body in bodies:
                    async with client.post(base + "/v1/completions", data=body) as answer:
                        assert answer.status in (200, 500, 502)
                        assert "the router" not in await answer.text()
                await becomes(lambda: is_empty(router))

    run(check())


HANDED = {"remote_block_ids": [1, 2], "remote_host": "h"}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b'{"choices": [{"text": "\\"usage\\": 1"}], "usage": {"prompt_tokens": 3}}', {"usage": {"prompt_tokens": 3}}),
        (json.dumps({"x": [[]] * 9**6, "kv_transfer_params": HANDED}).encode(), {"kv_transfer_params": HANDED}),
        (b'{"usage": [' + b"{}," * WIDEST + b"1]}", None),
        (b'{"usage": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", None),
        (b'{"usage": 1' + b" " * 2**24 + b"}", None),
        (b"[]", None),
        (b'{"usage": ', None),
    ],
)
def test_of_an_answer_nothing_else_is_built(answer, found):
    """An engine may send what it likes."""
    if found is not None:
        assert read_answer(answer) == found
        return
    with pytest.raises((ValueError, RecursionError)):
        read_answer(answer)


@pytest.mark.parametrize("piece", [b"[],", b"{},", b'{"a":1},', b"1e5,"])
def test_hostile_events_are_read_in_little_time(piece):
    """The largest event there is, of brackets: a token, or what it says of tokens, and never a second of silence."""
    many = piece * ((LARGEST_EVENT - 100) // len(piece))
    event = b'data: {"usage": {"prompt_tokens": 3}, "x": [' + many + b"1]}\n\n"
    counter = EventCounter()
    begun = time.process_time()
    assert counter.take(event) == event
    assert time.process_time() - begun < 1.0
    assert counter.events == 1
