"""The forecasts of all running requests of one run, refreshed now and then (BalanceRoute, section 4.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.predictors.forecast import Forecast
from lbopt.predictors.foresight import Foresight
from lbopt.predictors.predictor import LearningPredictor, Predictor, SamplePredictor

Ints = NDArray[np.int64]


class Forecaster:
    """Keeps a forecast for each request by its number in the trace; the only thing here that changes.

    Parameters
    ----------
    foresight
        What is asked for.
    predictor
        Who answers.
    num_requests
        N, requests of the run.
    """

    def __init__(self, foresight: Foresight, predictor: Predictor, num_requests: int) -> None:
        self.foresight = foresight
        self.predictor = predictor
        self._period = foresight.refresh or predictor.refresh_period
        self._remaining = np.zeros(num_requests)
        self._seen = np.full((num_requests, 3), -1, dtype=np.int64)
        if isinstance(predictor, LearningPredictor):
            predictor.begin()

    def forecast(self, requests: Ints, prompt: Ints, generated: Ints, waiting: Ints, waiting_prompt: Ints) -> Forecast:
        """Return the forecast of the running and the waiting requests.

        `requests` (A,) and `waiting` (n,) are numbers in the trace, int64, the others their tokens.
        """
        from lbopt.kernels.forecast import refresh

        wanted = self.foresight
        due = np.empty(requests.size, dtype=np.int64)
        count = refresh.age(requests, generated, self._period, wanted.hold_anchor, self._remaining, self._seen, due)
        due = due[:count]
        if count:
            p, mu = self.predictor.ends_within(requests[due], prompt[due], generated[due], wanted.horizon)
            refresh.accept(
                requests, generated, due, p, mu, wanted.horizon, wanted.gate, wanted.floor, self._remaining, self._seen
            )
        forecast = Forecast(
            horizon=wanted.horizon,
            remaining=self._remaining[requests],
            waiting=self._of_waiting(waiting, waiting_prompt),
        )
        if not isinstance(self.predictor, SamplePredictor):
            return forecast
        samples, buckets = self.predictor.samples_of(
            np.concatenate([requests, waiting]), np.concatenate([prompt, waiting_prompt])
        )
        return Forecast(
            horizon=forecast.horizon,
            remaining=forecast.remaining,
            waiting=forecast.waiting,
            samples=samples,
            active_buckets=buckets[: requests.size],
            waiting_buckets=buckets[requests.size :],
        )

    def _of_waiting(self, waiting: Ints, prompt: Ints) -> NDArray[np.float64]:
        """Return the remaining steps of requests that start now, gated as those that run."""
        H = float(self.foresight.horizon)
        p, mu = self.predictor.ends_within(waiting, prompt, np.zeros_like(waiting), self.foresight.horizon)
        value = np.where(p >= self.foresight.gate, ((1 - p) * H + p * mu).clip(0, H), H)
        return np.maximum(value, self.foresight.floor)
