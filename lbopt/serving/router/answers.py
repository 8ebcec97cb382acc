"""Answers of the router's own, in the form in which OpenAI's API tells of errors."""

from __future__ import annotations

import json
import math

from aiohttp import web


def refuse(
    status: int, message: str, kind: str, *, code: str | None = None, retry_after: float | None = None
) -> web.Response:
    """Return an error.

    Parameters
    ----------
    status
        Of HTTP.
    message
        One sentence.
    kind
        `type` of the error, such as "invalid_request_error".
    code
        `code` of the error.
    retry_after
        Seconds after which another try may succeed.
    """
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=headers)


def over_budget() -> web.Response:
    """Return the refusal of a request whose bytes have no room."""
    return refuse(503, "requests and answers hold held_bytes already", "overloaded", retry_after=2)


def as_json(data: object, status: int = 200) -> web.Response:
    """Return plain data as JSON."""
    return web.Response(status=status, text=json.dumps(data), content_type="application/json")
