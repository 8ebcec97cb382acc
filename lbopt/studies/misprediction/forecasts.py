"""The forecasts that a rule is given: the truth, the truth with an error, and what is learnt from other requests.

An error is drawn anew for each seed of the long runs, and for each frozen state: by the seed of the oracle, which is
the same for all strengths, so a stronger error is the same error made larger. "nothing ends" believes that every output
is a thousand times as long: the rule then plans over the window as if every request stayed. It is where a shut gate
leads to.

Three things stand beside a rule: br-0; "no window", the rule itself with horizon 0, which has the same options in all
else and so is the fair one (with alpha = 1, beta = G and its usual options br-h is br-0 then); and the exact forecast.

Learnt forecasts are made anew every ten tokens, the oracle's at every one, and in between a forecast falls by a step a
token, also one of "outlives the window" (see `Foresight`). So what they cost is in part the price of their age. With
"fresh" they are made anew at every token too, with "held" that one stays; "exact, stale" is the truth at their pace.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from lbopt.exceptions import InputError
from lbopt.instances import families
from lbopt.policies import Policy, foresight_of, make_policy
from lbopt.policies.bf_io import BfIo
from lbopt.policies.br_h import BrH
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.gap import GapConfig
from lbopt.studies.scenario import Scenario
from lbopt.studies.training import DEFAULT_SHARE

#: Rules whose forecast can be exchanged.
LookAhead = BrH | BfIo

DEFAULT_POLICIES = ("br-h",)
DEFAULT_NOISE = (0.1, 0.3, 1.0, 3.0)
DEFAULT_BIAS = (0.25, 0.5, 2.0, 4.0)
DEFAULT_SHUFFLED = (0.25, 0.5, 1.0)

#: Beyond it, "nothing ends" cannot be told by a believed output a thousand times too long.
LONGEST_HORIZON = 500
#: The oracle's seeds end here.
_SEEDS_END = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class MispredictionConfig(Configuration):
    """Configuration of a misprediction study.

    States come from the first seed. Of a file, the first fifth is kept for learning where it does not say otherwise.
    `noise`, `bias` and `shuffled` are the errors of the oracle, one row each, see `lbopt.predictors.rules`.
    """

    what = "wrong forecasts"

    scenario: Scenario = field(default_factory=Scenario)
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule that looks ahead, without its predictor, e.g. `br-h:gamma=0.6`; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
        ),
    ] = DEFAULT_POLICIES
    horizon: Annotated[
        int,
        Option(
            "Steps that rules look ahead, at least 1.",
            names=("--horizon", "-H"),
            first=True,
            low=1,
            high=LONGEST_HORIZON,
            expected=f"1 to {LONGEST_HORIZON} steps to look ahead",
        ),
    ] = 20
    noise: Annotated[
        tuple[float, ...],
        Option(
            "Spread of the logarithm of believed outputs; may be given again.",
            low=0,
            high=10,
            expected="a standard deviation of the logarithm, 0 to 10",
            kept="once",
            empty=True,
        ),
    ] = DEFAULT_NOISE
    bias: Annotated[
        tuple[float, ...],
        Option(
            "Factor on believed outputs; may be given again.",
            low=0.001,
            high=1000,
            expected="a factor, 0.001 to 1000",
            kept="once",
            empty=True,
        ),
    ] = DEFAULT_BIAS
    shuffled: Annotated[
        tuple[float, ...],
        Option(
            "Share of outputs exchanged among requests; may be given again.",
            low=0,
            high=1,
            expected="a share of the requests, 0 to 1",
            kept="once",
            empty=True,
        ),
    ] = DEFAULT_SHUFFLED
    other_trace: Annotated[
        str | None,
        Option("File or family on which predictors are also trained.", shown="the other family"),
    ] = None
    behaviour: Annotated[str, Option("Policy under which states are sampled.")] = "br-0"
    states: Annotated[int, Option("How many frozen states.", first=True)] = 50
    new: Annotated[str, Option("Waiting requests in the window of a state: **survives** it, or **ends**.")] = "survives"
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    seeds: Annotated[int, Option("Number of seeds of the long runs.", first=True)] = 3
    time_limit: Annotated[float | None, Option("Seconds per state.", first=True)] = 2.0

    def check(self) -> None:
        """Refuse what the rules, the sampling or the oracle refuse, and keep requests to learn from."""
        if self.seed + self.seeds > _SEEDS_END:
            raise InputError(f"seed is {self.seed}; expected less than 2**31 for the last of {self.seeds} seeds")
        source = self.scenario.requests
        if self.other == source.trace:
            raise InputError(f"the other trace is '{self.other}', which is the trace itself; name another one")
        if not source.is_family and source.train_on is None and source.train_share is None:
            learning = replace(source, train_share=DEFAULT_SHARE)
            object.__setattr__(self, "scenario", replace(self.scenario, requests=learning))
        self.gap.build(self.behaviour)  # also refuses states, seeds and a time limit that cannot be
        _ = self.rules

    @property
    def other(self) -> str:
        """The other trace."""
        return self.other_trace or next(name for name in families.NAMES if name != self.scenario.requests.trace)

    @property
    def other_name(self) -> str:
        """What tables call the other trace."""
        return self.other if self.other in families.NAMES else Path(self.other).stem

    @property
    def gap(self) -> GapConfig:
        """How states are sampled and solved, and long runs made: as a gap study does it."""
        return GapConfig(
            scenario=self.scenario,
            behaviours=(self.behaviour,),
            policies=self.policies,
            states=self.states,
            seed=self.seed,
            seeds=self.seeds,
            time_limit=self.time_limit,
            horizon=self.horizon,
            new=self.new,
        )

    @property
    def rules(self) -> list[LookAhead]:
        """The policies, built.

        Raises
        ------
        InputError
            Where one does not look ahead, names a predictor, or is named twice.
        """
        rules: list[LookAhead] = []
        for spec in self.policies:
            rule = self.gap.build(spec)
            if not isinstance(rule, BrH | BfIo) or foresight_of(rule) is None:
                raise InputError(
                    f"policy '{spec}' does not look ahead, so no forecast can mislead it; "
                    "use br-h or bf-io with a horizon of at least 1"
                )
            if rule.horizon > LONGEST_HORIZON:
                raise InputError(
                    f"policy '{spec}' looks {rule.horizon} steps ahead; expected at most {LONGEST_HORIZON}"
                )
            named = {part.partition("=")[0] for part in spec.partition(":")[2].split(",")}
            if "predictor" in named:
                raise InputError(
                    f"policy '{spec}' names its own predictor, and the study gives it one after the other; "
                    "leave predictor= out"
                )
            if rule.name in (known.name for known in rules):
                raise InputError(f"policy '{rule.name}' is named twice")
            rules.append(rule)
        return rules


#: The rule that does not look, beside which every other is put.
MYOPIC = "br-0"
#: The rule itself with horizon 0, and with the truth.
NO_WINDOW, EXACT = "no window", "exact"

Kind = Literal["no window", "exact", "stale", "noise", "bias", "shuffled", "nothing ends", "survival", "memorised"]

_NOTHING_ENDS = 1000.0
#: Tokens between two refreshes of a forecast that is stale, the pace of learnt ones, and of one that is fresh.
_STALE, _FRESH = 10, 1


@dataclass(frozen=True, slots=True)
class ForecastVariant:
    """One way to be right or wrong.

    Parameters
    ----------
    name
        What tables call it.
    kind
        Which family of forecasts.
    predictor
        A text for `make_predictor`, without a seed.
    strength
        Of the error; None where it has no number.
    other
        Whether the predictor learns from the other trace.
    gate
        The confidence gate; None = the policy's own.
    refresh
        Tokens between two refreshes; None = the policy's own, or else the predictor's.
    hold_anchor
        Whether "outlives the window" stays between refreshes; None = the policy's own.
    """

    name: str
    kind: Kind
    predictor: str
    strength: float | None = None
    other: bool = False
    gate: float | None = None
    refresh: int | None = None
    hold_anchor: bool | None = None

    @property
    def learns(self) -> bool:
        """Whether it learns from other requests."""
        return self.kind in ("survival", "memorised")

    @property
    def of_runs_alone(self) -> bool:
        """Whether it differs from another variant by its age alone: in a frozen state all forecasts are new."""
        return self.refresh is not None or self.hold_anchor is not None


@dataclass(frozen=True, slots=True)
class Case:
    """A rule with a forecast; the rule that does not look has none."""

    rule: LookAhead | None
    variant: ForecastVariant | None

    @property
    def policy(self) -> str:
        """The rule's name, without its predictor."""
        return MYOPIC if self.rule is None else self.rule.name

    @property
    def forecast(self) -> str:
        """The forecast's name."""
        return MYOPIC if self.variant is None else self.variant.name

    @property
    def name(self) -> str:
        """Both, one name for each case of a study."""
        return self.policy if self.variant is None else f"{self.policy} | {self.variant.name}"

    @property
    def gate(self) -> float | None:
        """The confidence gate in force."""
        if self.rule is None or self.variant is None or self.variant.kind == "no window":
            return None
        return self.rule.gate if self.variant.gate is None else self.variant.gate

    @property
    def refresh(self) -> int | None:
        """Tokens between two refreshes where rule or variant say so; None = the predictor's own."""
        if self.rule is None or self.variant is None or self.variant.kind == "no window":
            return None
        return self.rule.refresh if self.variant.refresh is None else self.variant.refresh

    def build(self, seed: int) -> Policy:
        """Return the policy, its error drawn by `seed`."""
        if self.rule is None or self.variant is None:
            return make_policy(MYOPIC)
        if self.variant.kind == "no window":
            return replace(self.rule, horizon=0)
        predictor = self.variant.predictor
        if self.variant.kind in ("noise", "shuffled"):
            predictor += f";seed={seed}"
        assert self.gate is not None
        held = self.rule.hold_anchor if self.variant.hold_anchor is None else self.variant.hold_anchor
        return replace(self.rule, predictor=predictor, gate=self.gate, refresh=self.refresh, hold_anchor=held)


