"""The projected loads of an observation: what running requests will hold over the window, by their forecasts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.policies.observation import ActiveRequests, Observation
from lbopt.predictors import Forecast

#: "cut": a request counts while h is below its forecast; "fractional": its last step counts in part; "weighted": it
#: counts at every h by the chance that it still runs, which needs a predictor that knows survival curves.
DEPARTURES = ("cut", "fractional", "weighted")
BOUNDARIES = ("alive", "literal")


def check_projection(name: str, growth: int, boundary: str) -> None:
    """Refuse a growth or boundary that cannot be."""
    if growth is None or not 0 <= growth <= 1_000_000:
        raise InputError(f"policy '{name}': growth is {growth}; expected 0 to 1000000 tokens a step, usually 1 or 0")
    if boundary not in BOUNDARIES:
        raise InputError(f"policy '{name}': boundary is '{boundary}'; expected {' or '.join(BOUNDARIES)}")


def projected_loads(
    name: str, observation: Observation, horizon: int, growth: int, departures: str = "cut", literal: bool = False
) -> NDArray[np.int64]:
    """Return the projected loads, int64 (G, H+1) in tokens, for policy `name`.

    Raises
    ------
    InputError
        Where the observation does not list running requests with a forecast of this window.
    """
    if horizon == 0:
        return observation.loads[:, None].copy()
    active, forecast = foreseen(name, observation, horizon)
    projected = np.empty((observation.loads.size, horizon + 1), dtype=np.int64)
    if departures == "weighted":
        from lbopt.kernels.routing.weighted_projection import project_weighted

        if forecast.samples is None or forecast.active_buckets is None:
            raise InputError(
                f"policy '{name}': departures=weighted needs survival curves, which its predictor has not; "
                "use departures=cut, or the predictor survival, memorised or oracle"
            )
        project_weighted(
            active.worker,
            active.size,
            active.generated,
            forecast.samples,
            forecast.active_buckets,
            growth,
            projected,
        )
        return projected
    from lbopt.kernels.routing.projection import project

    project(
        observation.loads,
        observation.running,
        active.worker,
        active.size,
        forecast.remaining,
        forecast.outlives,
        growth,
        departures == "fractional",
        literal,
        projected,
    )
    return projected


def waiting_profiles(
    name: str, observation: Observation, horizon: int, growth: int, literal: bool = False
) -> NDArray[np.int64]:
    """Return what each waiting request would hold at h = 0..H if it started now, int64 (n, H+1) in tokens."""
    steps = np.arange(horizon + 1)
    held: NDArray[np.int64] = observation.sizes[:, None] + growth * steps
    if horizon == 0:
        return held
    forecast = foreseen(name, observation, horizon)[1]
    alive = (steps < forecast.waiting[:, None]) | (forecast.waiting_outlives & (not literal))[:, None]
    return held * alive


def foreseen(name: str, observation: Observation, horizon: int) -> tuple[ActiveRequests, Forecast]:
    """Return the running requests and their forecast, or say what is missing."""
    active, forecast = observation.active, observation.forecast
    if active is None or forecast is None:
        raise InputError(
            f"policy '{name}' looks ahead, and this state does not list its running requests; sample states with "
            "this version, or use horizon=0"
        )
    if forecast.horizon != horizon:
        raise InputError(f"policy '{name}' looks {horizon} steps ahead but was given a forecast of {forecast.horizon}")
    if forecast.remaining.shape != active.worker.shape:
        raise InputError(
            f"policy '{name}' was given {forecast.remaining.size} forecasts for {active.worker.size} running requests"
        )
    return active, forecast
