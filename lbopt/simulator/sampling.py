"""States frozen out of a run, so that any rule can decide them again, and what a policy sees of them.

States frozen out of a run, and what a policy sees of them.

Who runs and who waits in a frozen state, one by one, and the truth of how long they will run.

The truth is there to be judged by, and for the oracle: a policy is shown `active` alone, and a forecast.

What a policy is shown of a frozen state: its forecast is made there and then, at the present ages.

In a run a forecast may be some tokens old; a frozen state has no past.

Step problems along a run: what the router faced, frozen so that any rule can decide it again.

The run is made twice: once to see which decisions have a real choice, then again, stopping at the chosen ones. Chosen
are decisions with a real choice, evenly spaced, between a warm-up and a cool-down share of the window (towards its
end the trace runs out and the pool with it): no luck, no clustering.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.model import StepProblem, Trace
from lbopt.model.integers import integer_array
from lbopt.policies import ActiveRequests, Observation, Policy, foresight_of
from lbopt.predictors import Forecaster, Foresight, Predictor, make_predictor, needs_training
from lbopt.simulator.run import Run
from lbopt.simulator.setting import SimulationSetting
from lbopt.simulator.simulate import Look, simulate

_COLUMNS = ("worker", "prompt", "generated", "output")

#: What is assumed of waiting requests where a frozen state is judged over a window.
NEW = ("survives", "ends")


@dataclass(frozen=True, slots=True, eq=False)
class FrozenRequests:
    """Running and waiting requests of one state.

    Parameters
    ----------
    worker, prompt, generated, output
        int64 (A,): where each running request is, its prompt tokens, what it has made, and its true output length.
    waiting_prompt, waiting_output
        int64 (n,): tokens and true output lengths of those that wait, in order of revelation.
    """

    worker: NDArray[np.int64]
    prompt: NDArray[np.int64]
    generated: NDArray[np.int64]
    output: NDArray[np.int64]
    waiting_prompt: NDArray[np.int64]
    waiting_output: NDArray[np.int64]

    @property
    def active(self) -> ActiveRequests:
        """The running requests as a policy sees them, numbered from 0."""
        return ActiveRequests(self.worker, np.arange(self.worker.size), self.prompt, self.generated)

    @property
    def waiting(self) -> NDArray[np.int64]:
        """int64 (n,): the numbers of those that wait, which follow those of the running ones."""
        return np.arange(self.worker.size, self.worker.size + self.waiting_prompt.size)

    @property
    def truth(self) -> Trace:
        """All of them in the order of their numbers."""
        return Trace(
            prompt=np.concatenate([self.prompt, self.waiting_prompt]),
            output=np.concatenate([self.output, self.waiting_output]),
            name="frozen state",
        )

    def window_problem(self, now: StepProblem, horizon: int, new: str) -> StepProblem:
        """Return the problem over the window h = 0..H as an oracle sees it.

        `now` is the H = 0 problem. `new` says what is assumed of the waiting requests: "survives", they outlive the
        window, or "ends", they end when they will.
        """
        left = self.output - self.generated
        ends = left <= horizon
        departures = np.column_stack([self.worker, left, self.prompt + self.generated])[ends]
        running = np.bincount(self.worker, minlength=now.num_workers)
        loads, slots, sizes = now.base[:, 0], now.slots, now.work[:, 0]
        if new == "survives":
            return StepProblem.survives(
                loads, slots, sizes, horizon, active=running, departures=departures, must_admit=now.must_admit
            )
        return StepProblem.known_ends(
            loads,
            slots,
            sizes,
            self.waiting_output,
            horizon,
            active=running,
            departures=departures,
            must_admit=now.must_admit,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the requests as plain data."""
        return {
            "running": {name: getattr(self, name).tolist() for name in _COLUMNS},
            "waiting_output": self.waiting_output.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Any, problem: StepProblem, *, source: str) -> FrozenRequests:
        """Rebuild the requests of `problem`, checked against its loads."""
        running = data.get("running") if isinstance(data, dict) else None
        if not isinstance(running, dict) or not all(name in running for name in _COLUMNS):
            raise InputError(f"{source}: requests lack a list of running ones with {', '.join(_COLUMNS)}")
        columns = [integer_array(f"{source}: running {name}", running[name], ndim=(1,)) for name in _COLUMNS]
        waiting = integer_array(f"{source}: waiting_output", data.get("waiting_output", []), ndim=(1,))
        worker, prompt, generated, output = columns
        if len({column.size for column in columns}) > 1 or waiting.size != problem.num_requests:
            raise InputError(
                f"{source} lists running requests in columns of {[column.size for column in columns]} entries and "
                f"{waiting.size} outputs for {problem.num_requests} waiting requests"
            )
        if worker.size and int(worker.max()) >= problem.num_workers:
            raise InputError(f"{source}: a request runs on worker {int(worker.max())} of {problem.num_workers}")
        if (output <= generated).any() or (waiting < 1).any():
            raise InputError(f"{source}: a running request has made all its tokens, or a waiting one has none to make")
        held = np.bincount(worker, weights=prompt + generated, minlength=problem.num_workers)
        if (held != problem.base[:, 0]).any():
            g = int(np.argmax(held != problem.base[:, 0]))
            raise InputError(
                f"{source}: the running requests of worker {g} hold {int(held[g])} tokens, "
                f"its load is {int(problem.base[g, 0])}"
            )
        return cls(worker, prompt, generated, output, problem.work[:, 0], waiting)

    @classmethod
    def of(cls, observation: Observation, output: NDArray[np.int64]) -> FrozenRequests | None:
        """Return the requests of an observation; `output` is the truth by number in the trace."""
        active = observation.active
        if active is None:
            return None
        return cls(
            active.worker,
            active.prompt,
            active.generated,
            output[active.requests],
            observation.sizes,
            output[observation.requests],
        )


