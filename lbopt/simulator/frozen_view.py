"""What a policy is shown of a frozen state: its forecast is made there and then, at the present ages.

In a run a forecast may be some tokens old; a frozen state has no past.
"""

from __future__ import annotations

from dataclasses import replace

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.policies import Observation, Policy, foresight_of
from lbopt.predictors import Forecaster, Foresight, Predictor, make_predictor, needs_training
from lbopt.simulator.sampling import SampledState


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