def variants_of(config: MispredictionConfig) -> list[ForecastVariant]:
    """Return every forecast of the study, none at all first."""
    found = [
        ForecastVariant(NO_WINDOW, "no window", ""),
        ForecastVariant(EXACT, "exact", "oracle"),
        ForecastVariant("exact, stale", "stale", "oracle", refresh=_STALE),
    ]
    kinds: tuple[tuple[Kind, tuple[float, ...]], ...] = (
        ("noise", config.noise),
        ("bias", config.bias),
        ("shuffled", config.shuffled),
    )
    found += [
        ForecastVariant(f"{kind} {value:.12g}", kind, f"oracle:{kind}={value!r}", strength=value)
        for kind, values in kinds
        for value in values
    ]
    found.append(ForecastVariant("nothing ends", "nothing ends", f"oracle:bias={_NOTHING_ENDS!r}"))
    learnt: tuple[Kind, ...] = ("survival", "memorised")
    for other in (False, True):
        for kind in learnt:
            name = kind + (f" of {config.other_name}" if other else "")
            found += [
                ForecastVariant(name, kind, kind, other=other),
                ForecastVariant(f"{name}, no gate", kind, kind, other=other, gate=0.0),
                ForecastVariant(f"{name}, fresh", kind, kind, other=other, refresh=_FRESH),
                ForecastVariant(f"{name}, held", kind, kind, other=other, hold_anchor=True),
            ]
    return found


def cases_of(config: MispredictionConfig) -> list[Case]:
    """Return the rule that does not look, then each rule with each forecast."""
    return [Case(None, None), *(Case(rule, variant) for rule in config.rules for variant in variants_of(config))]
