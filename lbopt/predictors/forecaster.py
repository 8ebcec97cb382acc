"""The forecasts of all running requests of one run, refreshed now and then (BalanceRoute, section 4.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.state import Gate, Seen
from lbopt.predictors.predictor import Forecast, Foresight, LearningPredictor, Predictor, SamplePredictor

Floats = NDArray[np.float64]
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
        self._gate = Gate(foresight.horizon, foresight.gate, foresight.floor)
        self._period = foresight.refresh or predictor.refresh_period
        self._remaining = np.zeros(num_requests)
        self._seen = Seen(*np.full((3, num_requests), -1, dtype=np.int64))
        self._learner = predictor if isinstance(predictor, LearningPredictor) else None
        self._sampler = predictor if isinstance(predictor, SamplePredictor) else None
        if self._learner is not None:
            self._learner.begin()

    @property
    def learns(self) -> bool:
        """Whether the predictor wants to hear of requests that have ended."""
        return self._learner is not None

    def tell(self, prompt: Ints, output: Ints) -> None:
        """Pass on the tokens of requests that have ended since the last forecast, oldest first; int64 (n,) each."""
        if self._learner is not None and prompt.size:
            self._learner.tell(prompt, output)

    def forecast(self, requests: Ints, prompt: Ints, generated: Ints, waiting: Ints, waiting_prompt: Ints) -> Forecast:
        """Return the forecast of the running and the waiting requests.

        Parameters
        ----------
        requests, prompt, generated
            int64, (A,): number in the trace, prompt and emitted tokens of each running request.
        waiting, waiting_prompt
            int64, (n,): number in the trace and prompt of each waiting request.
        """
        from lbopt.kernels.forecast import refresh

        wanted = self.foresight
        due = np.empty(requests.size, dtype=np.int64)
        count = refresh.age(
            requests, generated, self._period, wanted.hold_anchor, wanted.floor, self._remaining, self._seen, due
        )
        due = due[:count]
        p, mu = self._ends_within(
            np.concatenate([requests[due], waiting]),
            np.concatenate([prompt[due], waiting_prompt]),
            np.concatenate([generated[due], np.zeros_like(waiting)]),
        )
        refresh.accept(requests, generated, due, p[:count], mu[:count], self._gate, self._remaining, self._seen)
        remaining, outlives = self._of_waiting(p[count:], mu[count:])
        samples, buckets, A = None, None, requests.size
        if self._sampler is not None:
            samples, buckets = self._sampler.samples_of(
                np.concatenate([requests, waiting]), np.concatenate([prompt, waiting_prompt])
            )
        return Forecast(
            horizon=wanted.horizon,
            remaining=self._remaining[requests],
            waiting=remaining,
            samples=samples,
            active_buckets=None if buckets is None else buckets[:A],
            waiting_buckets=None if buckets is None else buckets[A:],
            outlives=self._seen.anchored[requests] == 1,
            waiting_outlives=outlives,
        )

    def _ends_within(self, requests: Ints, prompt: Ints, generated: Ints) -> tuple[Floats, Floats]:
        """Ask the predictor about all of them at once, and check its answer before it is used."""
        answer = self.predictor.ends_within(requests, prompt, generated, self.foresight.horizon)
        p, mu = (np.ascontiguousarray(values, dtype=np.float64) for values in answer)
        for name, values in (("p", p), ("mu", mu)):
            if values.shape != requests.shape:
                raise InputError(
                    f"predictor '{self.predictor.name}' gave {name} of shape {values.shape} for {requests.size} "
                    f"requests; expected one number each, shape {requests.shape}"
                )
        wrong = ~((p >= 0) & (p <= 1) & np.isfinite(mu))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"predictor '{self.predictor.name}' gave p = {p[row]} and mu = {mu[row]} for request {requests[row]}; "
                "expected a chance, 0 to 1, and a finite number of steps"
            )
        return p, mu

    def _of_waiting(self, p: Floats, mu: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the remaining steps of requests that start now, as those of requests that run, and who outlives."""
        from lbopt.kernels.forecast import refresh

        every = np.arange(p.size)
        remaining, seen = np.empty(p.size), Seen(*np.empty((3, p.size), dtype=np.int64))
        refresh.accept(every, np.zeros_like(every), every, p, mu, self._gate, remaining, seen)
        return remaining, seen.anchored == 1
