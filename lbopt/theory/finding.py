"""What was measured in one regime, what can be said of the claim, and how far it could be wrong unseen.

What can be said of a claim after it was checked.

What was measured in one regime, beside what the claim says of it, and how improbable that is if the claim is true.

Five kinds of evidence, and each has its own test:

* **exact**: an inequality that must hold every time; `violations` of `trials`. One is enough.
* **mean**: an average with its standard error (Student with `dof` degrees of freedom, else normal).
* **frequency**: how often something happened in independent trials, against a probability (exact binomial test).
* **fit**: the p-value of a test of fit, in `measured`.
* **computed**: a number without any sampling, compared as it stands, up to `tolerance` of the prediction.

`relation` is what the claim says of measured and predicted: ``=``, ``<=`` or ``>=``.

The smallest planted error that a finding detects: how far a claim could be wrong without the check seeing it.

The prediction of a finding is replaced by a false one, the evidence stays, and the finding is judged as before. The
smallest falsehood that is refuted says how sharp the evidence is. Three kinds are planted:

* a **share**: the prediction times 1 - x or 1 + x, a wrong constant; of a frequency beyond a threshold, the threshold;
* a **shift**: the prediction less or more by x, where it is zero, an exponent, or the bound of an exact inequality;
* an **exponent**: the prediction times (B / B_0)^y or its inverse, B_0 the fewest slots among the claim's regimes, so
  that the constant is right at B_0.

An upper bound is planted too small, a lower bound too large, an equality both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np

from lbopt.statistics import student_quantile


class Verdict(StrEnum):
    """The five ends of a check, the gravest first.

    REFUTED: an exact statement was violated, or an average lies outside its joint 99.99 % region.
    UNDECIDED: an optimum was not proved, or an average lies between the 99 % and the 99.99 % region.
    HOLDS: nothing speaks against it where its hypotheses are met.
    NOTHING_LEFT: what it bounds from above was zero throughout, which no bound could fail.
    OUTSIDE: it was only looked at where its hypotheses are not met, so nothing follows for it.
    """

    REFUTED = "refuted"
    UNDECIDED = "undecided"
    HOLDS = "holds"
    NOTHING_LEFT = "nothing left"
    OUTSIDE = "outside the regime"


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over all regimes: one refutation refutes; where nothing is left, nothing is said."""
    found = set(verdicts)
    return next((verdict for verdict in Verdict if verdict in found), Verdict.UNDECIDED)


#: The joint regions of a claim: inside the first it holds, outside the second it is refuted.
JOINT_CONFIDENCE, REFUTING_CONFIDENCE = 0.99, 0.9999

