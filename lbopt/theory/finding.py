"""What was measured in one regime, beside what the claim says of it, and how improbable that is if the claim is true.

Five kinds of evidence, and each has its own test:

* **exact**: an inequality that must hold every time; `violations` of `trials`. One is enough.
* **mean**: an average with its standard error (Student with `dof` degrees of freedom, else normal).
* **frequency**: how often something happened in independent trials, against a probability (exact binomial test).
* **fit**: the p-value of a test of fit, in `measured`.
* **computed**: a number without any sampling, compared as it stands, up to `tolerance` of the prediction.

`relation` is what the claim says of measured and predicted: ``=``, ``<=`` or ``>=``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from lbopt.statistics import student_quantile
from lbopt.theory.verdict import Verdict

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
