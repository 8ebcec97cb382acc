"""A decode worker as the router mirrors it: slots, tokens and requests, kept incrementally and exact at every moment.

The router counts what it sent and what came back; no report of the engine enters. The load is L_g = sum of s_i + a_i
over the requests that hold a slot; requests beyond the slots queue at the worker in order of dispatch, as in an engine.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lbopt.kernels.routing.codes import BLOCK
from lbopt.serving.state.request import RequestTracker, Stage

if TYPE_CHECKING:
    from lbopt.serving.state.group import BarrierGroup


class Health(StrEnum):
    """Whether an engine, a worker or a prefiller, takes requests."""

    UP = "up"
    RESTING = "resting"  #: it refused what others take; it ends what it has, and is up again in a moment
    DRAINING = "draining"  #: it ends what it has
    DOWN = "down"  #: it has nothing, and gets nothing


class WorkerMirror:
    """One worker: the books of what the router bound to it.

    Parameters
    ----------
    name
        What lists and metrics call it.
    slots
        B, requests that it runs at once.
    group
        The workers with which it meets at the barrier.
    """

    __slots__ = (
        "blocks_bound",
        "bound",
        "group",
        "health",
        "leaving",
        "load",
        "name",
        "payload",
        "prompts_bound",
        "queue",
        "queued_tokens",
        "running",
        "slots",
    )

    def __init__(self, name: str, slots: int, group: BarrierGroup) -> None:
        self.name = name
        self.slots = slots
        self.group = group
        self.health = Health.UP
        self.leaving = False  # removed from the group as soon as it is empty
        self.load = 0  # L_g, tokens
        self.running: OrderedDict[int, RequestTracker] = OrderedDict()
        self.queue: OrderedDict[int, RequestTracker] = OrderedDict()
        self.queued_tokens = 0
        self.bound = 0  # requests, running and queued
        self.prompts_bound = 0  # their prompt tokens
        self.blocks_bound = 0  # their prompts in blocks of 16 tokens
        self.payload: Any = None  # how it is reached; nothing here reads it

    @property
    def is_open(self) -> bool:
        """Whether new requests may be bound to it."""
        return self.health is Health.UP

    @property
    def takes_more(self) -> bool:
        """Whether it takes a request now, into a slot or behind others."""
        return self.is_open

    @property
    def peers(self) -> list[WorkerMirror]:
        """The workers of its model, itself among them."""
        return [worker for group in self.group.pool.groups for worker in group.workers]

    @property
    def free_slots(self) -> int:
        """Slots that a pooled round may fill."""
        free = self.slots - len(self.running) - len(self.queue)
        return free if free > 0 and self.health is Health.UP else 0

    @property
    def virtual_load(self) -> int:
        """Tokens held, and prompt tokens of what queues."""
        return self.load + self.queued_tokens

    def bind(self, tracker: RequestTracker) -> None:
        """Take a request: into a slot, or behind the others that have none."""
        tracker.worker = self
        self._note(tracker, 1)
        if len(self.running) < self.slots:
            self._seat(tracker)
        else:
            tracker.stage = Stage.QUEUED
            self.queue[tracker.number] = tracker
            self.queued_tokens += tracker.prompt

    def seat_early(self, tracker: RequestTracker) -> None:
        """Give a slot to a queued request that the engine has started, whatever its place in the queue."""
        del self.queue[tracker.number]
        self.queued_tokens -= tracker.prompt
        self._seat(tracker)

    def release(self, tracker: RequestTracker) -> None:
        """Let a request go, and seat who waits for its slot."""
        if tracker.stage is Stage.RUNNING:
            del self.running[tracker.number]
            self.load -= tracker.prompt + tracker.generated
        else:
            del self.queue[tracker.number]
            self.queued_tokens -= tracker.prompt
        self._note(tracker, -1)
        tracker.worker = None
        self.fill()

    def fill(self) -> None:
        """Seat who queues while a slot is free."""
        while self.queue and len(self.running) < self.slots:
            _, head = self.queue.popitem(last=False)
            self.queued_tokens -= head.prompt
            self._seat(head)

    def correct(self, tracker: RequestTracker, prompt: int) -> None:
        """Replace the estimated prompt tokens of a request that is bound here."""
        self._note(tracker, -1)
        if tracker.stage is Stage.RUNNING:
            self.load += prompt - tracker.prompt
        else:
            self.queued_tokens += prompt - tracker.prompt
        tracker.prompt = prompt
        self._note(tracker, 1)

    def _seat(self, tracker: RequestTracker) -> None:
        tracker.stage = Stage.RUNNING
        tracker.started_step = self.group.step
        self.running[tracker.number] = tracker
        self.load += tracker.prompt + tracker.generated

    def _note(self, tracker: RequestTracker, sign: int) -> None:
        """Enter a request into the books that some rules go by, or strike it."""
        self.bound += sign
        self.prompts_bound += sign * tracker.prompt
        self.blocks_bound += sign * (-(-tracker.prompt // BLOCK))

    def __repr__(self) -> str:
        return f"<worker {self.name}: {self.health}, {len(self.running)}/{self.slots} slots, {self.load} tokens>"
