"""What one client got, read strictly: an answer is whole, or there is a name for what it lacks.

A stream is read as events; the data of each has to be JSON or `[DONE]`. Whatever follows an error is not asked for.
"""

from __future__ import annotations

import json
from typing import Any

from lbopt.serving.scrape import stream_events
from tests.serving.faults.engine import text_of

#: The client got what it asked for; was refused with a status; was told in the stream that the answer is not whole;
#: went itself; or found no router, which had got a signal.
WHOLE, REFUSED, TOLD, CANCELLED, NO_ROUTER = "whole", "refused", "told", "cancelled", "no router"
#: What no client may get: something that it cannot read; an end without a word; nothing in time.
GARBLED, CUT, HUNG = "garbled", "cut", "hung"
BAD = (GARBLED, CUT, HUNG)
KINDS = (WHOLE, REFUSED, TOLD, CANCELLED, NO_ROUTER, *BAD)


def verdict(status: int, kind: bytes, body: bytes, tokens: int, *, ended: bool) -> str:
    """Return the name of what a client got.

    Parameters
    ----------
    status, kind, body
        Of the response, its content type among them; status 0 where there is none.
    tokens
        Asked for.
    ended
        Whether the response ended as HTTP has it, and not with its connection.
    """
    if status == 0:
        return CUT
    if status != 200:
        return (REFUSED if _reason(body) else GARBLED) if ended else CUT
    if kind.startswith(b"text/event-stream"):
        return _of_stream(body, tokens, ended=ended)
    if not ended:
        return CUT
    try:
        return WHOLE if _text(json.loads(body)) == _expected(tokens) else GARBLED
    except (ValueError, LookupError, TypeError):
        return GARBLED


def _of_stream(body: bytes, tokens: int, *, ended: bool) -> str:
    text, is_done = "", False
    try:
        for _, data in stream_events(body):
            if data == b"[DONE]":
                is_done = True
                continue
            event = json.loads(data)
            if "error" in event:
                return TOLD if _reason(data) else GARBLED
            if event["choices"]:
                text += _text(event)
    except (ValueError, LookupError, TypeError):
        return GARBLED
    if is_done and text == _expected(tokens):
        return WHOLE
    is_half = bool(body) and not body.endswith(b"\n\n")
    return GARBLED if is_done or (ended and is_half) else CUT


def _text(answer: dict[str, Any]) -> str:
    """Return the text of an answer or an event of either path."""
    (choice,) = answer["choices"]
    told = choice.get("delta") or choice.get("message")
    return str(told["content"] if told else choice["text"])


def _expected(tokens: int) -> str:
    return "".join(map(text_of, range(tokens)))


def _reason(body: bytes) -> bool:
    """Return whether an error says something: as text, or as the message of JSON."""
    if not body.startswith(b"{"):
        return bool(body.strip())
    try:
        error = json.loads(body)["error"]
    except (ValueError, LookupError, TypeError):
        return False
    return bool(error["message"] if isinstance(error, dict) else error)
