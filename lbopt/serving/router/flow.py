"""What one stream tells the state as it passes: its first chunk, its tokens, its prompt tokens, its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lbopt.serving.router.endpoint import Endpoint
from lbopt.serving.router.events import EventCounter
from lbopt.serving.router.job import Job

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router


class Flow:
    """One stream of one attempt.

    Parameters
    ----------
    router
        Whose state is told.
    job, endpoint, attempt
        The request, the engine, and the number of the dispatch.
    """

    __slots__ = (
        "_attempt",
        "_endpoint",
        "_fleet",
        "_goes_on",
        "_has_begun",
        "_job",
        "_now",
        "_router",
        "_wakes",
        "counter",
    )

    def __init__(self, router: Router, job: Job, endpoint: Endpoint, attempt: int) -> None:
        self._router, self._job, self._endpoint, self._attempt = router, job, endpoint, attempt
        self._now = asyncio.get_running_loop().time  # what `Router.now` returns, with a call less for each chunk
        self._fleet = router.fleet
        self._has_begun = False
        self._goes_on = False
        self._wakes = router.dispatcher.step_ends is not None
        strips = router.options.ask_usage and not job.ask.wants_usage
        self.counter = EventCounter(job.text if router.keeps_text else None, without_usage=strips)

    @property
    def goes_elsewhere(self) -> bool:
        """Whether the engine has pre-empted the request and gave it back."""
        return self.counter.recomputed and self._router.keeps_text

    @property
    def is_over(self) -> bool:
        """Whether nothing more is awaited of the engine: it gave the request back, or goes on and on."""
        return self._goes_on or self.goes_elsewhere or self.counter.is_endless

    def take(self, data: bytes) -> bytes:
        """Take in bytes, tell the state what they say, and return those that go to the client."""
        counter, job, fleet = self.counter, self._job, self._fleet
        self._endpoint.last_heard = job.heard_at = now = self._now()
        before, self._goes_on = counter.tokens, counter.done
        data = counter.take(data)
        tracker, count = job.tracker, counter.tokens - before
        if not self._has_begun:
            self._has_begun = True
            fleet.first_chunk(tracker, now, self._attempt)
        if count:
            fleet.tokens(tracker, count, self._attempt)
            if self._wakes:
                self._router.dispatcher.wake()  # a step may have ended
        if counter.prompt_tokens is not None and tracker.estimated:
            self._router.counted(job, counter.prompt_tokens)
        if counter.done and not (counter.error or counter.is_empty):
            self._router.finished(job, self._attempt)
        return data
