"""count-then-load, level-then-load, barrier-time: exact counterparts of `iqr` (Algorithm 3 of SBS), at every decision.

They take the requests that `iqr` takes, the oldest U that find a free slot, and place them by program D1, D2 or D3 of
`solvers.decode`, with the free slots as room. While requests wait for slots all slots are filled, so that counts are
given, and the three programs are one; they differ where slots stay free.

What each decision was worth is in `ledger`, as the imbalance that goes with the value that was minimised last, in
tokens: N times the value less the total, which is the same for all placements of the same requests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.policies.observation import Observation
from lbopt.policies.policy import LARGEST_OPTION, Admission, Ledger, named
from lbopt.solvers import check_solver
from lbopt.solvers.decode import DecodeBatch, DecodePlacement, barrier_time, count_then_load, level_then_load
from lbopt.solvers.registry import require

#: ns per request and step: 2 * 37e9 FLOP of a token through the active parameters of DeepSeek-V3 at
#: 660 TFLOP/s. The source gives none; where weights, not arithmetic, bound the step it is less.
ALPHA = 112_000
#: ns per token and step: 16.99 MFLOP of absorbed attention at 660 TFLOP/s, an H800 with a bf16 cache.
BETA = 26


@dataclass(frozen=True, slots=True)
class CountThenLoad:
    """The least largest number of requests, then the least largest load (D1).

    Parameters
    ----------
    time_limit
        Seconds after which a decision is the best placement known; None = never.
    """

    time_limit: float | None = 0.5
    ledger: Ledger = field(default_factory=Ledger, init=False, compare=False)

    def __post_init__(self) -> None:
        check_solver("exact", self.time_limit)

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        return named("count-then-load", self)

    @property
    def admission(self) -> Admission:
        """Pooled: a batch is decided together."""
        return "pooled"

    @property
    def tally(self) -> Counter[str]:
        """How many decisions were proved, claimed and left open."""
        return self.ledger.tally()

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Return the worker of the oldest that find a slot, -1 for the others."""
        begin = compile_time.clock()
        workers = np.full(observation.sizes.size, -1, dtype=np.int64)
        oldest = observation.num_admissible  # overdue requests are among them: the order is that of age
        if oldest == 0:
            return workers
        batch = DecodeBatch(observation.running, observation.loads, observation.sizes[:oldest], observation.free_slots)
        found = self._solve(batch)
        workers[:oldest] = found.unit
        self._note(batch, found, observation.step, compile_time.clock() - begin)
        return workers

    def _solve(self, batch: DecodeBatch) -> DecodePlacement:
        return count_then_load(batch, self.time_limit)

    def _weights(self) -> tuple[int, int]:
        """What a request and a token weigh in the value that was minimised last."""
        return 0, 1

    def _note(self, batch: DecodeBatch, found: DecodePlacement, step: int, seconds: float) -> None:
        N, (alpha, beta) = batch.count.size, self._weights()
        total = alpha * sum(batch.counts_after(found.unit)) + beta * sum(batch.loads_after(found.unit))
        tokens = -(-(N * found.value - total) // max(1, beta))
        self.ledger.note(
            step=step,
            imbalance=tokens,
            bound=tokens if found.optimal else max(0, N * found.bound - total) // max(1, beta),
            standing=found.standing,
            seconds=seconds,
        )


@dataclass(frozen=True, slots=True)
class LevelThenLoad(CountThenLoad):
    """Numbers of requests as level as possible, then the least largest load (D2); needs CP-SAT."""

    def __post_init__(self) -> None:
        check_solver("exact", self.time_limit)
        require("cp-sat")

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        return named("level-then-load", self)

    def _solve(self, batch: DecodeBatch) -> DecodePlacement:
        return level_then_load(batch, self.time_limit)


@dataclass(frozen=True, slots=True)
class BarrierTime(CountThenLoad):
    """The least barrier, the largest alpha * requests + beta * tokens of a worker (D3).

    Parameters
    ----------
    time_limit
        As above.
    alpha, beta
        Whole nanoseconds a request and a token; only their ratio decides.
    """

    alpha: int = ALPHA
    beta: int = BETA

    def __post_init__(self) -> None:
        check_solver("exact", self.time_limit)
        for option in ("alpha", "beta"):
            value = getattr(self, option)
            if not 0 <= value < LARGEST_OPTION:
                raise InputError(f"policy 'barrier-time': {option} is {value}; expected 0 to less than 2**31 ns")

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        return named("barrier-time", self)

    def _solve(self, batch: DecodeBatch) -> DecodePlacement:
        return barrier_time(batch, self.alpha, self.beta, self.time_limit)

    def _weights(self) -> tuple[int, int]:
        return self.alpha, self.beta
