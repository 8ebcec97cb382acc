"""Requests and engines as the router knows them.

One request as the router follows it: where it is, what it holds, and how it ended.

Engines as the router mirrors them, decode workers and prefill instances: exact at every moment.

Of a worker the router counts what it sent and what came back; no report of the engine enters. The load is L_g = sum of
s_i + a_i over the requests that hold a slot; requests beyond the slots queue at the worker in order of dispatch, as in
an engine.

A prefill instance has a budget: the share of its KV cache in use, which its metrics tell, and the blocks that requests
hold. A share that cannot be read counts as full. The blocks of a prompt stay there until the decode worker has pulled
them, of which the first chunk is the proof; they are given back in every other ending, too.

Source: BalanceRoute (arXiv 2605.06113), section 5 (`PrefillerBudget`).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

from lbopt.kernels.routing.codes import BLOCK

if TYPE_CHECKING:
    from lbopt.serving.state.group import BarrierGroup, Pool


class Stage(IntEnum):
    """Where a request is; it is in exactly one place."""

    ARRIVED = 0  #: known and nowhere: before prefill, or between two attempts
    PREFILLING = 1  #: a prefiller computes it
    WAITING = 2  #: in the pool
    QUEUED = 3  #: bound to a worker whose slots are taken
    RUNNING = 4  #: holds a slot of a worker
    ENDED = 5


class Ending(StrEnum):
    """How a request ended; each ends in exactly one way."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"  #: an engine found fault with the request
    FAILED = "failed"


@dataclass(slots=True, eq=False, repr=False)
class RequestTracker:
    """A request between its arrival and its end.

    It is a handle: events name the tracker, and one that has ended takes no further event. `attempt` tells an event
    of an earlier dispatch from one of the present dispatch.

    Parameters
    ----------
    number
        In order of arrival, from 0.
    pool
        The pool of its model.
    prompt
        s_i, prompt tokens.
    arrived_at
        Time of arrival, s.
    draws
        Two uniform numbers for rules that draw.
    sequences
        Answers that it makes at once, each in a slot of its own; `prompt` and `generated` are tokens of all of them.
    """

    number: int
    pool: Pool
    prompt: int
    arrived_at: float
    draws: tuple[float, float] = (0.0, 0.0)
    sequences: int = 1
    estimated: bool = False
    generated: int = 0  # a_i, tokens since the last start
    produced: int = 0  # tokens in all, over recomputations
    stage: Stage = Stage.ARRIVED
    ending: Ending | None = None
    worker: WorkerMirror | None = None
    attempt: int = 0  # dispatches so far
    recomputations: int = 0
    ticket: int = -1  # place in the pool's order
    revealed: list[int] = field(default_factory=list)  # step of each group of the pool when it joined the pool
    started_step: int = 0
    prefiller: Prefiller | None = None
    blocks: int = 0
    pooled_at: float = 0.0
    dispatched_at: float = 0.0
    first_at: float = 0.0
    ended_at: float = 0.0
    signature: Any = None  # what its prompt does to the experts, for a rule that goes by that
    payload: Any = None  # of what drives the state; nothing here reads it

    def __post_init__(self) -> None:
        self.pooled_at = self.arrived_at

    @property
    def size(self) -> int:
        """w_i, tokens that it holds on a worker now."""
        return self.prompt + self.generated

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.stage is Stage.ENDED

    def __repr__(self) -> str:
        return f"<request {self.number}: {self.stage.name.lower()}, {self.prompt} + {self.generated} tokens>"


class Health(StrEnum):
    """Whether an engine, a worker or a prefiller, takes requests."""

    UP = "up"
    RESTING = "resting"  #: it refused what others take; it ends what it has, and is up again in a moment
    DRAINING = "draining"  #: it ends what it has
    DOWN = "down"  #: it has nothing, and gets nothing


