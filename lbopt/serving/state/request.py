"""One request as the router follows it: where it is, what it holds, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """

    number: int
    pool: Pool
    prompt: int
    arrived_at: float
    draws: tuple[float, float] = (0.0, 0.0)
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
