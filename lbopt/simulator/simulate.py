"""`simulate`: run a policy over a trace.

The compiled loop does the work and comes back for four reasons: its rows are full (they are recorded, progress is
told), a Python policy must decide, a pause was asked for (to look at the state), or all requests have ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.hardware.step_time import ExplainedStepTime
from lbopt.kernels.simulation.state import (
    END_DECISION,
    FINISHED,
    NEEDS_DECISION,
    NEEDS_WORKER,
    PAUSED,
    STUCK,
    Requests,
    Rows,
    Setting,
    State,
)
from lbopt.model import Trace
from lbopt.policies import DecidingPolicy, Observation, Policy, foresight_of, make_policy
from lbopt.policies.policy import Ledger
from lbopt.policies.relative_age import RelativeAge
from lbopt.policies.replay import Replay
from lbopt.predictors import Forecaster, make_predictor
from lbopt.simulator.observer import Observer, bound_worker, refuse_blind, refuse_eligibility, refuse_infeasible
from lbopt.simulator.recorder import Recorder, happened_of
from lbopt.simulator.run import Run
from lbopt.simulator.setting import SimulationSetting
from lbopt.simulator.state import fresh_rows, fresh_state, requests_of, setting_of

ROWS_PER_CHUNK = 8192
_CHUNK_BYTES = 64 * 2**20

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Decisions that are looked at.

    Parameters
    ----------
    steps
        Ascending decision steps, int64.
    show
        Is shown, at the first decision of each of them that has something to decide, what a pooled router would see.
    """

    steps: NDArray[np.int64]
    show: Callable[[Observation], None]


