"""The forecasts that a rule is given: the truth, the truth with an error, and what is learnt from other requests.

An error is drawn anew for each seed of the long runs, and for each frozen state: by the seed of the oracle, which is
the same for all strengths, so a stronger error is the same error made larger. "nothing ends" believes that every output
is a thousand times as long: the rule then plans over the window as if everybody stayed. It is where a gate that is shut
leads to.

Three things stand beside a rule: br-0; "no window", the rule itself with horizon 0, which has the same options in all
else and so is the fair one (with alpha = 1, beta = G and its usual options br-h is br-0 then); and the exact forecast.

Learnt forecasts are made anew every ten tokens, the oracle's at every one, and in between a forecast falls by a step a
token, also one of "outlives the window" (see `Foresight`). So what they cost is in part the price of their age. With
"fresh" they are made anew at every token too, with "held" that one stays; "exact, stale" is the truth at their pace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lbopt.policies import Policy, make_policy
from lbopt.studies.misprediction.config import LookAhead, MispredictionConfig

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
