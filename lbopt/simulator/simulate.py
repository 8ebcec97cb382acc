"""`simulate`: run a policy over a trace.

The compiled loop does the work and comes back for four reasons: its rows are full (they are recorded, progress is
told), a Python policy must decide, a pause was asked for (to look at the state), or all requests have ended.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.kernels.simulation import tables
from lbopt.kernels.simulation.tables import Requests, Rows, Setting, State
from lbopt.model import Trace
from lbopt.policies import DecidingPolicy, Observation, Policy
from lbopt.policies.ledger import Ledger
from lbopt.simulator.recorder import Recorder
from lbopt.simulator.run import Run
from lbopt.simulator.setting import SimulationSetting
from lbopt.simulator.state import fresh_rows, fresh_state, requests_of, setting_of

ROWS_PER_CHUNK = 8192
_CHUNK_BYTES = 64 * 2**20

Progress = Callable[[int, int], None]
Look = Callable[[Observation], None]


def simulate(
    trace: Trace,
    policy: Policy,
    setting: SimulationSetting,
    *,
    seed: int = 0,
    keep_loads: bool = False,
    progress: Progress | None = None,
    look_at: NDArray[np.int64] | None = None,
    look: Look | None = None,
) -> Run:
    """Run `policy` over `trace` until every request has ended.

    Parameters
    ----------
    trace
        Requests in arrival order.
    policy
        From `make_policy`, or anything with `name`, `admission` and `decide`.
    setting
        Fleet, arrivals, event order, step time, power.
    seed
        Feeds rules that draw random numbers, and nothing else.
    keep_loads
        Keep the loads of every worker at every step.
    progress
        Called now and then with (requests ended, requests in all).
    look_at, look
        Ascending decision steps, and a function that is shown, at the first decision of each of them that has
        something to decide, what a pooled router would see.

    Raises
    ------
    InfeasibleDecisionError
        When a policy breaks a rule, naming policy, step and value.
    """
    begin = time.perf_counter()
    ledger = getattr(policy, "ledger", Ledger())
    noted_before = len(ledger)
    requests = requests_of(trace, policy, setting, seed)
    state = fresh_state(setting.fleet, requests)
    recorder = Recorder(setting, keep_loads)
    rules, rows = setting_of(policy, setting, len(trace)), _rows_for(setting.fleet.num_workers)
    loop = _Loop(policy, requests, rules, state, rows, progress)
    pauses = deque([] if look_at is None else look_at.tolist())
    loop.pause_from(pauses)
    while True:
        why = loop.go()
        if why == tables.PAUSED:
            assert look is not None
            while pauses and pauses[0] < loop.step:
                pauses.popleft()  # nothing was to be decided there
            if pauses and pauses[0] == loop.step:
                pauses.popleft()
                look(loop.look_ahead())
            loop.pause_from(pauses)
            continue
        loop.hand_rows_to(recorder)
        loop.tell()
        if why == tables.FINISHED:
            break
    return Run(
        trace=trace,
        policy=policy.name,
        admission=policy.admission,
        setting=setting,
        seed=seed,
        requests=_request_columns(requests, state, recorder),
        steps=recorder.columns(),
        decisions=int(state.counters[tables.DECISIONS]),
        real_choices=int(state.counters[tables.REAL_CHOICES]),
        seconds=time.perf_counter() - begin,
        tally=dict(ledger.tally(noted_before)),
        solved=ledger.columns(noted_before),
    )


class _Loop:
    """The compiled loop with its arrays, and the decisions it asks Python for."""

    def __init__(
        self,
        policy: Policy,
        requests: Requests,
        setting: Setting,
        state: State,
        rows: Rows,
        progress: Progress | None = None,
    ) -> None:
        from lbopt.kernels.simulation import admission, loop

        self._loop = loop
        self._admission = admission
        self._policy = policy
        self._requests = requests
        self._setting = setting
        self._state = state
        self._rows = rows
        self._progress = progress

    def go(self) -> int:
        """Run until rows are full, a pause, or the end, answering questions on the way."""
        while True:
            why = int(self._loop.run(self._requests, self._setting, self._state, self._rows))
            if why == tables.NEEDS_DECISION:
                self._decide()
                self.tell()  # decisions in Python can take a while, and rows fill slowly
            elif why == tables.NEEDS_WORKER:
                self._bind()
            elif why == tables.STUCK:
                raise InfeasibleDecisionError(
                    f"policy '{self._policy.name}' admits nothing in step {self.step} although nothing is running "
                    f"and {self._pool.size} requests wait"
                )
            else:
                return why

    def tell(self) -> None:
        """Tell whoever listens how many requests have ended."""
        if self._progress is not None:
            self._progress(self.num_ended, self._requests.prompt.size)

    @property
    def num_ended(self) -> int:
        """Requests that have ended: known, and neither running nor waiting in pool or queue."""
        at = self._state.counters
        waiting = at[tables.POOL_TAIL] - at[tables.POOL_HEAD] + at[tables.QUEUED]
        return int(at[tables.UNDISCOVERED] - waiting - at[tables.ACTIVE])

    def pause_from(self, steps: deque[int]) -> None:
        """Stop at the first decision that has something to decide, from the first of `steps` on."""
        self._state.counters[tables.PAUSE_AT] = steps[0] if steps else -1

    def hand_rows_to(self, recorder: Recorder) -> None:
        recorder.take(self._rows, int(self._state.counters[tables.ROW]))
        self._state.counters[tables.ROW] = 0

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return int(self._state.counters[tables.STEP])

    @property
    def _pool(self) -> NDArray[np.int64]:
        counters = self._state.counters
        pool: NDArray[np.int64] = self._state.pool[counters[tables.POOL_HEAD] : counters[tables.POOL_TAIL]]
        return pool

    def look_ahead(self) -> Observation:
        """Return what a pooled router would see at the decision that comes next: all that wait, bound or not."""
        counters = self._state.counters
        bound = np.flatnonzero((self._state.worker >= 0) & (self._state.start_step < 0))
        waiting = bound if self._setting.immediate else self._pool
        count = int(self._loop.num_waiting(self._requests, self._setting, self._state))
        first = int(counters[tables.UNDISCOVERED])
        return self.observe(np.concatenate((waiting, np.arange(first, first + count - waiting.size))))

    def observe(self, waiting: NDArray[np.int64] | None = None) -> Observation:
        """Return what the policy may see of the present state; by default of the pool."""
        state = self._state
        numbers = self._pool if waiting is None else waiting
        known = np.where(state.reveal_step[numbers] < 0, self.step, state.reveal_step[numbers])
        return Observation(
            step=self.step,
            clock=float(state.clock[0]),
            loads=state.load,
            free_slots=self._setting.slots_per_worker - state.running,
            running=state.running,
            queued=state.queued,
            queued_tokens=state.queued_tokens,
            sizes=self._requests.prompt[numbers],
            waited=self.step - known,
            requests=numbers,
        )

    def _decide(self) -> None:
        observation = self.observe()
        workers = self._ask(observation)
        _refuse_infeasible(self._policy.name, observation, workers)
        self._state.choice[: workers.size] = workers
        self._loop.admit_external(self._requests, self._state)

    def _bind(self) -> None:
        number = self._state.counters[tables.UNDISCOVERED]
        observation = self.observe(np.array([number]))
        workers = self._ask(observation)
        worker = int(workers[0]) if workers.shape == (1,) and workers.dtype.kind in "iu" else -1
        if not 0 <= worker < observation.loads.size:
            raise InfeasibleDecisionError(
                f"policy '{self._policy.name}' binds request {int(number)} in step {self.step} to {workers.tolist()}; "
                f"expected a list of one worker of 0..{observation.loads.size - 1}"
            )
        self._admission.bind_next(worker, self._requests, self._setting, self._state)

    def _ask(self, observation: Observation) -> NDArray[np.int64]:
        if not isinstance(self._policy, DecidingPolicy):
            raise InputError(f"policy '{self._policy.name}' is neither compiled nor able to decide in Python")
        return np.asarray(self._policy.decide(observation))


def _refuse_infeasible(name: str, observation: Observation, workers: NDArray[Any]) -> None:
    """Check a pooled decision; admitting fewer than possible is a policy's right."""
    if workers.shape != observation.sizes.shape or workers.dtype.kind not in "iu":
        raise InfeasibleDecisionError(
            f"policy '{name}' returned {workers.dtype} values of shape {workers.shape} in step {observation.step}; "
            f"expected {observation.sizes.size} worker numbers, -1 for a request that keeps waiting"
        )
    G = observation.loads.size
    outside = np.flatnonzero((workers < -1) | (workers >= G))
    if outside.size:
        raise InfeasibleDecisionError(
            f"policy '{name}' sends request {observation.requests[outside[0]]} in step {observation.step} to worker "
            f"{workers[outside[0]]}; expected -1 or 0..{G - 1}"
        )
    counts = np.bincount(workers[workers >= 0], minlength=G)
    crowded = np.flatnonzero(counts > observation.free_slots)
    if crowded.size:
        g = crowded[0]
        raise InfeasibleDecisionError(
            f"policy '{name}' sends {counts[g]} requests in step {observation.step} to worker {g}, "
            f"which has {observation.free_slots[g]} free slots"
        )


def _rows_for(num_workers: int) -> Rows:
    return fresh_rows(num_workers, max(64, min(ROWS_PER_CHUNK, _CHUNK_BYTES // (16 * num_workers))))


def _request_columns(requests: Requests, state: State, recorder: Recorder) -> dict[str, NDArray[Any]]:
    clock = recorder.columns()["clock"]
    finish_step = state.start_step + requests.output
    return {
        "worker": state.worker,
        "reveal_step": state.reveal_step,
        "start_step": state.start_step,
        "finish_step": finish_step,
        "reveal_clock": state.reveal_clock,
        "start_clock": state.start_clock,
        "finish_clock": clock[finish_step - 1],
        "first_token_clock": clock[state.start_step],
    }
