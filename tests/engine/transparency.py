"""60 kinds of requests, each sent to an engine directly and through the router: status, headers and body must be equal.

Left out of the comparison are names that are drawn anew for each answer, times, headers of one connection, the order of
events of different sequences, and how many tokens an engine puts into an event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.engine.http_raw import Answer, send

_TEXT, _CHAT = "/v1/completions", "/v1/chat/completions"
_SAYS = [{"role": "user", "content": "hello there, say something"}]
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOLS = [{"type": "function", "function": {"name": "weather", "description": "w", "parameters": _SCHEMA}}]
_USAGE = {"include_usage": True}
_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def _base(**more: object) -> dict[str, object]:
    usual = {"model": "tiny", "max_tokens": 6, "temperature": 0, "seed": 1, "ignore_eos": True}
    return {**usual, **more}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request; a body of None is a GET unless a method is named."""

    name: str
    path: str
    body: bytes | dict[str, object] | None = None
    method: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def _text(name: str, **more: object) -> Kind:
    return Kind(name, _TEXT, _base(**{"prompt": "hello world", **more}))


def _chat(name: str, **more: object) -> Kind:
    return Kind(name, _CHAT, _base(**{"messages": _SAYS, **more}))


def _raw(name: str, body: bytes, **headers: str) -> Kind:
    return Kind(name, _TEXT, body, headers=headers)