class FrozenView:
    """Makes observations of frozen states, and keeps what was trained for them.

    Parameters
    ----------
    training
        Requests for the predictors that learn; None where there are none.
    """

    def __init__(self, training: Trace | None = None) -> None:
        self._training = training
        self._trained: dict[tuple[str, int], Predictor] = {}

    def observe(self, state: SampledState, policy: Policy) -> Observation:
        """Return what `policy` is shown of `state`."""
        wanted = foresight_of(policy)
        if wanted is None:
            return state.observation
        requests = state.requests
        if requests is None:
            raise InputError(
                f"policy '{policy.name}' looks ahead, and the state of step {state.step} under {state.behaviour} does "
                "not list its running requests; sample states with this version, or leave the policy out"
            )
        active, seen = requests.active, state.observation
        forecaster = Forecaster(wanted, self._predictor(wanted, requests.truth), len(requests.truth))
        forecast = forecaster.forecast(
            active.requests, active.prompt, active.generated, requests.waiting, requests.waiting_prompt
        )
        return replace(seen, requests=requests.waiting, active=active, forecast=forecast)

    def _predictor(self, wanted: Foresight, truth: Trace) -> Predictor:
        if not needs_training(wanted.predictor):
            return make_predictor(wanted.predictor, requests=truth, training=None, horizon=wanted.horizon)
        key = (wanted.predictor, wanted.horizon)
        if key not in self._trained:
            self._trained[key] = make_predictor(
                wanted.predictor, requests=truth, training=self._training, horizon=wanted.horizon
            )
        return self._trained[key]


