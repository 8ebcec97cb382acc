"""States frozen out of a run, and what a policy sees of them.

Who runs and who waits in a frozen state, one by one, and the truth of how long they will run.

The truth is there to be judged by, and for the oracle: a policy is shown `active` alone, and a forecast.

What a policy is shown of a frozen state: its forecast is made there and then, at the present ages.

In a run a forecast may be some tokens old; a frozen state has no past.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import StepProblem, Trace
from lbopt.model.integers import integer_array
from lbopt.policies import ActiveRequests, Observation, Policy, foresight_of
from lbopt.predictors import Forecaster, Foresight, Predictor, make_predictor, needs_training

if TYPE_CHECKING:
    from lbopt.simulator.sampling import SampledState

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