@dataclass(slots=True, eq=False, repr=False)
class WorkerMirror:
    """One worker: the books of what the router bound to it.

    Parameters
    ----------
    name
        What lists and metrics call it.
    slots
        B, sequences that it runs at once. A request of several gets the next slots that are free, as in an engine: it
        is seated with the first of them, and `seated` may be more than B for a while.
    group
        The workers with which it meets at the barrier.
    """

    name: str
    slots: int
    group: BarrierGroup
    health: Health = Health.UP
    leaving: bool = False  # removed from the group as soon as it is empty
    load: int = 0  # L_g, tokens
    running: OrderedDict[int, RequestTracker] = field(default_factory=OrderedDict)
    queue: OrderedDict[int, RequestTracker] = field(default_factory=OrderedDict)
    queued_tokens: int = 0
    bound: int = 0  # sequences, running and queued
    seated: int = 0  # of them running
    prompts_bound: int = 0  # their prompt tokens
    blocks_bound: int = 0  # their prompts in blocks of 16 tokens
    payload: Any = None  # how it is reached; nothing here reads it

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
        free = self.slots - self.bound
        return free if free > 0 and self.health is Health.UP else 0

    @property
    def virtual_load(self) -> int:
        """Tokens held, and prompt tokens of what queues."""
        return self.load + self.queued_tokens

    def bind(self, tracker: RequestTracker) -> None:
        """Take a request: into a slot, or behind the others that have none."""
        tracker.worker = self
        self._note(tracker, 1)
        if self.seated < self.slots:
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
            self.seated -= tracker.sequences
            self.load -= tracker.prompt + tracker.generated
        else:
            del self.queue[tracker.number]
            self.queued_tokens -= tracker.prompt
        self._note(tracker, -1)
        tracker.worker = None
        self.fill()

    def fill(self) -> None:
        """Seat who queues while a slot is free."""
        while self.queue and self.seated < self.slots:
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
        self.seated += tracker.sequences
        self.load += tracker.prompt + tracker.generated

    def _note(self, tracker: RequestTracker, sign: int) -> None:
        """Enter a request into the books that some rules go by, or strike it."""
        many = tracker.sequences
        self.bound += sign * many
        self.prompts_bound += sign * tracker.prompt
        self.blocks_bound += sign * many * (-(-tracker.prompt // (BLOCK * many)))

    def __repr__(self) -> str:
        return f"<worker {self.name}: {self.health}, {self.seated}/{self.slots} slots, {self.load} tokens>"


#: Share of the cache above which no new prompt is sent, where the fleet file does not say otherwise.
DEFAULT_THRESHOLD = 0.9


@dataclass(slots=True, eq=False, repr=False)
class Prefiller:
    """One prefill instance.

    Parameters
    ----------
    name
        What lists and metrics call it.
    threshold
        Share of its cache above which it gets no new prompt.
    most
        Requests that may hold blocks there at once; None = any number.
    peers
        The instances of its model, which it joins.
    """

    name: str
    threshold: float = DEFAULT_THRESHOLD
    most: int | None = None
    peers: list[Prefiller] = field(default_factory=list)
    share: float = 1.0  # its metrics have not been read yet
    health: Health = Health.UP
    holders: dict[int, RequestTracker] = field(default_factory=dict)
    blocks: int = 0
    payload: Any = None  # how it is reached; nothing here reads it

    def __post_init__(self) -> None:
        self.peers.append(self)

    def read(self, share: float | None) -> None:
        """Take in the share of the cache in use, 0 to 1; None where it could not be read."""
        self.share = share if share is not None and 0 <= share <= 1 else 1.0

    @property
    def is_open(self) -> bool:
        """Whether it takes prompts while it has room."""
        return self.health is Health.UP

    @property
    def takes_more(self) -> bool:
        """Whether a new prompt may be sent."""
        return self.is_open and self.share < self.threshold and (self.most is None or len(self.holders) < self.most)

    def hold(self, tracker: RequestTracker, blocks: int) -> None:
        """Let a request hold blocks here."""
        tracker.prefiller, tracker.blocks = self, blocks
        self.holders[tracker.number] = tracker
        self.blocks += blocks

    def give_back(self, tracker: RequestTracker) -> None:
        """Take back the blocks of a request."""
        del self.holders[tracker.number]
        self.blocks -= tracker.blocks
        tracker.prefiller, tracker.blocks = None, 0


#: What can be asked: it is up, rests, drains or is down.
Engine = WorkerMirror | Prefiller
