"""What clients ask and what they are told: bodies read within bounds, and refusals.

JSON from outside: how deep and how wide it is, seen without building any of it, and the little that is read.

A few MiB of brackets become millions of objects wherever they are built, here or in an engine, which answers nothing
meanwhile. Brackets are counted where they stand outside of texts, block by block, so that no step holds the interpreter
for long.

Of an answer that does not stream its usage is read, its error, and what a prefiller hands over. The rest may be
anything, and is not built.

Answers of the router's own, in the form in which vLLM tells of errors.

What the router reads of a client's request: model, whether it streams, how long its prompt is. Never more.

What is not asked for is stepped over and never built, so that 15 MiB of brackets take some milliseconds. The body goes
to the engine as the bytes that came. Where a field has to be added (`stream_options`, `kv_transfer_params`), its text
is put behind the first brace and every other byte stays: see `with_field`.

Prompt tokens estimated from bytes, learned online from what engines count.

In one hop the router places a request before any engine has seen it. Its tokens are a line in the bytes of its text,
t = a + b x, with a for the template. Each usage that comes back is one more point; older points weigh less by a factor
a point, so that the line follows when prompts change. Until there are points, b is a quarter of a token a byte: the
prior counts as some points on that line. A prompt counts as four tokens a byte and 32,768 of template, tools, pictures
at most, so that an engine that counts nonsense does bounded harm, which is forgotten when it has gone.
"""

from __future__ import annotations

import json
import math
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
import numpy as np
from aiohttp import web
from msgspec import UNSET, Raw, UnsetType

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.serving.record.writer import Prefix
from lbopt.serving.scrape import MOST_SEQUENCES

#: Arrays and objects within each other; arrays, objects and fields in all. What is beyond them is no request.
DEEPEST = 128
WIDEST = 2**17

_BLOCK = 2**16
#: Bytes of a text that is built without a look at its shape.
_SMALL = 2**16
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_COUNTED = np.zeros(256, dtype=bool)
_COUNTED[list(b"[{:")] = True


def refuse_shape(text: bytes) -> None:
    """Raise where a JSON text is too deep or too wide.

    Raises
    ------
    InputError
        With the limit.
    """
    if sum(map(text.count, (b"[", b"{", b":"))) <= DEEPEST:
        return  # not even if each stood in the one before
    depth = width = begin = 0
    in_text = False
    while begin < len(text):
        part = text[begin : begin + _BLOCK]
        begin += len(part)
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # what it escapes is in the next block
            part, begin = part[:-1], begin + 1
        if b"\\" in part:
            part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
        signs = np.frombuffer(part, dtype=np.uint8)
        is_outside = (np.cumsum(signs == ord('"'), dtype=np.int32) + in_text) % 2 == 0
        depths = depth + np.cumsum(np.where(is_outside, _STEPS[signs], 0), dtype=np.int32)
        if not len(signs):
            continue
        width += int(np.count_nonzero(_COUNTED[signs] & is_outside))
        if depths.max() > DEEPEST:
            raise InputError(f"the body is nested deeper than {DEEPEST}; expected arrays and objects in few levels")
        if width > WIDEST:
            raise InputError(f"the body has more than {WIDEST:,} arrays, objects and fields")
        depth, in_text = int(depths[-1]), not is_outside[-1]


def parsed(text: bytes) -> Any:
    """Return what a JSON text of an engine says.

    Raises
    ------
    ValueError
        Where it is none, too deep or too wide.
    RecursionError
        Where a short one is too deep.
    """
    if len(text) > _SMALL:
        refuse_shape(text)
    return json.loads(text)


#: Bytes of an answer that are looked through.
_LARGEST = 2**24


class _Answer(msgspec.Struct, gc=False):
    usage: Raw | UnsetType = UNSET
    kv_transfer_params: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_read = msgspec.json.Decoder(_Answer).decode


