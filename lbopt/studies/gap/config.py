"""What a gap study is asked to do: everything that decides its numbers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from lbopt.exceptions import InputError
from lbopt.model import Fleet
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes
from lbopt.solvers import check_solver
from lbopt.studies.requests import RequestSource

DEFAULT_POLICIES = (
    "fcfs",
    "round-robin",
    "random",
    "power-of-two",
    "jsq",
    "jsq-load",
    "vllm",
    "max-min",
    "max-min:scope=pool",
    "br-0",
)
DEFAULT_BEHAVIOURS = ("fcfs", "br-0")
ARRIVALS = ("closed", "trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class GapConfig:
    """Configuration of a gap study.

    Parameters
    ----------
    requests
        Which requests.
    num_workers, slots_per_worker, kv_capacity
        The fleet.
    arrivals, reveal_target, load
        "closed" with a revelation target (None = 4 * G), or "trace" with a share of saturation (None = as they are).
    event_order
        Where loads are read in the long runs.
    behaviours
        Policies under which states are sampled; also ``replay:FILE``.
    policies
        Policies that decide every state and are run over the requests.
    baseline
        The policy that differences are taken to.
    states
        States per behaviour.
    seed, seeds
        First seed and number of seeds of the long runs; states come from the first. A file is resampled for each seed,
        its arrival times kept in order.
    solver, time_limit
        Handed to `lbopt.solve` for each state.
    problems
        A steps.jsonl file with frozen problems; replaces sampling.
    long_runs
        Whether to run the policies over the requests at all.
    """

    requests: RequestSource = field(default_factory=RequestSource)
    num_workers: int = 8
    slots_per_worker: int = 72
    kv_capacity: int | None = None
    arrivals: str = "closed"
    reveal_target: int | None = None
    load: float | None = None
    event_order: str = "paper"
    behaviours: tuple[str, ...] = DEFAULT_BEHAVIOURS
    policies: tuple[str, ...] = DEFAULT_POLICIES
    baseline: str | None = None
    states: int = 50
    seed: int = 0
    seeds: int = 1
    solver: str = "auto"
    time_limit: float | None = 10.0
    problems: str | None = None
    long_runs: bool = True

    def __post_init__(self) -> None:
        if self.arrivals not in ARRIVALS:
            raise InputError(f"arrivals '{self.arrivals}' is unknown; expected {' or '.join(ARRIVALS)}")
        if self.arrivals == "closed" and self.load is not None:
            raise InputError("load has a meaning only for --arrivals trace; a closed loop is always saturated")
        if self.arrivals == "trace" and self.reveal_target is not None:
            raise InputError("reveal_target has a meaning only for --arrivals closed")
        for name in ("states", "seeds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        for name in ("policies", "behaviours"):
            if not getattr(self, name):
                raise InputError(f"no {name} given; expected at least one")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")
        check_solver(self.solver, self.time_limit)
        _ = self.setting  # refuses a fleet, load or event order that cannot be

    @property
    def setting(self) -> SimulationSetting:
        """The simulation's rules."""
        return SimulationSetting(
            fleet=Fleet(self.num_workers, self.slots_per_worker, self.kv_capacity),
            arrivals=ClosedLoop(self.reveal_target) if self.arrivals == "closed" else TraceTimes(self.load),
            event_order=self.event_order,  # type: ignore[arg-type]  # checked by SimulationSetting
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {
            "requests": self.requests.describe(),
            "policies": list(self.policies),
            "behaviours": list(self.behaviours),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> GapConfig:
        """Rebuild a configuration."""
        try:
            given: dict[str, Any] = dict(data)
            given["requests"] = RequestSource(**given["requests"])
            given["policies"] = tuple(given["policies"])
            given["behaviours"] = tuple(given["behaviours"])
            return cls(**given)
        except (TypeError, KeyError, ValueError) as error:
            raise InputError(f"{source} is not a gap configuration of this version: {error}") from None
