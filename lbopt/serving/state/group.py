"""The pool of one model, and the barrier groups that serve it: what a rule sees of them, and what it decides.

The pool holds prefilled requests in order of arrival. One that comes back, because its worker went before the first
chunk, takes its old place; one that an engine pre-empted joins the end as a new entry.

The router is not told when a step of a group ends. A running request makes one token a step, so the group has made at
least as many steps since a request started as it has made tokens: the step is the largest start plus tokens of all
requests seen. It stands still while nothing runs, as in the simulator. An engine that makes several tokens a step
(speculative decoding) makes it run ahead by that factor, and with it the age bounds that are given in steps.

Source: BalanceRoute (arXiv 2605.06113), section 5 (`PromptPool`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.routing.codes import BLOCK
from lbopt.policies.observation import ActiveRequests, Memory, Observation
from lbopt.predictors import Forecast
from lbopt.serving.state.engines import Health, RequestTracker, Stage, WorkerMirror


class Pool:
    """Requests that wait for a worker.

    Parameters
    ----------
    model
        The name under which clients ask for the model.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.groups: list[BarrierGroup] = []
        self._waiting: dict[int, RequestTracker] = {}
        self._next_ticket = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[RequestTracker]:
        return iter(self._waiting.values())

    def join(self, tracker: RequestTracker, at: float) -> None:
        """Put a request at the end."""
        tracker.ticket = self._next_ticket
        self._next_ticket += 1
        tracker.pooled_at = at
        tracker.revealed = [group.step for group in self.groups]
        tracker.stage = Stage.WAITING
        self._waiting[tracker.ticket] = tracker

    def rejoin(self, tracker: RequestTracker) -> None:
        """Put a request back where it was."""
        tracker.stage = Stage.WAITING
        tracker.revealed.extend(group.step for group in self.groups[len(tracker.revealed) :])
        behind = any(ticket > tracker.ticket for ticket in self._waiting)
        self._waiting[tracker.ticket] = tracker
        if behind:
            self._waiting = dict(sorted(self._waiting.items()))

    def leave(self, tracker: RequestTracker) -> None:
        """Take a request out."""
        del self._waiting[tracker.ticket]

    def reveal(self, group: BarrierGroup, after: int) -> int:
        """Let requests count as revealed at a group's present step.

        Parameters
        ----------
        after
            Ticket of the last request that was revealed to it before.

        Returns
        -------
        int
            The last ticket that has been given.
        """
        for ticket in reversed(self._waiting):
            if ticket <= after:
                break
            self._waiting[ticket].revealed[group.place] = group.step
        return self._next_ticket - 1

    def overdue(self, at: float, seconds: float) -> list[RequestTracker]:
        """Return the requests that have waited so many seconds or more, oldest first."""
        found = []
        for tracker in self._waiting.values():
            if at - tracker.pooled_at < seconds:
                break
            found.append(tracker)
        return found


#: Share of its blocks that an engine keeps free when it lets a request in beside running ones: vLLM's.
WATERMARK = 0.01

#: Makes a forecast of the running requests and of those that wait.
Forecasting = Callable[[ActiveRequests, NDArray[np.int64], NDArray[np.int64]], Forecast]


class Sight:
    """What a rule is shown, with who stands behind each number.

    Parameters
    ----------
    fields
        Of the observation, by name; arrays as lists.
    workers
        The worker of each number.
    waiting
        The request of each position.
    """

    def __init__(
        self, fields: dict[str, Any], workers: Sequence[WorkerMirror], waiting: Sequence[RequestTracker]
    ) -> None:
        self.fields = fields
        self.workers = workers
        self.waiting = waiting

    @cached_property
    def observation(self) -> Observation:
        """The workers and the waiting requests; a rule that is a kernel does without, since to make it takes longer."""
        return Observation(**self.fields)

    def ints(self, *names: str) -> list[NDArray[np.int64]]:
        """Return fields as arrays that may be changed, int64 (G,) or (n,)."""
        return [np.array(self.fields[name], dtype=np.int64) for name in names]

    @property
    def draws(self) -> NDArray[np.float64]:
        """float64 (n, 2), uniform numbers of the waiting requests."""
        return np.array([tracker.draws for tracker in self.waiting], dtype=np.float64).reshape(-1, 2)


class Dispatch(NamedTuple):
    """One request and the worker to which it goes."""

    tracker: RequestTracker
    worker: WorkerMirror


