"""One request from its intended time to the end of its answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from lbopt.serving.load.events import EventParser

#: Kinds of errors; ``status-NNN`` for any other HTTP status than 200 joins them.
CONNECT, RESET, TRUNCATED, TIMEOUT, RECOMPUTED, BAD_ANSWER = (
    "connect",
    "reset",
    "truncated",
    "timeout",
    "recomputed",
    "bad-answer",
)
#: Not an error: the run was ended before the answer.
UNFINISHED = "unfinished"


@dataclass(slots=True)
class Outcome:
    """What became of one request; times in s from the start of the run, None where it did not come so far.

    Parameters
    ----------
    number, url
        Place in the trace, and where it was sent.
    intended, sent
        When it was to be sent, and when it was.
    first, last, end
        First and last event with tokens, and the end of the answer.
    prompt_tokens, tokens, events
        As `usage` says, or one token an event where there is none; events with tokens.
    error
        Empty where all went well.
    """

    number: int
    url: str
    intended: float
    sent: float | None = None
    first: float | None = None
    last: float | None = None
    end: float | None = None
    prompt_tokens: int | None = None
    tokens: int = 0
    events: int = 0
    error: str = ""


class Exchange:
    """Sends one request and notes what comes back.

    Parameters
    ----------
    session
        Connections.
    path
        Of the URL.
    headers
        Of the request.
    begun
        s of the loop's clock at which the run began.
    limit
        s, how long an answer may take from the intended time on.
    """

    def __init__(
        self, session: aiohttp.ClientSession, path: str, headers: dict[str, str], begun: float, limit: float
    ) -> None:
        self._session = session
        self._path = path
        self._headers = headers
        self._begun = begun
        self._limit = limit

    async def run(self, outcome: Outcome, body: bytes) -> None:
        """Send `body` and fill the outcome."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(self._begun + outcome.intended + self._limit):
                outcome.sent = loop.time() - self._begun
                url = outcome.url + self._path
                async with self._session.post(url, data=body, headers=self._headers) as response:
                    if response.status != 200:
                        await response.read()
                        outcome.error = f"status-{response.status}"
                    elif response.content_type == "text/event-stream":
                        await self._read_events(response, outcome)
                    else:
                        self._read_body(await response.read(), outcome)
        except aiohttp.ClientConnectorError:
            outcome.error = CONNECT
        except aiohttp.ClientPayloadError as error:  # why the body is not whole stands in aiohttp's message alone
            outcome.error = RESET if "ConnectionResetError" in str(error) else TRUNCATED
        except (aiohttp.ClientError, ConnectionError):
            outcome.error = RESET
        except TimeoutError:
            outcome.error = TIMEOUT
        except asyncio.CancelledError:
            outcome.error = UNFINISHED
            raise
        except (ValueError, LookupError, TypeError, AttributeError):
            outcome.error = BAD_ANSWER
        finally:
            outcome.end = loop.time() - self._begun

    async def _read_events(self, response: aiohttp.ClientResponse, outcome: Outcome) -> None:
        loop, parser, ended = asyncio.get_running_loop(), EventParser(), False
        async for piece in response.content.iter_any():
            now = loop.time() - self._begun
            for data in parser.feed(piece):
                if data == b"[DONE]":
                    ended = True
                else:
                    self._read_event(json.loads(data.decode()), outcome, now)
        if not ended and not outcome.error:
            outcome.error = TRUNCATED

    def _read_event(self, event: dict[str, Any], outcome: Outcome, now: float) -> None:
        if "error" in event:
            outcome.error = outcome.error or BAD_ANSWER
        usage = event.get("usage")
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            if choice.get("text") or delta.get("content") or delta.get("tool_calls"):
                if outcome.first is None:
                    outcome.first = now
                outcome.last = now
                outcome.events += 1
                outcome.tokens += 1
            if choice.get("stop_reason") == RECOMPUTED:
                outcome.error = RECOMPUTED
        if usage:
            outcome.tokens = usage["completion_tokens"]
            outcome.prompt_tokens = usage["prompt_tokens"]

    def _read_body(self, body: bytes, outcome: Outcome) -> None:
        answer = json.loads(body)
        outcome.tokens = answer["usage"]["completion_tokens"]
        outcome.prompt_tokens = answer["usage"]["prompt_tokens"]
        if answer["choices"][0].get("stop_reason") == RECOMPUTED:
            outcome.error = RECOMPUTED
