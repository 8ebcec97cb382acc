"""What the router reads of a client's request: model, whether it streams, how long its prompt is. Never more.

The body goes to the engine as the bytes that came. Where a field has to be added (`stream_options`,
`kv_transfer_params`), its text is put behind the first brace and every other byte stays: see `with_field`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.serving.record.prefixes import Prefix


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
    data
        The body, parsed.
    prefix
        What the prompt begins with, in keyed hashes; None where nobody wants to know.
    experts
        What is known of its experts, see `signatures`; None where no rule asks.
    """

    model: str | None
    streams: bool
    units: int
    exact: bool
    wants_usage: bool
    most_tokens: int | None
    data: dict[str, Any]
    prefix: Prefix | None = None
    experts: Any = None


def read_ask(body: bytes, *, chat: bool) -> Ask:
    """Read a body.

    Raises
    ------
    InputError
        Where it is no JSON object in UTF-8, or names model or stream by something else than a text or a truth value.
    """
    if b"\x00" in body[:4] or body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError("the body is not UTF-8; send JSON in UTF-8")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"the body is {shown(data)}; expected a JSON object")
    model = data.get("model")
    if model is not None and not isinstance(model, str):
        raise InputError(f"model is {shown(model)}; expected a text")
    streams = data.get("stream")
    if streams is not None and not isinstance(streams, bool):
        raise InputError(f"stream is {shown(streams)}; expected true or false")
    most = data.get("max_completion_tokens") or data.get("max_tokens")
    units, exact = _chat_units(data.get("messages")) if chat else _prompt_units(data.get("prompt"))
    return Ask(
        model=model,
        streams=bool(streams),
        units=units,
        exact=exact,
        wants_usage="stream_options" in data,
        most_tokens=most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None,
        data=data,
    )


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _prompt_units(prompt: Any) -> tuple[int, bool]:
    """Return the length of a prompt, in bytes or in tokens; an engine says what is wrong with one that is none."""
    if isinstance(prompt, str):
        return _bytes_of(prompt), False
    if not isinstance(prompt, list) or not prompt:
        return 0, False
    if all(type(token) is int for token in prompt):
        return len(prompt), True
    if all(isinstance(part, list) for part in prompt):
        return sum(map(len, prompt)), True
    return sum(_bytes_of(text) for text in prompt if isinstance(text, str)), False


def _chat_units(messages: Any) -> tuple[int, bool]:
    """Return the bytes of text of all messages; pictures and sounds are not counted."""
    total = 0
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            total += _bytes_of(content)
        elif isinstance(content, list):
            for part in content:
                text = part.get("text") if isinstance(part, dict) else None
                total += _bytes_of(text) if isinstance(text, str) else 0
    return total, False


def with_field(body: bytes, name: str, value: Any) -> bytes:
    """Return a JSON object with one more field at its beginning; all bytes behind the first brace are as they were.

    Parameters
    ----------
    body
        A JSON object that has no such field.
    name, value
        The field.
    """
    brace = body.index(b"{") + 1
    rest = body[brace:]
    comma = b"" if rest.lstrip()[:1] == b"}" else b","
    field = json.dumps(name).encode() + b":" + json.dumps(value, separators=(",", ":")).encode()
    return body[:brace] + field + comma + rest
