"""One request from its intended time to the end of its answer, and what its events say, parsed later.

While tokens come in, a piece of a stream is only noted with its time. What the pieces say is read afterwards, a
millisecond at a time between other things (`Reader`), so that it delays no request.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lbopt.serving.load.events import EventParser
from lbopt.serving.load.http_client import (
    BrokenResponseError,
    Connections,
    MalformedResponseError,
    Origin,
    Response,
    request_of,
)
from lbopt.serving.usage import count_of

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


#: s for which events are read before other things get their turn.
_TURN = 0.001


class Exchange:
    """Sends requests, and has what comes back read.

    Parameters
    ----------
    path
        Of every request.
    headers
        Of every request.
    begun
        s of the loop's clock at which the run began.
    limit
        s, how long an answer may take from the intended time on.
    """

    def __init__(self, path: str, headers: dict[str, str], begun: float, limit: float) -> None:
        self._path = path
        self._headers = headers
        self._begun = begun
        self._limit = limit
        self.connections = Connections()
        self.reader = Reader(begun)

    async def run(self, outcome: Outcome, origin: Origin, body: bytes) -> None:
        """Send `body` and fill the outcome, but for what is read later."""
        loop, response = asyncio.get_running_loop(), Response()
        try:
            async with asyncio.timeout_at(self._begun + outcome.intended + self._limit):
                request = request_of(origin, "POST", self._path, self._headers, body)
                outcome.sent = loop.time() - self._begun
                connection = await self.connections.get(origin)
                try:
                    await connection.exchange(request, response)
                finally:
                    self.connections.put(origin, connection)
        except TimeoutError:  # is an OSError, too
            outcome.error = TIMEOUT
        except BrokenResponseError as error:
            outcome.error = RESET if error.reset else TRUNCATED
        except MalformedResponseError:
            outcome.error = BAD_ANSWER
        except OSError:
            outcome.error = CONNECT
        except asyncio.CancelledError:
            outcome.error = UNFINISHED
            raise
        finally:
            outcome.end = loop.time() - self._begun
            self.reader.put(outcome, response)


class Reader:
    """Reads what answers say, a little at a time.

    Parameters
    ----------
    begun
        s of the loop's clock at which the run began.
    """

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._todo: deque[Iterator[None]] = deque()
        self._work = asyncio.Event()

    def put(self, outcome: Outcome, response: Response) -> None:
        """Have the answer to a request read."""
        self._todo.append(self._read(outcome, response))
        self._work.set()

    async def run(self) -> None:
        """Read for ever, in turns with everything else."""
        while True:
            until = time.perf_counter() + _TURN
            while self._todo and time.perf_counter() < until:
                self._go_on()
            if self._todo:
                await asyncio.sleep(0)
            else:
                self._work.clear()
                await self._work.wait()

    def finish(self) -> None:
        """Read all that is left."""
        while self._todo:
            self._go_on()

    def _go_on(self) -> None:
        if next(self._todo[0], self) is self:
            self._todo.popleft()

    def _read(self, outcome: Outcome, response: Response) -> Iterator[None]:
        """Read one answer, a piece at a time."""
        if response.status not in (0, 200):
            outcome.error = outcome.error or f"status-{response.status}"
        if response.status != 200:
            return
        try:
            if response.headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                yield from self._read_events(outcome, response)
            elif not outcome.error:
                self._read_body(json.loads(response.body), outcome)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            outcome.error = outcome.error or BAD_ANSWER

    def _read_events(self, outcome: Outcome, response: Response) -> Iterator[None]:
        parser, ended = EventParser(), False
        for when, piece in response.pieces:
            for data in parser.feed(piece):
                if data == b"[DONE]":
                    ended = True
                else:
                    self._read_event(json.loads(data.decode()), outcome, when - self._begun)
            yield
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
            outcome.tokens, outcome.prompt_tokens = _counts(usage)

    def _read_body(self, answer: dict[str, Any], outcome: Outcome) -> None:
        outcome.tokens, outcome.prompt_tokens = _counts(answer["usage"])
        if answer["choices"][0].get("stop_reason") == RECOMPUTED:
            outcome.error = RECOMPUTED


def _counts(usage: dict[str, Any]) -> tuple[int, int]:
    """Return tokens of the answer and of the prompt; a ValueError says that they cannot be."""
    made, prompt = count_of(usage["completion_tokens"]), count_of(usage["prompt_tokens"])
    if made is None or prompt is None:
        raise ValueError("no count of tokens")
    return made, prompt
