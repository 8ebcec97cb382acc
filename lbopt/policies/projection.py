"""What running and waiting requests will hold over the window, by their forecasts: the options, and the loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.state import Samples
from lbopt.kernels.routing.fast_phi.state import Entries
from lbopt.policies.observation import ActiveRequests, Observation
from lbopt.predictors import Forecast

#: "cut": a request counts while h is below its forecast; "fractional": its last step counts in part; "weighted": it
#: counts at every h by the chance that it still runs, which needs a predictor that knows survival curves.
DEPARTURES = ("cut", "fractional", "weighted")
#: A request that outlives the window counts at h = H too, or, literally, every request is gone there.
BOUNDARIES = ("alive", "literal")


@dataclass(frozen=True, slots=True)
class Projection:
    """How a policy projects.

    Parameters
    ----------
    policy
        Its name, for errors.
    horizon
        H, steps.
    growth
        Tokens that a request gains a step.
    departures, boundary
        How a request leaves, see `DEPARTURES` and `BOUNDARIES`.
    """

    policy: str
    horizon: int
    growth: int = 1
    departures: str = "cut"
    boundary: str = "alive"

    def __post_init__(self) -> None:
        if self.growth is None or not 0 <= self.growth <= 1_000_000:
            raise InputError(
                f"policy '{self.policy}': growth is {self.growth}; expected 0 to 1000000 tokens a step, usually 1 or 0"
            )
        for option, allowed in (("departures", DEPARTURES), ("boundary", BOUNDARIES)):
            if getattr(self, option) not in allowed:
                raise InputError(
                    f"policy '{self.policy}': {option} is '{getattr(self, option)}'; expected {' or '.join(allowed)}"
                )

    def of_workers(self, observation: Observation) -> NDArray[np.int64]:
        """Return the loads of the workers if no further request starts, int64 (G, H+1) in tokens.

        Raises
        ------
        InputError
            Where the observation does not list running requests with a forecast of this window.
        """
        if self.horizon == 0:
            return observation.loads[:, None].copy()
        active, forecast = self._foreseen(observation)
        return self._projected(
            observation.loads,
            observation.running,
            active,
            forecast.remaining,
            forecast.outlives,
            forecast.samples,
            forecast.active_buckets,
        )

    def of_waiting(self, observation: Observation) -> NDArray[np.int64]:
        """Return what each waiting request would hold if it started now, by its own forecast, int64 (n, H+1)."""
        if self.horizon == 0:
            return observation.sizes[:, None].copy()
        _, forecast = self._foreseen(observation)
        n = observation.sizes.size
        alone = ActiveRequests(  # each on a worker of its own
            worker=np.arange(n),
            requests=observation.requests,
            prompt=observation.sizes,
            generated=np.zeros(n, dtype=np.int64),
        )
        return self._projected(
            observation.sizes,
            np.ones(n, dtype=np.int64),
            alone,
            forecast.waiting,
            forecast.waiting_outlives,
            forecast.samples,
            forecast.waiting_buckets,
        )

    def _projected(
        self,
        loads: NDArray[np.int64],
        running: NDArray[np.int64],
        active: ActiveRequests,
        remaining: NDArray[np.float64],
        outlives: NDArray[np.bool_],
        samples: Samples | None,
        buckets: NDArray[np.int64] | None,
    ) -> NDArray[np.int64]:
        if self.departures == "weighted":
            if samples is None or buckets is None:
                raise InputError(
                    f"policy '{self.policy}': departures=weighted needs survival curves, which its predictor has not; "
                    "use departures=cut, or the predictor survival, memorised or oracle"
                )
            return expected_loads(loads.size, self.horizon, self.growth, active, samples, buckets)
        from lbopt.kernels.routing.projection import Leaving, project

        projected = np.empty((loads.size, self.horizon + 1), dtype=np.int64)
        leaving = Leaving(active.worker, active.size, remaining, outlives)
        fractional, literal = self.departures == "fractional", self.boundary == "literal"
        project(loads, running, leaving, self.growth, fractional, literal, projected)
        return projected

    def _foreseen(self, observation: Observation) -> tuple[ActiveRequests, Forecast]:
        """Return the running requests and their forecast, or say what is missing."""
        active, forecast = observation.active, observation.forecast
        if active is None or forecast is None:
            raise InputError(
                f"policy '{self.policy}' looks ahead, and this state does not list its running requests; sample "
                "states with this version, or use horizon=0"
            )
        if forecast.horizon != self.horizon:
            raise InputError(
                f"policy '{self.policy}' looks {self.horizon} steps ahead but was given a forecast of "
                f"{forecast.horizon}"
            )
        if forecast.remaining.shape != active.worker.shape or forecast.waiting.shape != observation.sizes.shape:
            raise InputError(
                f"policy '{self.policy}' was given {forecast.remaining.size} forecasts for {active.worker.size} "
                f"running requests and {forecast.waiting.size} for {observation.sizes.size} waiting ones"
            )
        return active, forecast


def expected_loads(
    num_workers: int,
    horizon: int,
    growth: int,
    active: ActiveRequests,
    samples: Samples,
    buckets: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return what the workers will hold over the window in expectation, in whole tokens, int64 (G, H+1).

    A request of age a and size w counts at step h as (w + growth h) S(a + h) / S(a), S(t) being the share of its
    samples that are longer than t. One that is older than every sample counts whole at every step.

    Parameters
    ----------
    growth
        Tokens that a running request gains a step.
    buckets
        int64 (A,), bucket of samples of each request.
    """
    from lbopt.kernels.routing.fast_phi.projection import count_beyond, project

    end = int(samples.starts[1])
    counts = np.empty(int(samples.outputs[end - 1]) if end else 0)
    count_beyond(samples.outputs, 0, end, counts)
    entries = Entries(active.worker, active.size, np.ones_like(active.worker), active.generated, buckets)
    load = np.empty((horizon + 1, num_workers))
    project(samples, counts, np.empty(0), np.arange(horizon + 1), growth, True, entries, load)
    return np.ascontiguousarray(np.rint(load.T).astype(np.int64))