def simulate(
    trace: Trace,
    policy: Policy,
    setting: SimulationSetting,
    *,
    seed: int = 0,
    keep_loads: bool = False,
    progress: Progress | None = None,
    training: Trace | None = None,
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
    training
        Requests that the predictor of a policy which looks ahead, or the guide of one that goes by experts, learns
        from; none of them need be in `trace`.
    progress
        Called now and then with (requests ended, requests in all).
    look
        What is to be seen on the way.

    Raises
    ------
    InfeasibleDecisionError
        When a policy breaks a rule, naming policy, step and value.
    """
    begin = compile_time.clock()
    policy = _settled(policy, trace, setting, seed)
    ledger = getattr(policy, "ledger", Ledger())
    noted_before = len(ledger)
    requests = requests_of(trace, policy, setting, seed, training)
    refuse_blind(policy, setting)
    refuse_eligibility(trace, policy, setting)
    if setting.detail is not None:
        setting.detail.refuse_run(trace, policy, setting.fleet)
    rules = setting_of(policy, setting, trace)
    state = fresh_state(setting.fleet, requests, setting.telemetry, seed, rules.code, setting.detail, trace.prefixes)
    recorder = Recorder(setting, keep_loads)
    G, explained = setting.fleet.num_workers, isinstance(setting.law, ExplainedStepTime)
    observer = Observer(requests, rules, state, forecaster_of(policy, trace, training))
    loop = _Loop(policy, requests, rules, state, _rows_for(G, explained), observer, progress)
    pauses = deque([] if look is None else look.steps.tolist())
    loop.pause_from(pauses)
    while True:
        why = loop.go()
        if why == PAUSED:
            assert look is not None
            while pauses and pauses[0] < loop.step:
                pauses.popleft()  # nothing was to be decided there
            if pauses and pauses[0] == loop.step:
                pauses.popleft()
                look.show(observer.look_ahead())
            loop.pause_from(pauses)
            continue
        loop.hand_rows_to(recorder)
        loop.tell()
        if why == FINISHED:
            break
    return Run(
        trace=trace,
        policy=policy.name,
        admission=policy.admission,
        setting=setting,
        seed=seed,
        requests=_request_columns(requests, state, recorder),
        steps=recorder.columns(),
        decisions=int(state.progress.decisions),
        real_choices=int(state.progress.real_choices),
        seconds=compile_time.clock() - begin,
        tally=dict(ledger.tally(noted_before)),
        solved=ledger.columns(noted_before),
        happened=happened_of(state.detail),
    )


def _settled(policy: Policy, trace: Trace, setting: SimulationSetting, seed: int) -> Policy:
    """Return what `policy` is in this run: a log in the order of the trace, an age bound in steps."""
    if isinstance(policy, Replay):
        return policy.of(trace)
    if isinstance(policy, RelativeAge):
        fifo = simulate(trace, make_policy("fcfs"), setting, seed=seed).requests
        waits = fifo["start_step"] - fifo["reveal_step"]
        return policy.settle(float(np.quantile(waits, 0.99)))
    return policy


def forecaster_of(policy: Policy, requests: Trace, training: Trace | None) -> Forecaster | None:
    """Return who forecasts for `policy` in a run over `requests`; None where it does not ask."""
    wanted = foresight_of(policy)
    if wanted is None:
        return None
    predictor = make_predictor(wanted.predictor, requests=requests, training=training, horizon=wanted.horizon)
    return Forecaster(wanted, predictor, len(requests))


class _Loop:
    """The compiled loop with its arrays, and the decisions it asks Python for."""

    def __init__(
        self,
        policy: Policy,
        requests: Requests,
        setting: Setting,
        state: State,
        rows: Rows,
        observer: Observer,
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
        self._observer = observer
        self._progress = progress

    def go(self) -> int:
        """Run until rows are full, a pause, or the end, answering questions on the way."""
        while True:
            why = int(self._loop.run(self._requests, self._setting, self._state, self._rows))
            if why == NEEDS_DECISION:
                self._decide()
                self.tell()  # decisions in Python can take a while, and rows fill slowly
            elif why == NEEDS_WORKER:
                self._bind()
            elif why == STUCK and self._observer.all_closed:
                raise InfeasibleDecisionError(
                    f"no worker takes requests any more in step {self.step}: all drain or have left, "
                    f"and {self._observer.pool.size} requests wait; let a worker join, or stay"
                )
            elif why == STUCK:
                raise InfeasibleDecisionError(
                    f"policy '{self._policy.name}' admits nothing in step {self.step} although nothing is running "
                    f"and {self._observer.pool.size} requests wait"
                )
            else:
                return why

    def tell(self) -> None:
        """Tell the listener, if there is one, how many requests have ended."""
        if self._progress is not None:
            self._progress(self.num_ended, self._requests.prompt.size)

    @property
    def num_ended(self) -> int:
        """Requests that have ended: known, and neither running nor waiting in pool or queue."""
        at = self._state.progress
        waiting = at.pool_tail - at.pool_head + at.queued
        return int(at.undiscovered - waiting - at.active)

    def pause_from(self, steps: deque[int]) -> None:
        """Stop at the first decision that has something to decide, from the first of `steps` on."""
        self._state.progress.pause_at = steps[0] if steps else -1

    def hand_rows_to(self, recorder: Recorder) -> None:
        recorder.take(self._rows, int(self._state.progress.row))
        self._state.progress.row = 0

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return int(self._state.progress.step)

    def _decide(self) -> None:
        for places in self._observer.places_by_kind():
            pool = self._observer.pool
            observation = self._observer.observe(pool[places])
            workers = self._ask(observation)
            refuse_infeasible(self._policy.name, observation, workers)
            self._state.choice[: pool.size] = -1
            self._state.choice[places] = workers
            self._loop.admit_external(self._requests, self._setting, self._state)
        self._state.progress.phase = END_DECISION  # also where no kind that waits has a free slot

    def _bind(self) -> None:
        observation = self._observer.observe(self._observer.next_to_bind)
        worker = bound_worker(self._policy.name, observation, self._ask(observation))
        self._admission.bind_next(worker, self._requests, self._setting, self._state)

    def _ask(self, observation: Observation) -> NDArray[np.int64]:
        if not isinstance(self._policy, DecidingPolicy):
            raise InputError(f"policy '{self._policy.name}' is neither compiled nor able to decide in Python")
        return np.asarray(self._policy.decide(observation))


def _rows_for(num_workers: int, with_running: bool) -> Rows:
    count = max(64, min(ROWS_PER_CHUNK, _CHUNK_BYTES // (24 * num_workers)))
    return fresh_rows(num_workers, count, with_running)


def _request_columns(requests: Requests, state: State, recorder: Recorder) -> dict[str, NDArray[Any]]:
    clock = recorder.columns()["clock"]
    if state.detail.rules.on:
        finish_step, first_token_step = state.detail.finish_step, state.detail.first_token_step
    else:
        finish_step, first_token_step = state.start_step + requests.output, state.start_step + 1
    return {
        "worker": state.worker,
        "reveal_step": state.reveal_step,
        "start_step": state.start_step,
        "finish_step": finish_step,
        "reveal_clock": state.reveal_clock,
        "start_clock": state.start_clock,
        "finish_clock": clock[finish_step - 1],
        "first_token_clock": clock[first_token_step - 1],
    }
