"""Answers of the router's own, in the form in which OpenAI's API tells of errors."""

from __future__ import annotations

import json
import math
from typing import Any

from aiohttp import web

#: `type` of an error that the client made.
INVALID = "invalid_request_error"


def refuse(
    status: int, message: str, kind: str = INVALID, *, code: str | None = None, retry_after: float | None = None
) -> web.Response:
    """Return an error.

    Parameters
    ----------
    kind
        `type` of the error.
    code
        `code` of the error.
    retry_after
        Seconds after which another try may succeed.
    """
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=headers)


def as_json(data: object, status: int = 200) -> web.Response:
    """Return plain data as JSON."""
    return web.Response(status=status, text=json.dumps(data), content_type="application/json")


class Refusal(Exception):
    """A request that is not taken, with the answer to its client.

    Parameters
    ----------
    why
        By which it is counted; "" = it is not.
    status, message, kind, more
        Of the answer, see `refuse`.
    """

    def __init__(self, why: str, status: int, message: str, kind: str = INVALID, **more: Any) -> None:
        super().__init__(why)
        self.answer = refuse(status, message, kind, **more)
        self.why = why


def over_budget() -> Refusal:
    """Return the refusal of a request whose bytes have no room."""
    return Refusal("held_bytes", 503, "requests and answers hold held_bytes already", "overloaded", retry_after=2)


def slow_body(why: str = "") -> Refusal:
    """Return the refusal of a request whose body does not come."""
    return Refusal(why, 408, "the body took longer than body_seconds to arrive", "timeout")
