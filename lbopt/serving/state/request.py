"""One request as the router follows it: where it is, what it holds, and how it ended."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbopt.serving.state.engines import Prefiller, WorkerMirror
    from lbopt.serving.state.group import Pool


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
    FAILED = "failed"


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
    at
        Time of arrival, s.
    draws
        Two uniform numbers for rules that draw.
    """

    __slots__ = (
        "arrived_at",
        "attempt",
        "blocks",
        "dispatched_at",
        "draws",
        "ended_at",
        "ending",
        "estimated",
        "first_at",
        "generated",
        "handoff",
        "number",
        "payload",
        "pool",
        "pooled_at",
        "prefiller",
        "produced",
        "prompt",
        "recomputations",
        "revealed",
        "signature",
        "stage",
        "started_step",
        "ticket",
        "worker",
    )

    def __init__(
        self, number: int, pool: Pool, prompt: int, at: float, draws: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        self.number = number
        self.pool = pool
        self.prompt = prompt
        self.estimated = False
        self.generated = 0  # a_i, tokens since the last start
        self.produced = 0  # tokens in all, over recomputations
        self.draws = draws
        self.stage = Stage.ARRIVED
        self.ending: Ending | None = None
        self.worker: WorkerMirror | None = None
        self.attempt = 0  # dispatches so far
        self.recomputations = 0
        self.ticket = -1  # place in the pool's order
        self.revealed: list[int] = []  # step of each group of the pool when it joined the pool
        self.started_step = 0
        self.prefiller: Prefiller | None = None
        self.blocks = 0
        self.arrived_at = at
        self.pooled_at = at
        self.dispatched_at = 0.0
        self.first_at = 0.0
        self.ended_at = 0.0
        self.handoff: Any = None  # what the prefiller answered; nothing here reads it
        self.signature: Any = None  # what its prompt does to the experts, for a rule that goes by that
        self.payload: Any = None  # of what drives the state; nothing here reads it

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