def read_answer(data: bytes) -> dict[str, Any]:
    """Return the fields `usage`, `kv_transfer_params` and `error` of an answer, where it has them.

    Raises
    ------
    ValueError
        Where it is no JSON object, or too large.
    """
    if len(data) > _LARGEST:
        raise ValueError(f"more than {_LARGEST} bytes")
    try:
        answer = _read(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    fields = {"usage": answer.usage, "kv_transfer_params": answer.kv_transfer_params, "error": answer.error}
    return {name: parsed(bytes(raw)) for name, raw in fields.items() if isinstance(raw, Raw)}


def error_of(status: int, message: str, param: str | None = None) -> bytes:
    """Return an error as vLLM tells of it: its type is that of its status, such as `NotFoundError`."""
    kind = HTTPStatus(status).phrase.replace(" ", "").removesuffix("Error") + "Error"
    return compact({"error": {"message": message, "type": kind, "param": param, "code": status}})


def compact(data: object) -> bytes:
    """Return plain data as JSON without a blank, as engines send it."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def refuse(status: int, message: str, *, param: str | None = None, retry_after: float | None = None) -> web.Response:
    """Return an error.

    Parameters
    ----------
    param
        The field that is to blame.
    retry_after
        Seconds after which another try may succeed.
    """
    headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
    return web.Response(
        status=status, body=error_of(status, message, param), content_type="application/json", headers=headers
    )


def as_json(data: object, status: int = 200) -> web.Response:
    """Return plain data as JSON."""
    return web.Response(status=status, body=compact(data), content_type="application/json")


class Refusal(Exception):
    """A request that is not taken, with the answer to its client.

    Parameters
    ----------
    why
        By which it is counted; "" = it is not.
    status, message, more
        Of the answer, see `refuse`.
    """

    def __init__(self, why: str, status: int, message: str, **more: Any) -> None:
        super().__init__(why)
        self.answer = refuse(status, message, **more)
        self.why = why


def over_budget() -> Refusal:
    """Return the refusal of a request whose bytes have no room."""
    return Refusal("held_bytes", 503, "requests and answers hold held_bytes already", retry_after=2)


def slow_body(why: str = "") -> Refusal:
    """Return the refusal of a request whose body does not come."""
    return Refusal(why, 408, "the body took longer than body_seconds to arrive")


#: Bytes of a list whose texts are counted one by one; of a larger one its bytes in JSON stand for those of its texts.
_SHORT = 2**16
#: What a list of tokens is made of.
_OF_TOKENS = b"0123456789-, \t\r\n"


@dataclass(slots=True)
class Ask:
    """A request as the router sees it.

    Parameters
    ----------
    model
        Asked for; None where the body does not say.
    streams
        Whether the answer is a stream of events.
    units
        Bytes of text of the prompt, or its tokens where it is given in tokens.
    exact
        Whether `units` are tokens.
    wants_usage
        Whether the client itself has set `stream_options`.
    most_tokens
        Of the answer; None where the body does not say.
    choices, prompts
        Answers to each prompt that are made at once (`n`, `best_of`, the width of a beam), and prompts.
    data
        All fields of the body, as bytes of JSON, where they are needed.
    prefix
        What the prompt begins with, in keyed hashes; None where it is not asked for.
    experts
        What is known of its experts, see `signatures`; None where no rule asks.
    """

    model: str | None
    streams: bool
    units: int
    exact: bool
    wants_usage: bool
    most_tokens: int | None
    choices: int = 1
    prompts: int = 1
    data: dict[str, Raw] = field(default_factory=dict)
    prefix: Prefix | None = None
    experts: Any = None


class _Body(msgspec.Struct, gc=False):
    """The fields that are looked at, as bytes of JSON."""

    model: Raw | UnsetType = UNSET
    stream: Raw | UnsetType = UNSET
    prompt: Raw | UnsetType = UNSET
    messages: Raw | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    system: Raw | UnsetType = UNSET
    instructions: Raw | UnsetType = UNSET
    stream_options: Raw | UnsetType = UNSET
    max_tokens: Raw | UnsetType = UNSET
    max_completion_tokens: Raw | UnsetType = UNSET
    max_output_tokens: Raw | UnsetType = UNSET
    n: Raw | UnsetType = UNSET
    best_of: Raw | UnsetType = UNSET
    # What tells an engine of vLLM or SGLang where to pull blocks from, or which rank of it answers.
    kv_transfer_params: Raw | UnsetType = UNSET
    ec_transfer_params: Raw | UnsetType = UNSET
    bootstrap_host: Raw | UnsetType = UNSET
    bootstrap_port: Raw | UnsetType = UNSET
    bootstrap_room: Raw | UnsetType = UNSET
    bootstrap_pair_key: Raw | UnsetType = UNSET
    data_parallel_rank: Raw | UnsetType = UNSET
    routed_dp_rank: Raw | UnsetType = UNSET
    disagg_prefill_dp_rank: Raw | UnsetType = UNSET


class _Part(msgspec.Struct, gc=False):
    """A message, or a part of one."""

    content: Raw | UnsetType = UNSET
    text: Raw | UnsetType = UNSET


_OF_ROUTER = _Body.__struct_fields__[_Body.__struct_fields__.index("kv_transfer_params") :]

_read_body = msgspec.json.Decoder(_Body).decode
read_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_read_parts = msgspec.json.Decoder(list[_Part]).decode
_read_list = msgspec.json.Decoder(list[Raw]).decode


def read_ask(body: bytes, *, chat: bool, whole: bool = False) -> Ask:
    """Read a body.

    Parameters
    ----------
    body
        The bytes.
    chat
        Whether its prompt is made of messages or `input`, and not `prompt`.
    whole
        Whether all fields are wanted.

    Raises
    ------
    InputError
        Where it is no JSON object in UTF-8, too deep or too wide, names model or stream by something else than a text
        or a truth value, or sets what the router alone tells an engine.
    """
    body = body.removeprefix(BOM_UTF8)
    try:
        if b"\x00" in body[:4]:
            raise ValueError("another coding")
        if not body.isascii():
            body.decode()
    except ValueError:
        raise InputError("the body is not UTF-8; send JSON in UTF-8") from None
    try:
        read = _read_body(body)
    except msgspec.ValidationError:
        raise InputError(f"the body is {_shown(body)}; expected a JSON object") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"the body is not valid JSON: {error}") from None
    refuse_shape(body)
    for name in _OF_ROUTER:
        if getattr(read, name) is not UNSET:
            raise InputError(f"{name} is set by the router; leave it out")
    texts = (read.messages, read.input, read.system, read.instructions)
    told = (sum(map(_text_units, map(_json, texts))), False, 1) if chat else _prompt_units(_json(read.prompt))
    units, exact, prompts = told
    most = map(_count, map(_json, (read.max_completion_tokens, read.max_output_tokens, read.max_tokens)))
    choices = max(_count(_json(read.n)) or 1, _count(_json(read.best_of)) or 1)
    ask = Ask(
        model=_model(_json(read.model)),
        streams=_streams(_json(read.stream)),
        units=units,
        exact=exact,
        wants_usage=read.stream_options is not UNSET,
        most_tokens=next(filter(None, most), None),
        choices=min(choices, MOST_SEQUENCES // prompts),
        prompts=prompts,
    )
    if whole:
        ask.data = read_fields(body)
    return ask


def _json(value: Raw | UnsetType) -> bytes:
    """Return the bytes of a field; those of null where there is none."""
    return b"null" if isinstance(value, UnsetType) else bytes(value)


def _shown(value: bytes) -> str:
    """Return a JSON value for an error message."""
    try:
        return shown(json.loads(value[:_SHORT]))
    except (ValueError, RecursionError):
        return shown(value[:40].decode("utf-8", "replace"))


def _model(value: bytes) -> str | None:
    if value[:1] not in (b'"', b"n"):
        raise InputError(f"model is {_shown(value)}; expected a text")
    return msgspec.json.decode(value, type=str | None)


#: What engines take for true and false beside these words, in any case of letters.
_YES, _NO = (b"true", b"1", b"yes", b"on", b"y", b"t"), (b"false", b"0", b"no", b"off", b"n", b"f", b"null")


def _streams(value: bytes) -> bool:
    word = value.strip(b'"').lower()
    if word not in _YES + _NO:
        raise InputError(f"stream is {_shown(value)}; expected true or false")
    return word in _YES


def _count(value: bytes) -> int | None:
    """Return a number of tokens; None where it is none."""
    return int(value) if value.isdigit() and len(value) < 16 and int(value) > 0 else None


def _bytes_of(text: bytes) -> int:
    """Return the bytes of a text in JSON; 0 where it is none."""
    if text[:1] != b'"':
        return 0
    return len(msgspec.json.decode(text, type=str).encode()) if b"\\" in text else len(text) - 2


def _prompt_units(prompt: bytes) -> tuple[int, bool, int]:
    """Return the length of all prompts, in bytes or in tokens, and how many prompts there are.

    An engine says what is wrong with one that is none.
    """
    if prompt[:1] != b"[":
        return _bytes_of(prompt), False, 1
    rest = prompt.translate(None, _OF_TOKENS)
    if not rest.strip(b"[]"):  # tokens, or lists of them
        tokens = prompt.count(b",") + 1 if prompt.strip(b"[] \t\r\n") else 0
        return tokens, True, min(max(1, rest.count(b"[") - 1), MOST_SEQUENCES)
    if len(prompt) > _SHORT:
        return len(prompt), False, min(prompt.count(b'",') + 1, MOST_SEQUENCES)
    texts = _read_list(prompt)
    return sum(_bytes_of(bytes(text)) for text in texts), False, min(len(texts), MOST_SEQUENCES)


def _text_units(text: bytes) -> int:
    """Return the bytes of a text, or of all in a list of messages or parts; pictures and sounds are not counted."""
    if text[:1] != b"[":
        return _bytes_of(text)
    try:
        return sum(_bytes_of(_json(part.text)) + _text_units(_json(part.content)) for part in _read_parts(text))
    except msgspec.DecodeError:  # an engine says what is wrong with them
        return 0


def with_field(body: bytes, name: str, value: Any) -> bytes:
    """Return a JSON object with one more field at its beginning; all bytes behind the first brace are as they were.

    Parameters
    ----------
    body
        A JSON object that has no such field.
    """
    brace = body.index(b"{") + 1
    rest = body[brace:]
    comma = b"" if rest.lstrip()[:1] == b"}" else b","
    field = json.dumps(name).encode() + b":" + json.dumps(value, separators=(",", ":")).encode()
    return body[:brace] + field + comma + rest


_PRIOR_SLOPE = 0.25
_PRIOR_POINTS = ((0.0, 4.0), (400.0, 104.0))
_FORGET = 0.995
_MOST_SLOPE = 4.0
_MOST_BESIDE = 2**15


class PromptEstimate:
    """The line of one model, kept as weighted sums."""

    __slots__ = ("_n", "_sx", "_sxx", "_sxy", "_sy", "points")

    def __init__(self) -> None:
        self.points = 0
        self._n = self._sx = self._sy = self._sxx = self._sxy = 0.0
        for x, y in _PRIOR_POINTS:
            self._add(x, y, 1.0)

    def _add(self, x: float, y: float, keep: float) -> None:
        self._n = keep * self._n + 1
        self._sx = keep * self._sx + x
        self._sy = keep * self._sy + y
        self._sxx = keep * self._sxx + x * x
        self._sxy = keep * self._sxy + x * y

    def tokens(self, units: int) -> int:
        """Return the tokens of a prompt of so many bytes, at least one."""
        spread = self._n * self._sxx - self._sx * self._sx
        if spread > 1e-9 * self._n * max(self._sxx, 1.0):
            slope = min(max((self._n * self._sxy - self._sx * self._sy) / spread, 0.0), _MOST_SLOPE)
        else:
            slope = _PRIOR_SLOPE
        level = (self._sy - slope * self._sx) / self._n
        return max(1, round(level + slope * units))

    def learn(self, units: int, tokens: int) -> None:
        """Take in what an engine counted for a prompt of so many bytes."""
        self.points += 1
        self._add(float(units), min(float(tokens), _MOST_SLOPE * units + _MOST_BESIDE), _FORGET)
