"""What a gap study is asked to do: everything that decides its numbers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from lbopt.exceptions import InputError
from lbopt.policies import Policy, look_ahead, make_policy
from lbopt.policies.decide import refuse_unknowing
from lbopt.predictors import check_predictor
from lbopt.predictors.predictor import LONGEST_HORIZON
from lbopt.simulator import NEW
from lbopt.solvers import check_solver
from lbopt.solvers.front import check_stops
from lbopt.studies import training
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.gap.decisions import Budget
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
class GapConfig(Configuration):
    """Configuration of a gap study.

    States are sampled under each of the behaviours, or read (`problems`), and each is solved by `solver` within
    `time_limit` and `effort`; with `effort` and without `time_limit` all machines end alike. Over a window of `horizon`
    steps states are judged as an oracle sees it, and `new` says what is assumed of waiting requests there (see
    `FrozenRequests`); rules that look ahead look so far, by `predictor`, where they do not say otherwise. States come
    from the first seed; a file is resampled for each seed of the long runs, its arrival times kept in order.
    """

    what = "a gap study"

    scenario: Scenario = field(default_factory=Scenario)
    behaviours: Annotated[
        tuple[str, ...],
        Option("Policy under which states are sampled; may be given again.", key="behaviour"),
    ] = DEFAULT_BEHAVIOURS
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Policy to judge, e.g. `br-0:age_bound=50`; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
            shown="all rules",
        ),
    ] = DEFAULT_POLICIES
    baseline: Annotated[
        str | None,
        Option(
            "Policy that differences are taken to, such as the rule in use.",
            names=("--baseline", "--rule"),
            key="baseline",
            shown="the first",
        ),
    ] = None
    states: Annotated[int, Option("States per behaviour.", first=True, low=1)] = 50
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0
    seeds: Annotated[int, Option("Number of seeds of the long runs.", low=1)] = 1
    solver: Annotated[str, Option("exact, auto, brute-force, cp-sat, highs or pulp.")] = "exact"
    time_limit: Annotated[float | None, Option("Seconds per state.", first=True)] = 10.0
    effort: Annotated[
        int | None,
        Option(
            "Units of work per state, about a microsecond each: a limit alike on every machine.",
            later="written",
        ),
    ] = None
    problems: Annotated[str | None, Option("Score frozen problems (steps.jsonl) instead of sampling.")] = None
    long_runs: Annotated[bool, Option("Also run every policy over the requests.")] = True
    horizon: Annotated[
        int,
        Option(
            "Judge over a window of so many steps; rules look so far ahead.",
            names=("--horizon", "-H"),
            first=True,
            low=0,
            high=LONGEST_HORIZON,
        ),
    ] = 0
    new: Annotated[str, Option("Waiting requests in that window: **survives** it, or **ends**.", among=NEW)] = (
        "survives"
    )
    predictor: Annotated[
        str | None,
        Option("What rules that look ahead go by, where they do not say: survival, oracle, ..."),
    ] = None

    def check(self) -> None:
        """Refuse states of workers in detail, and a solver or predictor that cannot be."""
        if self.scenario.detail is not None and self.problems is None:
            raise InputError(
                f"detail is '{self.scenario.detail}': states to be solved are sampled from workers without it, since a "
                "request that may be pre-empted or restarted is no part of the step's problem; leave detail out"
            )
        if self.baseline is not None and self.baseline not in self.policies:
            object.__setattr__(self, "policies", (self.baseline, *self.policies))
        if self.predictor is not None:
            check_predictor(self.predictor)
        check_solver(self.solver, self.time_limit)
        check_stops(self.solver, effort=self.effort)

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


def with_training(config: GapConfig) -> GapConfig:
    """Return the configuration in which the first part of a file is kept for predictors, where that is needed."""
    policies = [config.build(spec) for spec in (*config.policies, *config.behaviours)]
    return replace(config, scenario=training.with_training(config.scenario, policies, num_seeds=config.seeds))