_SHORT = json.dumps(_base(prompt="x")).encode()
KINDS = (
    _text("completion"),
    _text("completion, stream", stream=True),
    _text("completion, stream with usage", stream=True, stream_options=_USAGE),
    _text("usage in every event", stream=True, stream_options={**_USAGE, "continuous_usage_stats": True}),
    _chat("chat"),
    _chat("chat, stream", stream=True),
    _chat("chat, stream with usage", stream=True, stream_options=_USAGE),
    _chat("stream_options null", stream=True, stream_options=None),
    _chat("n=2", n=2, temperature=0.7),
    _chat("n=2, stream with usage", n=2, temperature=0.7, stream=True, stream_options=_USAGE),
    _chat("logprobs, chat", logprobs=True, top_logprobs=2),
    _text("logprobs, stream", logprobs=2, stream=True),
    _text("echo", echo=True),
    _chat("tools, auto", tools=_TOOLS),
    _chat("tools, required", tools=_TOOLS, tool_choice="required", max_tokens=40),
    _chat("a named tool, stream", tools=_TOOLS, tool_choice={"type": "function", "function": {"name": "weather"}}),
    _chat("a JSON schema", response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": _SCHEMA}}),
    _text("stop", stop=["a", "e", "t", " "], max_tokens=60),
    _text("max_tokens=1", max_tokens=1),
    _chat("max_tokens=1, stream", max_tokens=1, stream=True),
    _text("max_tokens=0", max_tokens=0),
    _text("max_tokens=-1", max_tokens=-1),
    _text("token ids", prompt=[71, 68, 75, 75, 78]),
    _text("two prompts of token ids", prompt=[[71, 68], [75, 75, 78]]),
    _text("two prompts, stream", prompt=["hello", "world"], stream=True),
    _text("too long", prompt="x" * 5000),
    _chat("too long, stream", messages=[{"role": "user", "content": "x" * 5000}], stream=True),
    _text("unknown model", model="gpt-5"),
    Kind("no model", _TEXT, {name: value for name, value in _base(prompt="x").items() if name != "model"}),
    Kind("no prompt", _TEXT, _base()),
    _text("bad temperature", temperature=-3),
    _text("stream as text", stream="yes"),
    _chat("no messages", messages=[]),
    _text("empty prompt", prompt=""),
    _chat("a picture", messages=[{"role": "user", "content": [{"type": "text", "text": "hi"}, _PICTURE]}]),
    _text("priority", priority=5),
    _text("token ids returned, stream", return_token_ids=True, stream=True),
    _text("beams", use_beam_search=True, n=2),
    _raw("JSON cut short", b'{"model": "tiny", "prompt": '),
    _raw("an array", b"[1,2]"),
    _raw("empty body", b""),
    _raw("UTF-16", _SHORT.decode().encode("utf-16")),
    _raw("a key twice", b'{"model":"tiny","model":"tiny","prompt":"x","max_tokens":2,"temperature":0}'),
    _raw("NaN", b'{"model":"tiny","prompt":"x","max_tokens":2,"temperature":NaN}'),
    _raw("text/plain", _SHORT, Content_Type="text/plain"),
    _raw("no content type", _SHORT, Content_Type=""),
    _raw("request id", _SHORT, X_Request_Id="my-id-7"),
    Kind("GET of completions", _TEXT),
    Kind("models", "/v1/models"),
    Kind("one model", "/v1/models/tiny"),
    Kind("health", "/health"),
    Kind("version", "/version"),
    Kind("tokenize", "/tokenize", {"model": "tiny", "prompt": "x"}),
    Kind("responses", "/v1/responses", {"model": "tiny", "input": "hi", "max_output_tokens": 4, "temperature": 0}),
    Kind("messages", "/v1/messages", {"model": "tiny", "messages": _SAYS, "max_tokens": 4, "temperature": 0}),
    Kind("embeddings", "/v1/embeddings", {"model": "tiny", "input": "hi"}),
    Kind("HEAD of models", "/v1/models", method="HEAD"),
    Kind("OPTIONS", _TEXT, None, "OPTIONS", {"Origin": "http://x", "Access_Control_Request_Method": "POST"}),
    Kind("a slash more", _TEXT + "/", _base(prompt="x")),
    Kind("a query", _TEXT + "?a=1", _base(prompt="x")),
)
#: Headers of one connection, or of one moment.
_NOT_COMPARED = {"date", "server", "content-length", "connection", "keep-alive", "transfer-encoding"}
#: Fields of an event whose texts go on.
_TEXTS = ("text", "content", "arguments")
#: Bytes of a body that differs that are told.
_SHOWN = 200
_DRAWN = re.compile(rb"\b(cmpl|chatcmpl|chatcmpl-tool|modelperm|resp|msg|rs|fc|call)[-_][0-9a-zA-Z-]{6,}")
_TIMES = re.compile(rb'("created(?:_at)?"): ?\d+')


def difference(direct: Answer, routed: Answer) -> str:
    """Say in what two answers differ; empty where in nothing."""
    found = [f"status {direct.status} and {routed.status}"] if direct.status != routed.status else []
    bodies = _plain(direct.body), _plain(routed.body)
    if bodies[0] != bodies[1]:
        found.append(f"body {_only(*bodies)} and {_only(*bodies[::-1])}")
    heads = [
        {k: _plain(v.encode()) for k, v in one.headers.items() if k not in _NOT_COMPARED} for one in (direct, routed)
    ]
    names = sorted(name for name in heads[0].keys() | heads[1].keys() if heads[0].get(name) != heads[1].get(name))
    if names:
        found.append(f"headers {', '.join(names)}")
    return "; ".join(found)


def _only(events: list[bytes], others: list[bytes]) -> str:
    """Return the begin of the first event that the others lack."""
    return next((event[:_SHOWN].decode(errors="replace") for event in events if event not in others), "nothing more")


def _plain(body: bytes) -> list[bytes]:
    """Return a stream as one event a sequence, or a body as the one event, without what is drawn.

    How many tokens an engine puts into an event depends on how busy it is, and so does the order of sequences.
    """
    body = _TIMES.sub(rb"\1:0", _DRAWN.sub(rb"\1-ID", body))
    if not body.startswith(b"data: "):
        return [body]
    whole: dict[str, object] = {}
    rest = []
    for event in filter(None, body.split(b"\n\n")):
        try:
            told = json.loads(event.removeprefix(b"data: "))
            [choice] = told["choices"]
            place = str(choice["index"])
        except (ValueError, KeyError, TypeError):
            rest.append(event)  # its end, its usage, an error
        else:
            whole[place] = _joined(whole.get(place), told)
    return [*(json.dumps(whole[place]).encode() for place in sorted(whole)), *rest]


def _joined(before: object, after: object) -> object:
    """Return two events of one sequence as one: texts and lists one after the other, else what was told last."""
    if isinstance(before, dict) and isinstance(after, dict):
        joined = {key: _joined(before.get(key), after.get(key)) for key in {**before, **after}}
        texts = [key for key in _TEXTS if isinstance(before.get(key), str) and isinstance(after.get(key), str)]
        return joined | {key: before[key] + after[key] for key in texts}
    if isinstance(before, list) and isinstance(after, list):
        is_choice = len(before) == len(after) == 1 and isinstance(before[0], dict) and "index" in before[0]
        return [_joined(before[0], after[0])] if is_choice else before + after
    return before if after is None else after


def compare(direct: str, router: str) -> dict[str, str]:
    """Return what differs of each kind, empty where nothing does, by the kind's name."""

    def ask(base: str, kind: Kind) -> Answer:
        answer = send(base, kind.path, kind.body, method=kind.method, **kind.headers)
        answer.headers = {name: value.replace(base, "") for name, value in answer.headers.items()}
        return answer

    return {kind.name: difference(ask(direct, kind), ask(router, kind)) for kind in KINDS}
