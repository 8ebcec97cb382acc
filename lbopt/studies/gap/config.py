"""What a gap study is asked to do: everything that decides its numbers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from lbopt.exceptions import InputError
from lbopt.solvers import check_solver
from lbopt.studies.scenario import Scenario

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GapConfig:
    """Configuration of a gap study.

    Parameters
    ----------
    scenario
        Requests, fleet, arrivals, event order.
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

    scenario: Scenario = field(default_factory=Scenario)
    behaviours: tuple[str, ...] = DEFAULT_BEHAVIOURS
    policies: tuple[str, ...] = DEFAULT_POLICIES
    baseline: str | None = None
    states: int = 50
    seed: int = 0
    seeds: int = 1
    solver: str = "exact"
    time_limit: float | None = 10.0
    problems: str | None = None
    long_runs: bool = True

    def __post_init__(self) -> None:
        for name in ("states", "seeds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        for name in ("policies", "behaviours"):
            if not getattr(self, name):
                raise InputError(f"no {name} given; expected at least one")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")
        check_solver(self.solver, self.time_limit)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {
            "scenario": self.scenario.to_dict(),
            "policies": list(self.policies),
            "behaviours": list(self.behaviours),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> GapConfig:
        """Rebuild a configuration."""
        try:
            given: dict[str, Any] = dict(data)
            given["scenario"] = Scenario.from_dict(given["scenario"])
            given["policies"] = tuple(given["policies"])
            given["behaviours"] = tuple(given["behaviours"])
            return cls(**given)
        except (TypeError, KeyError, ValueError) as error:
            raise InputError(f"{source} is not a gap configuration of this version: {error}") from None
