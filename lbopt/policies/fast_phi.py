"""fast-phi: each request goes where it is expected to lift the straggler least over its whole life.

J. Li, *The EP Barrier Tax* (2026); see `lbopt.kernels.routing.fast_phi`. What the source leaves open is an option.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.policies.observation import ActiveRequests, Observation
from lbopt.policies.policy import LARGEST_OPTION, Admission, checked_admission
from lbopt.policies.projected_fleet import ProjectedFleet, Quadrature
from lbopt.predictors import Forecast, Foresight, check_predictor
from lbopt.predictors.predictor import LONGEST_HORIZON

_CHOICES = {
    "rule": ("published", "product"),
    "ends": ("plain", "corrected"),
    "weights": ("survival", "geometric"),
    "drift_scale": ("none", "mean"),
    "ties": ("load", "index"),
    "beyond": ("stays", "leaves"),
}


@dataclass(frozen=True, slots=True)
class FastPhi:
    """The rule of least expected overflow.

    Parameters
    ----------
    nodes
        K, steps that are looked at; "all" or 0 = every step, which is exact.
    rule
        "published": percentiles of the outputs with trapezoid weights; "product": nodes of density sqrt(S) with weights
        that sum the survival exactly.
    percentile
        Last percentile of the published nodes; 100 in our reading, the source does not say.
    ends
        "plain": the trapezoid counts its ends half; "corrected": in full.
    weights
        "survival" of the samples, or "geometric": gamma**h in its place, in the weights and in the projection.
    gamma
        For geometric weights, above 0 and at most 1.
    drift
        lambda of the drift term, per token; 0 = without.
    drift_scale
        "none": as it is; "mean": divided by the mean expected load of the step, which frees it of units.
    ties
        Of workers of equal cost, the lightest ("load") or the one of lowest number ("index").
    longest
        Last step that counts; "mean" = the mean output; None = no limit but the longest output.
    growth
        Whether requests grow by a token a step.
    beyond
        Whether a request older than all samples "stays" for good or "leaves" after this step.
    admission
        "immediate": to any worker, one by one; "pooled": in order of arrival, to workers with a free slot.
    predictor
        Whose samples; it must have some.
    """

    nodes: int | str = "5"
    rule: str = "published"
    percentile: float = 100.0
    ends: str = "plain"
    weights: str = "survival"
    gamma: float = 0.9
    drift: float = 0.0
    drift_scale: str | None = "none"
    ties: str = "load"
    longest: int | str | None = "none"
    growth: bool = True
    beyond: str = "stays"
    admission: Admission = "immediate"
    predictor: str = "survival"
    fleet: ProjectedFleet = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        checked_admission("fast-phi", self.admission)
        self._set("nodes", _number("nodes", self.nodes, "all", 0, "1 or more, or all"))
        self._set("longest", _number("longest", self.longest, "none", 0, "0 or more steps, mean, or none", "mean"))
        self._set("drift_scale", self.drift_scale or "none")
        for option, allowed in _CHOICES.items():
            if getattr(self, option) not in allowed:
                raise _wrong(option, f"'{getattr(self, option)}'", " or ".join(allowed))
        for option, fits, expected in (
            ("percentile", lambda value: 0 < value <= 100, "above 0, at most 100"),
            ("gamma", lambda value: 0 < value <= 1, "above 0, at most 1"),
            ("drift", lambda value: 0 <= value <= LARGEST_OPTION, f"0 to {LARGEST_OPTION}"),
            ("growth", lambda value: value in (True, False), "yes or no"),
        ):
            value = getattr(self, option)
            if value is None or not fits(value):
                raise _wrong(option, value, expected)
        if self.weights == "survival" and self.gamma != _defaults()["gamma"]:
            raise InputError(
                f"policy 'fast-phi': gamma is {self.gamma}, but weights are survival; add weights=geometric"
            )
        if not isinstance(self.predictor, str):
            raise _wrong("predictor", self.predictor, "survival, memorised or oracle")
        check_predictor(self.predictor)
        self._set(
            "fleet",
            ProjectedFleet(
                self.quadrature,
                growth=self.growth,
                stays=self.beyond == "stays",
                drift=float(self.drift),
                by_mean=self.drift_scale == "mean",
                ties_by_load=self.ties == "load",
            ),
        )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def quadrature(self) -> Quadrature:
        """Which steps are looked at, and how much each counts."""
        return Quadrature(
            nodes=self.nodes,  # type: ignore[arg-type]  # a number from __post_init__ on, as is `longest`
            product=self.rule == "product",
            percentile=float(self.percentile),
            corrected=self.ends == "corrected",
            gamma=float(self.gamma) if self.weights == "geometric" else None,
            longest=self.longest,  # type: ignore[arg-type]
        )

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        changed = [
            f"{option}={_shown(option, getattr(self, option))}"
            for option, usual in _defaults().items()
            if _shown(option, getattr(self, option)) != str(_shown(option, usual))
        ]
        return ":".join(["fast-phi", *([",".join(changed)] if changed else [])])

    @property
    def foresight(self) -> Foresight:
        """Samples and ages are all it wants: the forecasts made of them are left as they first were."""
        return Foresight(horizon=1, predictor=self.predictor, refresh=LARGEST_OPTION, floor=LONGEST_HORIZON)

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Return the worker of each request in turn, int64 (n,), -1 from where on no slot is free.

        Raises
        ------
        InputError
            Where the observation lists no running requests, or the predictor goes by something else than samples.
        """
        active, forecast = self._known(observation)
        assert forecast.samples is not None and forecast.waiting_buckets is not None
        workers = np.full(observation.sizes.size, -1, dtype=np.int64)
        if workers.size == 0:
            return workers
        self.fleet.see(observation, active, forecast, forecast.samples)
        free = observation.free_slots.copy() if self.admission == "pooled" else np.empty(0, dtype=np.int64)
        for i, (size, bucket) in enumerate(zip(observation.sizes, forecast.waiting_buckets, strict=True)):
            workers[i] = self.fleet.place(int(size), int(bucket), free)
            if workers[i] < 0:
                break
        return workers

    def costs(self, observation: Observation) -> NDArray[np.float64]:
        """Return the cost of the first request on each worker, float64 (G,), tokens times steps."""
        active, forecast = self._known(observation)
        assert forecast.samples is not None and forecast.waiting_buckets is not None
        self.fleet.see(observation, active, forecast, forecast.samples)
        return self.fleet.costs(int(observation.sizes[0]), int(forecast.waiting_buckets[0]))

    def _known(self, observation: Observation) -> tuple[ActiveRequests, Forecast]:
        active, forecast = observation.active, observation.forecast
        if active is None or forecast is None:
            raise InputError(
                "policy 'fast-phi' goes by the age of every running request, and this observation lists none; "
                "run it in the simulator, which does"
            )
        if forecast.samples is None:
            raise InputError(
                f"policy 'fast-phi' needs a predictor that goes by samples of output lengths, and "
                f"'{self.predictor}' does not; take predictor=survival, memorised or oracle"
            )
        return active, forecast


def _defaults() -> dict[str, Any]:
    return {option.name: option.default for option in fields(FastPhi) if option.init}


def _wrong(option: str, value: Any, expected: str) -> InputError:
    return InputError(f"policy 'fast-phi': {option} is {value}; expected {expected}")


def _shown(option: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return "all" if option == "nodes" and value == 0 else str(value)


def _number(option: str, value: Any, nothing: str, least: int, expected: str, word: str = "") -> int | str | None:
    """Return the whole number that `value` is or spells; `nothing` stands for 0 nodes or no limit."""
    if value == nothing or (value is None and nothing == "none"):
        return 0 if nothing == "all" else None
    if word and value == word:
        return word
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise _wrong(option, f"'{value}'", expected) from None
    if not least <= number <= LARGEST_OPTION:
        raise _wrong(option, number, expected)
    return number
