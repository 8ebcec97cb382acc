"""What a policy that decides in Python is shown and may not do, and what an observer of the run is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.kernels.simulation.state import Requests, Setting, State
from lbopt.model import Trace
from lbopt.policies import ActiveRequests, Memory, Observation, Policy, foresight_of
from lbopt.policies.policy import CompiledPolicy
from lbopt.predictors import Forecaster
from lbopt.simulator.setting import SimulationSetting

Ints = NDArray[np.int64]


class Observer:
    """Makes observations of the present state.

    Parameters
    ----------
    requests, setting, state
        The arrays of the run.
    forecaster
        Who forecasts for the policy; None where it does not ask, and then running requests are not listed either.
    """

    def __init__(self, requests: Requests, setting: Setting, state: State, forecaster: Forecaster | None) -> None:
        self._requests = requests
        self._setting = setting
        self._state = state
        # read at every decision: a column of records costs more to look up than to filter
        self._worker_of_ending, self._request_of_ending = state.endings.worker, state.endings.request
        self._forecaster = forecaster
        self._untold = np.empty(0, dtype=np.int64)  # known requests that had not ended when the predictor last heard
        self._untold_from = 0

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return int(self._state.progress.step)

    @property
    def pool(self) -> Ints:
        """int64: the requests that wait in the pool, in order of revelation."""
        progress = self._state.progress
        return self._state.pool[progress.pool_head : progress.pool_tail]

    @property
    def all_closed(self) -> bool:
        """Whether no worker takes requests any more: all drain or have left."""
        detail = self._state.detail
        return bool(detail.rules.on) and not detail.is_open.any()

    @property
    def next_to_bind(self) -> Ints:
        """int64 (1,): the request at the head of the pool."""
        return self.pool[:1]

    def places_by_kind(self) -> Iterator[Ints]:
        """Yield the places of the pool that are decided together, int64: all, or those of a kind that has a free slot.

        The kind of the oldest waiting request comes first; what one kind has taken, the next one sees.
        """
        allowed, kind = self._requests.allowed, self._requests.kind
        if not allowed.size:
            yield np.arange(self.pool.size)
            return
        for k in dict.fromkeys(kind[self.pool].tolist()):
            if (self._free_slots(self._state.sight.running[0]) * allowed[k]).any():
                yield np.flatnonzero(kind[self.pool] == k)
                self._see_free_slots()

    def look_ahead(self) -> Observation:
        """Return what a pooled router would see at the decision that comes next: all that wait, bound or not."""
        from lbopt.kernels.simulation import loop

        progress = self._state.progress
        waiting = self.pool
        if self._setting.immediate:  # bound in order of revelation, so those in the pool are younger
            bound = np.flatnonzero((self._state.worker >= 0) & (self._state.start_step < 0))
            waiting = np.concatenate((bound, waiting))
        count = int(loop.num_waiting(self._requests, self._setting, self._state))
        first = int(progress.undiscovered)
        known = np.concatenate((waiting, np.arange(first, first + count - waiting.size)))
        state = self._state
        seen = (state.load, state.running, state.queued, state.queued_tokens, self._committed())
        return self._shown(seen, known, self._active())

    def observe(self, waiting: Ints) -> Observation:
        """Return what the policy may see of the present state, with the requests `waiting` to be decided."""
        sight = self._state.sight
        front_ends = len(sight.load)
        f = int(waiting[0]) % front_ends if front_ends > 1 else 0
        committed = sight.committed[f] if sight.reports.stale else self._committed()
        seen = (sight.load[f], sight.running[f], sight.queued[f], sight.queued_tokens[f], committed)
        active = None if self._forecaster is None else self._active()
        shown = self._shown(seen, waiting, active, self._forecaster)
        if not self._requests.allowed.size:
            return shown
        serves = self._requests.allowed[self._requests.kind[waiting[0]]] == 1
        if self._setting.immediate:
            return _of_workers(shown, serves)
        return replace(shown, free_slots=shown.free_slots * serves)

    def _shown(
        self,
        workers: tuple[Ints, Ints, Ints, Ints, Ints],
        waiting: Ints,
        active: ActiveRequests | None,
        forecaster: Forecaster | None = None,
    ) -> Observation:
        """Return an observation of the workers' loads, running and queued requests, queued tokens and blocks.

        Parameters
        ----------
        workers
            int64 (G,) each; blocks that are committed, (0,) where memory never runs out.
        active, forecaster
            The running requests, and who forecasts how long they run; None where no forecast is asked for.
        """
        loads, running, queued, queued_tokens, committed = workers
        state, sizes, step = self._state, self._state.size[waiting], self.step
        revealed = state.reveal_step[waiting]
        known = np.where(revealed < 0, step, revealed)
        forecast = None
        if forecaster is not None and active is not None:
            if forecaster.learns:
                ended = self._newly_ended()
                forecaster.tell(self._requests.prompt[ended], self._requests.output[ended])
            forecast = forecaster.forecast(active.requests, active.prompt, active.generated, waiting, sizes)
        return Observation(
            step=step,
            clock=float(state.progress.clock),
            loads=loads,
            free_slots=self._free_slots(running),
            running=running,
            queued=queued,
            queued_tokens=queued_tokens,
            sizes=sizes,
            waited=step - known,
            requests=waiting,
            active=active,
            forecast=forecast,
            **self._traits(committed),
        )

    def _traits(self, committed: Ints) -> dict[str, Any]:
        """Return what sets workers in detail apart: their memory, speed, and whether they are open."""
        detail = self._state.detail
        rules = detail.rules
        if not rules.on:
            return {}
        memory = None
        if rules.blocks >= 0:
            memory = Memory(
                block=int(rules.block),
                capacity=np.full(committed.size, rules.blocks, dtype=np.int64),
                committed=committed,
                kept_free=int(rules.kept_free),
                draft=int(rules.draft),
            )
        return {"memory": memory, "slow": detail.slow, "is_open": detail.is_open}

    def _committed(self) -> Ints:
        """Return the blocks that are occupied or about to be, int64 (G,); (0,) where memory never runs out."""
        committed = self._state.detail.committed
        if committed.size:
            from lbopt.kernels.detail.queues import count_committed

            count_committed(self._state)
        return committed

    def _see_free_slots(self) -> None:
        """Bring the free slots that a pooled rule sees up to date; without detail they follow from what runs."""
        if self._state.detail.rules.on:
            from lbopt.kernels.detail.queues import see_free_slots

            see_free_slots(self._state)

    def _free_slots(self, running: Ints) -> Ints:
        state = self._state
        return state.free if state.detail.rules.on and not self._setting.immediate else state.slots - running

    def _newly_ended(self) -> Ints:
        """Return the requests that have ended since the last time, in the order in which they did."""
        known = int(self._state.progress.undiscovered)
        candidates = np.concatenate([self._untold, np.arange(self._untold_from, known)])
        if self._state.detail.rules.on:
            finish = self._state.detail.finish_step[candidates]
            has_ended = finish >= 0
        else:
            start = self._state.start_step[candidates]
            finish = start + self._requests.output[candidates]
            has_ended = (start >= 0) & (finish <= self.step)
        self._untold, self._untold_from = candidates[~has_ended], known
        ended: Ints = candidates[has_ended][np.argsort(finish[has_ended], kind="stable")]
        return ended

    def _active(self) -> ActiveRequests:
        detail = self._state.detail
        if detail.rules.on:
            seats = np.arange(detail.seats.shape[1]) < self._state.running[:, None]
            numbers = detail.seats[seats]
            return ActiveRequests(
                worker=np.nonzero(seats)[0],
                requests=numbers,
                prompt=self._requests.prompt[numbers],
                generated=detail.tracks.made[numbers],
            )
        used = np.flatnonzero(self._worker_of_ending >= 0)
        numbers = self._request_of_ending[used]
        return ActiveRequests(
            worker=self._worker_of_ending[used],
            requests=numbers,
            prompt=self._requests.prompt[numbers],
            generated=self.step - self._state.start_step[numbers],
        )


def refuse_infeasible(name: str, observation: Observation, workers: NDArray[Any]) -> None:
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


def bound_worker(name: str, observation: Observation, workers: NDArray[Any]) -> int:
    """Return the one worker to which a policy that binds on arrival sends the one request it was shown; -1 = held."""
    G = observation.loads.size
    worker = int(workers[0]) if workers.shape == (1,) and workers.dtype.kind in "iu" else G
    if not -1 <= worker < G:
        raise InfeasibleDecisionError(
            f"policy '{name}' binds request {int(observation.requests[0])} in step {observation.step} to "
            f"{workers.tolist()}; expected a list of one worker of 0..{G - 1}, or of -1 to hold it back"
        )
    return worker


def _of_workers(shown: Observation, serves: NDArray[np.bool_]) -> Observation:
    """Return what a rule that binds on arrival sees of some of the workers, in their order."""
    names = ("loads", "free_slots", "running", "queued", "queued_tokens", "slow", "is_open")
    part = {name: values[serves] for name in names if (values := getattr(shown, name)) is not None}
    memory = shown.memory
    if memory is not None:
        memory = replace(memory, capacity=memory.capacity[serves], committed=memory.committed[serves])
    return replace(shown, **part, memory=memory)


def refuse_eligibility(trace: Trace, policy: Policy, setting: SimulationSetting) -> None:
    """Refuse a run whose requests only some workers serve where workers or policy cannot tell that."""
    if trace.eligibility is None:
        return
    served, G = trace.eligibility.allowed.shape[1], setting.fleet.num_workers
    if served != G:
        raise InputError(f"trace '{trace.name}' says which of {served} workers serve its requests; the fleet has {G}")
    why = None
    if setting.detail is not None and setting.detail.events:
        why = "does not say who serves them when workers drain, leave or join; leave these options out"
    elif isinstance(policy, CompiledPolicy) and policy.guide is not None:
        why = f"policy '{policy.name}' knows preferences only; take another rule"
    elif policy.admission == "immediate" and foresight_of(policy) is not None:
        why = f"policy '{policy.name}' binds on arrival by a forecast for all workers; take it with admission=pooled"
    if why is not None:
        raise InputError(f"trace '{trace.name}' has requests that only some workers serve, and {why}")


def refuse_blind(policy: Policy, setting: SimulationSetting) -> None:
    """Refuse a policy that cannot work with what the telemetry of `setting` shows it."""
    telemetry = setting.telemetry
    if telemetry is None:
        return
    if foresight_of(policy) is not None:
        raise InputError(
            f"policy '{policy.name}' goes by a forecast of every running request, of which reports of workers say "
            "nothing; leave telemetry out, or take a rule without lookahead"
        )
    if policy.admission == "pooled" and (telemetry.front_ends > 1 or telemetry.own == "none"):
        raise InputError(
            f"policy '{policy.name}' keeps requests in one pool, whose router knows what it has sent: expected "
            f"own=optimistic and front_ends=1, not own={telemetry.own} and front_ends={telemetry.front_ends}; "
            "rules that bind requests on arrival take any"
        )
