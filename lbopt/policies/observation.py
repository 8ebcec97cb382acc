"""What a router may know at a decision: loads, slots, prompt sizes of those that wait. Never how long they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.model import StepProblem
from lbopt.predictors import Forecast


@dataclass(frozen=True, slots=True, eq=False)
class ActiveRequests:
    """The running requests, one entry each; all arrays are non-writeable.

    Parameters
    ----------
    worker
        int64 (A,): where it runs.
    requests
        int64 (A,): its number in the trace.
    prompt, generated
        int64 (A,): its prompt tokens, and the tokens it has made so far; their sum is what it holds.
    """

    worker: NDArray[np.int64]
    requests: NDArray[np.int64]
    prompt: NDArray[np.int64]
    generated: NDArray[np.int64]

    def __post_init__(self) -> None:
        _freeze(self, ("worker", "requests", "prompt", "generated"))

    @property
    def size(self) -> NDArray[np.int64]:
        """int64 (A,): tokens that each holds now."""
        held: NDArray[np.int64] = self.prompt + self.generated
        return held


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The KV memory of the workers in blocks, as the router knows it; all arrays are non-writeable.

    Parameters
    ----------
    block
        Tokens of a block.
    capacity
        int64 (G,): blocks of each worker.
    committed
        int64 (G,): blocks that running and paused requests occupy and queued ones need, as old as the loads are.
    kept_free
        Blocks that stay free when a request is let in beside running ones.
    draft
        Tokens drafted for every decoding request in a step, which need room as well.
    """

    block: int
    capacity: NDArray[np.int64]
    committed: NDArray[np.int64]
    kept_free: int = 0
    draft: int = 0

    def __post_init__(self) -> None:
        _freeze(self, ("capacity", "committed"))

    @property
    def free(self) -> NDArray[np.int64]:
        """int64 (G,): blocks that are neither occupied nor about to be."""
        left: NDArray[np.int64] = np.maximum(self.capacity - self.committed, 0)
        return left

    def needed(self, tokens: Any) -> NDArray[np.int64]:
        """Return the blocks that requests of so many tokens occupy while they run, int64."""
        blocks: NDArray[np.int64] = -(-(np.asarray(tokens, dtype=np.int64) + self.draft) // self.block)
        return blocks


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """A read-only snapshot handed to a policy; all arrays are non-writeable.

    Parameters
    ----------
    step, clock
        Decode steps taken so far, and the time in seconds.
    loads
        int64 (G,): resident tokens of each worker.
    free_slots
        int64 (G,).
    running
        int64 (G,): requests running on each worker.
    queued, queued_tokens
        int64 (G,): requests, and their prompt tokens, bound to the worker but not started (immediate admission).
    sizes
        int64 (n,): prompt tokens of the requests to be decided, in order of revelation.
    waited
        int64 (n,): steps each of them has waited so far.
    requests
        int64 (n,): their numbers in the trace, for looking up what else is known of them.
    active
        The running requests one by one; None where the policy has not asked for a forecast.
    forecast
        What is forecast of them, where the policy has asked for it.
    memory
        The workers' KV memory; None where it never runs out, or is unknown.
    slow
        float64 (G,): factor by which a worker's own part of a step takes longer; None where it is unknown.
    is_open
        bool (G,): whether a worker takes requests; False for one that drains or has left. None where all do.
    """

    step: int
    clock: float
    loads: NDArray[np.int64]
    free_slots: NDArray[np.int64]
    running: NDArray[np.int64]
    queued: NDArray[np.int64]
    queued_tokens: NDArray[np.int64]
    sizes: NDArray[np.int64]
    waited: NDArray[np.int64]
    requests: NDArray[np.int64]
    active: ActiveRequests | None = None
    forecast: Forecast | None = None
    memory: Memory | None = None
    slow: NDArray[np.float64] | None = None
    is_open: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        _freeze(self, ("loads", "free_slots", "running", "queued", "queued_tokens", "sizes", "waited", "requests"))
        _freeze(self, ("slow",) if self.slow is not None else (), np.float64)
        _freeze(self, ("is_open",) if self.is_open is not None else (), np.bool_)

    @classmethod
    def of_problem(cls, problem: StepProblem, *, running: Any = None, waited: Any = None, step: int = 0) -> Observation:
        """Return what a router would see of a frozen step problem (its first column, for H > 0).

        Parameters
        ----------
        problem
            The step problem.
        running
            int, (G,): running requests; None counts as zero.
        waited
            int, (N,): steps that each request has waited; None counts as zero.
        step
            Number of the step.
        """
        problem.refuse_conditions("a routing rule")
        zeros = np.zeros(problem.num_workers, dtype=np.int64)
        return cls(
            step=step,
            clock=0.0,
            loads=problem.base[:, 0],
            free_slots=problem.slots,
            running=zeros if running is None else running,
            queued=zeros,
            queued_tokens=zeros,
            sizes=problem.work[:, 0],
            waited=np.zeros(problem.num_requests, dtype=np.int64) if waited is None else waited,
            requests=np.arange(problem.num_requests),
        )

    @property
    def num_admissible(self) -> int:
        """Number of requests that fill all slots or empty the pool, U = min(n, free slots)."""
        return min(int(self.sizes.size), int(self.free_slots.sum()))


def _freeze(holder: Any, names: tuple[str, ...], kind: Any = np.int64) -> None:
    for name in names:
        array: Any = np.array(getattr(holder, name), dtype=kind)
        array.flags.writeable = False
        object.__setattr__(holder, name, array)