@dataclass(frozen=True, slots=True, eq=False)
class SampledState:
    """A step problem with its pedigree.

    Parameters
    ----------
    problem
        The problem a pooled router faced, at H = 0 or over a window as an oracle sees it.
    running
        int64 (G,): requests running on each worker, which rules that count requests need.
    waited
        int64 (N,): steps each request had waited.
    behaviour, step
        The policy that had brought the fleet there, and the decision step.
    chosen
        int64 (N,): what the behaviour then really did, worker or -1; None where that is not known.
    requests
        Who runs and who waits, one by one; None where that is not known, and then no policy can look ahead.
    """

    problem: StepProblem
    running: NDArray[np.int64]
    waited: NDArray[np.int64]
    behaviour: str
    step: int
    chosen: NDArray[np.int64] | None = None
    requests: FrozenRequests | None = None

    @property
    def observation(self) -> Observation:
        """What a policy is shown of it."""
        return Observation.of_problem(self.problem, running=self.running, waited=self.waited, step=self.step)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "behaviour": self.behaviour,
            "step": self.step,
            "running": self.running.tolist(),
            "waited": self.waited.tolist(),
            "chosen": None if self.chosen is None else self.chosen.tolist(),
            "requests": None if self.requests is None else self.requests.to_dict(),
            "problem": self.problem.to_dict(),
        }

    def over_window(self, horizon: int, new: str = "survives") -> SampledState:
        """Return the state with the problem over the window h = 0..H, see `FrozenRequests.window_problem`."""
        if self.requests is None:
            raise InputError(
                f"the state of step {self.step} under {self.behaviour} does not list its running requests, so its "
                "window is unknown; sample states with this version, or use horizon 0"
            )
        return replace(self, problem=self.requests.window_problem(self.problem, horizon, new))

    @classmethod
    def from_dict(cls, data: Any, *, source: str) -> SampledState:
        """Rebuild a state; a bare step problem is accepted too, with nothing running and no waiting times."""
        if not isinstance(data, dict):
            raise InputError(f"{source} is not a JSON object with a step problem")
        problem = StepProblem.from_dict(data.get("problem", data), source=source)
        step = whole(f"{source}: step", data.get("step", 0), 0, 2**62 - 1)
        running = integer_array(f"{source}: running", data.get("running", [0] * problem.num_workers), ndim=(1,))
        waited = integer_array(f"{source}: waited", data.get("waited", [0] * problem.num_requests), ndim=(1,))
        if running.size != problem.num_workers or waited.size != problem.num_requests:
            raise InputError(
                f"{source} has {running.size} running counts for {problem.num_workers} workers "
                f"and {waited.size} waits for {problem.num_requests} requests"
            )
        chosen = None if data.get("chosen") is None else _chosen(data["chosen"], problem.num_requests, source)
        requests = None
        if data.get("requests") is not None:
            requests = FrozenRequests.from_dict(data["requests"], problem, source=source)
            listed = np.bincount(requests.worker, minlength=problem.num_workers)
            if "running" in data and (running != listed).any():
                g = int(np.argmax(running != listed))
                raise InputError(f"{source} counts {running[g]} running requests on worker {g} and lists {listed[g]}")
            running = listed
        return cls(
            problem,
            running,
            waited,
            str(data.get("behaviour", "given")),
            step,
            chosen,
            requests,
        )


def _chosen(values: Any, count: int, source: str) -> NDArray[np.int64]:
    """Return the worker of each request, int64 (count,), -1 for one that waits."""
    if (
        not isinstance(values, list)
        or len(values) != count
        or not all(type(value) is int and -1 <= value < 2**62 for value in values)
    ):
        raise InputError(f"{source}: chosen is not one worker (or -1) for each of {count} requests")
    return np.array(values, dtype=np.int64)


def sample_states(
    trace: Trace,
    policy: Policy,
    setting: SimulationSetting,
    count: int,
    *,
    seed: int = 0,
    training: Trace | None = None,
    warm_up_share: float = 0.1,
    cool_down_share: float = 0.05,
) -> tuple[list[SampledState], Run]:
    """Return up to `count` states along a run of `policy`, and the run.

    Fewer come back where the run has fewer decisions with a real choice.

    Parameters
    ----------
    trace, policy, setting, seed, training
        As in `simulate`.
    count
        Most states.
    warm_up_share, cool_down_share
        Shares of the run, at its beginning and end, from which no state is taken.
    """
    if count < 1:
        raise InputError(f"the number of states is {count}; expected at least 1")
    trace.refuse_eligibility("a problem of one step that is sampled")
    if setting.detail is not None:
        raise InputError(
            "states to be solved are sampled from workers without detail, since a request that may be pre-empted or "
            "restarted is no part of the step's problem; leave detail out"
        )
    run = simulate(trace, policy, setting, seed=seed, training=training)
    window = run.window
    length = window.last - window.first
    first, last = window.first + int(warm_up_share * length), window.last - int(cool_down_share * length)
    steps = np.arange(run.num_steps)
    candidates = np.flatnonzero((run.steps["real_choice"] > 0) & (steps >= first) & (steps <= last))
    if candidates.size > count:
        candidates = candidates[np.linspace(0, candidates.size - 1, count).round().astype(np.int64)]
    seen: list[Observation] = []
    if candidates.size:
        simulate(trace, policy, setting, seed=seed, training=training, look=Look(candidates, seen.append))
    return [_state(observation, run, trace) for observation in seen], run


def _state(observation: Observation, run: Run, trace: Trace) -> SampledState:
    """Freeze what was seen, with what the run then did: a decision starts the requests whose start_step it is."""
    starts = run.requests["start_step"][observation.requests] == observation.step
    return SampledState(
        problem=StepProblem.now(observation.loads, observation.free_slots, observation.sizes),
        running=observation.running,
        waited=observation.waited,
        behaviour=run.policy,
        step=observation.step,
        chosen=np.where(starts, run.requests["worker"][observation.requests], -1),
        requests=FrozenRequests.of(observation, trace.output),
    )
