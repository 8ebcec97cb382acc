"""What moves a pure engine along a clock, virtual or not: begin a step, wait for its seconds, end it, tell who waits.

Steps follow each other without drift: the next one begins when the last one was to end, however late the loop is,
unless it is late by more than a whole step. Between two steps there is a moment in which requests are still let in:

* On a virtual clock it lasts until nothing is ready at this time, so a request that was sent because a slot became free
  joins the very next step, as in the simulator.
* On a wall clock it lasts `settle` seconds, which the next step takes along; 0 as in an engine that schedules ahead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Protocol

from lbopt.serving.mock.group import Sequence
from lbopt.serving.process import ENGINE_ORDER, quiet, sleep_until


class _Step(Protocol):
    @property
    def seconds(self) -> float: ...


class Engine(Protocol):
    """What is driven: a `BarrierGroup` or a `Prefiller`."""

    def begin_step(self, now: float) -> _Step | None:
        """Begin a step; None where nothing can run."""

    def end_step(self) -> list[Sequence]:
        """End it; return the requests that changed."""

    def next_ready(self) -> float | None:
        """Return when something can run that cannot yet, s."""


class Ticket:
    """One request on its way through an engine, and who waits for its tokens.

    Parameters
    ----------
    sequence
        The request in the engine.
    interval
        Tokens that an event carries at least, but for the first and the last one.

    Attributes
    ----------
    sent
        Tokens that have been handed out.
    lost
        Whether its engine has died.
    rank
        Which rank of its endpoint it was given to.
    hold
        Whether its blocks are to be held for a decode worker.
    """

    def __init__(self, sequence: Sequence, interval: int = 1) -> None:
        self.sequence = sequence
        self.interval = interval
        self.sent = 0
        self.lost = False
        self.rank = 0
        self.hold = False
        self._news: asyncio.Future[None] | None = None
        sequence.owner = self

    @property
    def _has_news(self) -> bool:
        one = self.sequence
        fresh = one.made - self.sent
        return self.lost or bool(one.ended) or (fresh > 0 and (self.sent == 0 or fresh >= self.interval))

    def tell(self) -> None:
        """Wake who waits, if there is something to hand out."""
        if self._news is not None and not self._news.done() and self._has_news:
            self._news.set_result(None)

    def lose(self) -> None:
        """Say that the engine has died."""
        self.lost = True
        self.tell()

    async def news(self) -> tuple[int, int]:
        """Wait for tokens; return those from which one on and up to which one there are now."""
        while not self._has_news:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        begin, self.sent = self.sent, self.sequence.made
        return begin, self.sent


class Driver:
    """The clockwork of one engine.

    Parameters
    ----------
    engine
        What is driven.
    settle
        s of a wall clock in which requests still join the step that begins.

    Attributes
    ----------
    on_step
        Called with (begin of the step, step) for every step; None = nothing is.
    """

    def __init__(self, engine: Engine, settle: float = 0.0) -> None:
        self.engine = engine
        self.settle = settle
        self.on_step: Callable[[float, Any], None] | None = None
        self._work = asyncio.Event()
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to drive."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Drive no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def wake(self) -> None:
        """Say that the engine has got something to do."""
        self._work.set()

    def freeze(self) -> None:
        """Stand still: the step that runs does not end."""
        self._thawed.clear()

    def thaw(self) -> None:
        """Go on."""
        self._thawed.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        while True:
            self._work.clear()
            step = self.engine.begin_step(begin)
            if step is None:
                begin = await self._idle(begin)
                continue
            if self.on_step is not None:
                self.on_step(begin, step)
            end = begin + step.seconds
            await sleep_until(end)
            if not self._thawed.is_set():
                await self._thawed.wait()
                end = loop.time()
            for sequence in self.engine.end_step():
                if sequence.owner is not None:
                    sequence.owner.tell()
            late = loop.time() - end
            begin = end if late < step.seconds else loop.time()
            await self._let_settle(begin)

    async def _idle(self, begin: float) -> float:
        """Wait until there is something to do that there was not at `begin`; return the time."""
        loop = asyncio.get_running_loop()
        ready = self.engine.next_ready()
        if ready is None or ready <= begin:
            await self._work.wait()
        else:
            timer = loop.call_at(ready, self._work.set)
            await self._work.wait()
            timer.cancel()
        begin = loop.time()
        await self._let_settle(begin)
        return begin

    async def _let_settle(self, begin: float) -> None:
        await quiet(ENGINE_ORDER)
        if self.settle:
            await sleep_until(begin + self.settle)