KINDS = ("exact", "mean", "frequency", "fit", "computed")
RELATIONS = ("=", "<=", ">=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One row of evidence.

    Parameters
    ----------
    regime
        Where, in the words of the report: ``G=16, B=256, p=0.2, s<=8``.
    quantity
        What was measured, with its unit.
    kind
        One of `KINDS`.
    relation
        One of `RELATIONS`: what the claim says.
    measured, predicted
        The two sides; of an exact inequality the largest excess of left over right, and 0.
    error
        Standard error of `measured`.
    dof
        Degrees of freedom of `error`; None: normal.
    tolerance
        Share of the prediction by which a computed number may miss it.
    trials
        Steps, optima or samples looked at.
    violations
        Of an exact inequality.
    undecided
        Trials whose optimum was not proved.
    outside
        Why the regime is none of the claim's; empty where it is.
    counterexample
        What refutes it, as JSON: ``problem`` (a step problem that ``lbopt solve`` opens), ``assignment`` and ``says``.
    note
        Anything else a reader must know.
    B
        Slots of a worker in the regime; None where the claim has none.
    refuted_share
        Of a frequency beyond a threshold: the share of the threshold that the same steps refute; None where there is
        none.
    """

    regime: str
    quantity: str
    kind: str
    relation: str
    measured: float
    predicted: float
    error: float = 0.0
    dof: float | None = None
    tolerance: float = 0.0
    trials: int = 0
    violations: int = 0
    undecided: int = 0
    outside: str = ""
    counterexample: dict[str, Any] | None = field(default=None, hash=False)
    note: str = ""
    B: int | None = None
    refuted_share: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.relation not in RELATIONS:
            raise ValueError(f"finding has kind {self.kind!r} and relation {self.relation!r}")
        for name in ("measured", "predicted", "error"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"finding '{self.quantity}' at {self.regime}: {name} is {getattr(self, name)}")

    @classmethod
    def exact(cls, regime: str, quantity: str, excess: Any, **more: Any) -> Finding:
        """Return that an inequality held every time; `excess` is what its left side had more than its right one."""
        found = np.asarray(excess)
        usual = {"kind": "exact", "relation": "<="}
        least: dict[str, Any] = {"measured": float(found.max()) if found.size else 0.0, "predicted": 0.0}
        counts = {"trials": found.size, "violations": int((found > 0).sum())}
        return cls(regime=regime, quantity=quantity, **(usual | least | counts | more))

    @classmethod
    def computed(
        cls, regime: str, quantity: str, measured: float, relation: str, predicted: float, **more: Any
    ) -> Finding:
        """Return how a number without any sampling lies to the prediction."""
        sides: dict[str, Any] = {"measured": measured, "relation": relation, "predicted": predicted}
        return cls(regime=regime, quantity=quantity, kind="computed", **sides, **more)

    @property
    def is_sampled(self) -> bool:
        """Whether chance plays a part, so that the finding takes its share of the joint region."""
        return self.kind in ("mean", "frequency", "fit") and not self.outside and not self.nothing_left

    @property
    def nothing_left(self) -> bool:
        """Whether an upper bound is held against zeros alone: that is true of every bound, so it is no evidence."""
        return self.kind == "mean" and self.relation == "<=" and self.measured == self.error == 0 <= self.predicted

    def p_value(self) -> float:
        """Return how probable evidence at least so bad is if the claim is true, at most 1."""
        from scipy import special, stats

        if self.kind == "exact":
            return float(self.violations == 0)
        if self.kind == "computed":
            miss = self._excess() - self.tolerance * abs(self.predicted)
            return float(miss <= 0)
        if self.kind == "fit":
            return self.measured
        if self.kind == "frequency":
            side: Any = {"=": "two-sided", "<=": "greater", ">=": "less"}[self.relation]
            happened = round(self.measured * self.trials)
            return float(stats.binomtest(happened, self.trials, min(1.0, self.predicted), alternative=side).pvalue)
        if self.error == 0:
            return float(self._excess() <= 0)
        score = self._excess() / self.error
        tail = special.ndtr(-score) if self.dof is None else special.stdtr(self.dof, -score)
        return float(min(1.0, (2 if self.relation == "=" else 1) * tail))

    def strain(self) -> float:
        """Return the share of the prediction by which the measured value misses it, or comes nearest to that."""
        return self._excess() / max(abs(self.predicted), 1e-300)

    def interval(self, share: int = 1) -> tuple[float, float] | None:
        """Return the two-sided interval of the measured value, one of `share` in the joint 99 % region."""
        from scipy import stats

        level = 1 - (1 - JOINT_CONFIDENCE) / share
        if self.kind == "mean" and self.error > 0:
            half = student_quantile(self.dof, level) * self.error
            return self.measured - half, self.measured + half
        if self.kind == "frequency":
            happened = round(self.measured * self.trials)
            found = stats.binomtest(happened, self.trials).proportion_ci(level)
            return float(found.low), float(found.high)
        return None

    def verdict(self, share: int = 1) -> Verdict:
        """Judge the finding as one of `share` sampled ones of its claim (Bonferroni)."""
        if self.outside:
            return Verdict.OUTSIDE
        p = self.p_value()
        if p < (1 - REFUTING_CONFIDENCE) / (share if self.is_sampled else 1):
            return Verdict.REFUTED
        if self.undecided or (self.is_sampled and p < (1 - JOINT_CONFIDENCE) / share):
            return Verdict.UNDECIDED
        return Verdict.NOTHING_LEFT if self.nothing_left else Verdict.HOLDS

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Finding:
        """Return the finding that `to_dict` wrote."""
        return cls(**given)

    def _excess(self) -> float:
        """Return by how much the measured value misses what the claim says of it."""
        gap = self.measured - self.predicted
        return {"=": abs(gap), "<=": gap, ">=": -gap}[self.relation]


#: Falsehoods between these ends are tried, as shares; the answer is right to 1 %.
_LEAST, _MOST, _STEP = 1e-7, 1e6, 1.01


@dataclass(frozen=True, slots=True)
class Plant:
    """The smallest planted errors that a finding detects.

    Parameters
    ----------
    is_share
        Whether they are shares of the prediction; else they are in its unit.
    below, above
        The smallest error downwards and upwards, above 0; None where none is detected or none makes the claim bolder.
    """

    is_share: bool
    below: float | None
    above: float | None

    @property
    def smallest(self) -> float | None:
        """The error that is detected in whichever direction it is planted; of a bound, in the one that is bolder."""
        found = [error for error in (self.below, self.above) if error is not None]
        return max(found, default=None)

    @property
    def sign(self) -> str:
        """``-``, ``+`` or ``±``: in which directions errors are detected."""
        return {(True, True): "±", (True, False): "-", (False, True): "+", (False, False): ""}[
            self.below is not None, self.above is not None
        ]


@lru_cache(maxsize=4096)
def smallest_plant(finding: Finding, share: int = 1) -> Plant | None:
    """Return what a finding detects as one of `share` sampled ones; None where it says nothing or does not hold."""
    if finding.kind == "fit" or finding.verdict(share) is not Verdict.HOLDS:
        return None
    if finding.refuted_share is not None:
        return Plant(True, 1 - finding.refuted_share, None) if finding.refuted_share > 0 else None
    if finding.kind == "exact":
        # So many tokens turn the largest excess into a violation.
        fewest = math.floor(abs(finding.predicted - finding.measured)) + 1.0
        if finding.predicted == 0:
            return Plant(False, *(fewest if wanted else None for wanted in _directions(finding)))
        part = fewest / abs(finding.predicted)
        return Plant(True, *(part if wanted and part < 1 else None for wanted in _directions(finding)))
    is_share = finding.predicted != 0 and "exponent" not in finding.quantity
    unit = abs(finding.predicted) if is_share else max(finding.error, abs(finding.measured), abs(finding.predicted))
    if unit == 0:
        return None

    def refuted(error: float) -> bool:
        planted = replace(finding, predicted=finding.predicted + error * unit)
        return planted.verdict(share) is Verdict.REFUTED

    below, above = _directions(finding)
    down = _smallest(lambda x: refuted(-x), 1.0 if is_share else _MOST) if below else None
    up = _smallest(refuted, _MOST) if above else None
    if is_share:
        return Plant(True, down, up)
    return Plant(False, *(None if error is None else error * unit for error in (down, up)))


def smallest_exponent(findings: Sequence[Finding], share: int = 1) -> float | None:
    """Return the least y such that a factor (B / B_0)^y or its inverse is refuted by one of the findings of a claim.

    Of an equality both are; of a bound, the bolder one.
    """
    sizes = [one.B for one in findings if one.B is not None and not one.outside]
    fewest = min(sizes, default=0)
    found = []
    for one in findings:
        stretch = math.log((one.B or fewest) / fewest) if fewest else 0.0
        plant = smallest_plant(one, share) if stretch > 0 else None
        if plant is None or not plant.is_share:
            continue
        down = -math.log1p(-plant.below) / stretch if plant.below is not None and plant.below < 1 else None
        up = math.log1p(plant.above) / stretch if plant.above is not None else None
        found += [max(y for y in (down, up) if y is not None)] if down is not None or up is not None else []
    return min(found, default=None)


def _directions(finding: Finding) -> tuple[bool, bool]:
    """Return whether a prediction that is too small, and one that is too large, says more than the claim."""
    return finding.relation in ("=", "<="), finding.relation in ("=", ">=")


def _smallest(refuted: Callable[[float], bool], most: float) -> float | None:
    """Return the least error that is refuted, by bisection of its logarithm; None if not even the `most` is."""
    low, high = _LEAST, most
    if not refuted(high):
        return None
    if refuted(low):
        return low
    while high > _STEP * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high
