"""What a misprediction study is asked to do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.instances import families
from lbopt.policies import foresight_of
from lbopt.policies.bf_io import BfIo
from lbopt.policies.br_h import BrH
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.gap import GapConfig
from lbopt.studies.scenario import Scenario
from lbopt.studies.training import DEFAULT_SHARE

#: Rules whose forecast can be exchanged.
LookAhead = BrH | BfIo

DEFAULT_POLICIES = ("br-h",)
DEFAULT_NOISE = (0.1, 0.3, 1.0, 3.0)
DEFAULT_BIAS = (0.25, 0.5, 2.0, 4.0)
DEFAULT_SHUFFLED = (0.25, 0.5, 1.0)

#: What the erring oracle takes, by option: least and largest value, and what it is in words.
_RANGES = {
    "noise": (0.0, 10.0, "a standard deviation of the logarithm, 0 to 10"),
    "bias": (0.001, 1000.0, "a factor, 0.001 to 1000"),
    "shuffled": (0.0, 1.0, "a share of the requests, 0 to 1"),
}

#: Beyond it, "nothing ends" cannot be told by a believed output a thousand times too long.
LONGEST_HORIZON = 500
#: The oracle's seeds end here.
_SEEDS_END = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class MispredictionConfig:
    """Configuration of a misprediction study.

    Parameters
    ----------
    scenario
        Requests, fleet, arrivals, event order. Of a file, the first fifth is kept for learning where it does not say
        otherwise.
    policies
        Rules that look ahead, without a predictor of their own.
    horizon
        H, steps, at least 1: the window of the states, and of rules that do not say otherwise.
    noise, bias, shuffled
        The errors of the oracle, one row each, see `lbopt.predictors.oracle`.
    other_trace
        A file or family that predictors also learn from; None = the other family.
    behaviour
        Policy under which states are sampled.
    states
        How many states.
    new
        What is assumed of waiting requests in the window of a state: "survives" or "ends".
    seed, seeds
        First seed and number of seeds of the long runs; states come from the first.
    time_limit
        Seconds per state.
    """

    scenario: Scenario = field(default_factory=Scenario)
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule that looks ahead, without its predictor, e.g. `br-h:gamma=0.6`; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            panel="Policies",
            first=True,
        ),
    ] = DEFAULT_POLICIES
    horizon: Annotated[
        int, Option("Steps that rules look ahead, at least 1.", names=("--horizon", "-H"), panel="Policies", first=True)
    ] = 20
    noise: Annotated[
        tuple[float, ...], Option("Spread of the logarithm of believed outputs; may be given again.", panel="Forecasts")
    ] = DEFAULT_NOISE
    bias: Annotated[tuple[float, ...], Option("Factor on believed outputs; may be given again.", panel="Forecasts")] = (
        DEFAULT_BIAS
    )
    shuffled: Annotated[
        tuple[float, ...], Option("Share of outputs exchanged among requests; may be given again.", panel="Forecasts")
    ] = DEFAULT_SHUFFLED
    other_trace: Annotated[
        str | None,
        Option("File or family on which predictors are also trained.", panel="Forecasts", shown="the other family"),
    ] = None
    behaviour: Annotated[str, Option("Policy under which states are sampled.", panel="Policies")] = "br-0"
    states: Annotated[int, Option("How many frozen states.", first=True)] = 50
    new: Annotated[
        str, Option("Waiting requests in the window of a state: **survives** it, or **ends**.", panel="Optimum")
    ] = "survives"
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    seeds: Annotated[int, Option("Number of seeds of the long runs.", first=True)] = 3
    time_limit: Annotated[float | None, Option("Seconds per state.", panel="Optimum", first=True)] = 2.0

    def __post_init__(self) -> None:
        if not 1 <= self.horizon <= LONGEST_HORIZON:
            raise InputError(f"horizon is {self.horizon}; expected 1 to {LONGEST_HORIZON} steps to look ahead")
        for option, (least, largest, meaning) in _RANGES.items():
            values = getattr(self, option)
            for value in values:
                if not least <= value <= largest:
                    raise InputError(f"{option} is {value:g}; expected {meaning}")
            if (doubled := repeated(values)) is not None:
                raise InputError(f"{option} {doubled:g} is given twice")
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
            policies=self.policies or DEFAULT_POLICIES,
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
        if not self.policies:
            raise InputError("no policy is given; name at least one that looks ahead, such as br-h or bf-io")
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

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        lists = {name: list(data[name]) for name in ("policies", "noise", "bias", "shuffled")}
        return data | lists | {"scenario": self.scenario.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> MispredictionConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="wrong forecasts", source=source, parts={"scenario": Scenario.from_dict})