class BarrierGroup:
    """Workers of one barrier.

    Parameters
    ----------
    name
        What lists and metrics call it.
    pool
        The pool of its model.
    """

    def __init__(self, name: str, pool: Pool) -> None:
        self.name = name
        self.pool = pool
        self.place = len(pool.groups)
        self.workers: list[WorkerMirror] = []
        self.step = 0
        pool.groups.append(self)

    def add(self, name: str, slots: int) -> WorkerMirror:
        """Add a worker."""
        worker = WorkerMirror(name, slots, self)
        self.workers.append(worker)
        return worker

    @property
    def free_slots(self) -> int:
        """Slots that a round may fill."""
        return sum(worker.free_slots for worker in self.workers)

    @property
    def at_barrier(self) -> list[WorkerMirror]:
        """The workers that take part in the steps: those that are not down."""
        return [worker for worker in self.workers if worker.health is not Health.DOWN]

    @property
    def open_workers(self) -> list[WorkerMirror]:
        """The workers to which requests may be bound."""
        return [worker for worker in self.workers if worker.health is Health.UP]

    @property
    def imbalance(self) -> int:
        """G times the largest load minus the sum of loads, tokens."""
        loads = [worker.load for worker in self.at_barrier]
        return len(loads) * max(loads, default=0) - sum(loads)

    def observe(
        self,
        waiting: Iterable[RequestTracker],
        at: float,
        *,
        open_only: bool = False,
        forecasting: Forecasting | None = None,
        kv_capacity: int | None = None,
    ) -> Sight:
        """Return what a rule may see now.

        Parameters
        ----------
        waiting
            The requests to be decided, in order of arrival.
        open_only
            Show the workers alone to which requests may be bound, as rules need that bind on arrival; else all that
            meet at the barrier, where one that drains has no free slot.
        forecasting
            Makes the forecast that the rule asks for; None where it asks for none.
        kv_capacity
            Tokens that a worker can hold, for a rule that heeds memory; None where it is not known or asked for.
        """
        workers = self.open_workers if open_only else self.at_barrier
        trackers = list(waiting)
        step, place = self.step, self.place
        active, forecast = None, None
        if forecasting is not None:
            active = _active(workers)
            numbers, sizes = np.array([(t.number, t.prompt) for t in trackers], dtype=np.int64).reshape(-1, 2).T
            forecast = forecasting(active, numbers.copy(), sizes.copy())
        fields: dict[str, Any] = {
            "step": step,
            "clock": at,
            "loads": [worker.load for worker in workers],
            "free_slots": [worker.free_slots for worker in workers],
            "running": [worker.seated for worker in workers],
            "queued": [worker.bound - worker.seated for worker in workers],
            "queued_tokens": [worker.queued_tokens for worker in workers],
            "sizes": [tracker.prompt for tracker in trackers],
            "waited": [step - tracker.revealed[place] for tracker in trackers],
            "requests": [tracker.number for tracker in trackers],
            "active": active,
            "forecast": forecast,
            "memory": None if kv_capacity is None else _memory(workers, kv_capacity),
            "is_open": None if all(w.is_open for w in workers) else np.array([w.is_open for w in workers], np.bool_),
        }
        return Sight(fields, workers, trackers)


def chosen(sight: Sight, decision: NDArray[np.int64]) -> list[Dispatch]:
    """Return who goes where by a decision on `sight`, int64 (n,): the worker of each position, -1 = keeps waiting."""
    return [
        Dispatch(tracker, sight.workers[worker])
        for tracker, worker in zip(sight.waiting, decision.tolist(), strict=True)
        if worker >= 0
    ]


def _active(workers: Sequence[WorkerMirror]) -> ActiveRequests:
    """Return the running requests one by one."""
    rows = [(g, t.number, t.prompt, t.generated) for g, w in enumerate(workers) for t in w.running.values()]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 4).T.copy()
    return ActiveRequests(worker=table[0], requests=table[1], prompt=table[2], generated=table[3])


def _memory(workers: Sequence[WorkerMirror], kv_capacity: int) -> Memory:
    """Return the memory of workers of so many tokens each.

    The mirror counts tokens, not blocks: n requests of t tokens together fill at most (t + 15 n) / 16 blocks, rounded
    down, and so many are counted.
    """
    blocks = kv_capacity // BLOCK
    most = [(w.load + w.queued_tokens + (BLOCK - 1) * w.bound) // BLOCK for w in workers]
    return Memory(
        block=BLOCK,
        capacity=np.full(len(workers), blocks, dtype=np.int64),
        committed=np.array(most, dtype=np.int64),
        kept_free=int(WATERMARK * blocks),
    )
