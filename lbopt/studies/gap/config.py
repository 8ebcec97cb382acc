"""What a gap study is asked to do: everything that decides its numbers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.policies import Policy, look_ahead, make_policy
from lbopt.policies.decide import refuse_unknowing
from lbopt.predictors import check_predictor
from lbopt.predictors.foresight import LONGEST_HORIZON
from lbopt.simulator import NEW
from lbopt.solvers import check_solver
from lbopt.solvers.arguments import check_stops
from lbopt.studies import training
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.gap.optima import Budget
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
    solver, time_limit, effort
        Handed to `lbopt.solve` for each state. With `effort` and without `time_limit` all machines end alike.
    problems
        A steps.jsonl file with frozen problems; replaces sampling.
    long_runs
        Whether to run the policies over the requests at all.
    horizon
        H: states are judged over the window h = 0..H as an oracle sees it, and policies that look ahead look so far
        where they do not say otherwise. 0 judges the present step alone.
    new
        What is assumed of waiting requests in such a window: "survives" or "ends", see `FrozenRequests`.
    predictor
        What policies that look ahead go by where they do not say otherwise.
    """

    scenario: Scenario = field(default_factory=Scenario)
    behaviours: Annotated[
        tuple[str, ...],
        Option("Policy under which states are sampled; may be given again.", key="behaviour", panel="Policies"),
    ] = DEFAULT_BEHAVIOURS
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Policy to judge, e.g. `br-0:age_bound=50`; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            panel="Policies",
            first=True,
            shown="all rules",
        ),
    ] = DEFAULT_POLICIES
    baseline: Annotated[
        str | None, Option("Policy that differences are taken to.", panel="Policies", shown="the first")
    ] = None
    states: Annotated[int, Option("States per behaviour.", first=True)] = 50
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    seeds: Annotated[int, Option("Number of seeds of the long runs.")] = 1
    solver: Annotated[str, Option("exact, auto, brute-force, cp-sat, highs or pulp.", panel="Optimum")] = "exact"
    time_limit: Annotated[float | None, Option("Seconds per state.", panel="Optimum", first=True)] = 10.0
    effort: Annotated[
        int | None,
        Option("Units of work per state, about a microsecond each: a limit alike on every machine.", panel="Optimum"),
    ] = None
    problems: Annotated[str | None, Option("Score frozen problems (steps.jsonl) instead of sampling.")] = None
    long_runs: Annotated[bool, Option("Also run every policy over the requests.")] = True
    horizon: Annotated[
        int,
        Option(
            "Judge over a window of so many steps; rules look so far ahead.",
            names=("--horizon", "-H"),
            panel="Policies",
            first=True,
        ),
    ] = 0
    new: Annotated[str, Option("Waiting requests in that window: **survives** it, or **ends**.", panel="Optimum")] = (
        "survives"
    )
    predictor: Annotated[
        str | None,
        Option("What rules that look ahead go by, where they do not say: survival, oracle, ...", panel="Policies"),
    ] = None

    def __post_init__(self) -> None:
        if self.scenario.detail is not None and self.problems is None:
            raise InputError(
                f"detail is '{self.scenario.detail}': states to be solved are sampled from workers without it, since a "
                "request that may be pre-empted or restarted is no part of the step's problem; leave detail out"
            )
        for name in ("states", "seeds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        for name in ("policies", "behaviours"):
            if not getattr(self, name):
                raise InputError(f"no {name} given; expected at least one")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")
        if not 0 <= self.horizon <= LONGEST_HORIZON:
            raise InputError(f"horizon is {self.horizon}; expected 0 to {LONGEST_HORIZON} steps")
        if self.new not in NEW:
            raise InputError(f"new requests '{self.new}' are unknown; expected {' or '.join(NEW)}")
        if self.predictor is not None:
            check_predictor(self.predictor)
        check_solver(self.solver, self.time_limit)
        check_stops(self.solver, self.effort, None, None, None, None)

    def build(self, spec: str) -> Policy:
        """Build the policy that `spec` names, with this study's horizon and predictor where it names none."""
        policy = make_policy(spec, look_ahead(self.horizon or None, self.predictor))
        refuse_unknowing(policy)  # before states are sampled for it
        return policy

    @property
    def all_seeds(self) -> range:
        """The seeds of the long runs."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def run_over_time(self) -> tuple[str, ...]:
        """What runs over whole traces: the policies, and every log under which states are sampled."""
        logs = [spec for spec in self.behaviours if spec.startswith("replay:") and spec not in self.policies]
        return (*self.policies, *(logs if self.problems is None else ()))

    @property
    def budget(self) -> Budget:
        """By what each state is solved."""
        return Budget(self.solver, self.time_limit, self.seed, self.effort)

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
        parts = {"scenario": Scenario.from_dict}
        return from_plain(cls, data, what="a gap study", source=source, parts=parts, later={"effort": None})


def with_training(config: GapConfig) -> GapConfig:
    """Return the configuration in which the first part of a file is kept for predictors, where that is needed."""
    policies = [config.build(spec) for spec in (*config.policies, *config.behaviours)]
    return replace(config, scenario=training.with_training(config.scenario, policies, num_seeds=config.seeds))
