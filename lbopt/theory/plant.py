"""The smallest planted error that a finding detects: how far a claim could be wrong without the check seeing it.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lbopt.theory.finding import Finding
from lbopt.theory.verdict import Verdict

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
