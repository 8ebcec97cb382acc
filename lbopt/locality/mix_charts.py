"""Charts of the mix of traffic: whether a part of it has moved to one kind of request.

Of each block of n requests m are of a group of centroids (`centroid_groups`) that has the share p of calibration
requests. Its chart is the CUSUM of the logarithm of the likelihood that the part f of the traffic has moved to the
group, over that of none,

    S = max(0, S + m ln(q / p) + (n - m) ln((1 - q) / (1 - p))),   q = p + f (1 - p),   f = 0.3.

One chart more goes by no group that was known before: traffic has moved to those kinds whose shares over about the last
250 requests before the block exceed p by more than a deviation, in proportion to the excess, r:

    S = max(0, S + sum over requests of ln(1 - f + f r / p)).

No chart's expected value under the calibration's mix exceeds 1 in the exponent, which is what bounds its false alarms
(Lorden, Procedures for reacting to a change in distribution, Annals of Mathematical Statistics 42, 1971), if shares are
known. They are estimates; so each chart is told in units of what it rarely exceeds in streams whose shares are drawn
anew (`drift`), and the greatest counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lbopt.locality.gate import Floats

#: Requests of a block, and the weight of a block in the shares that the last chart goes by.
BLOCK = 25
WEIGHT = 0.1
#: f, and the deviations of a share that a rise of it must exceed.
SHIFT = 0.3
_NOISE = 1.0


class MixLaw(NamedTuple):
    """What a block's shares are held against.

    Parameters
    ----------
    shares
        float64 (..., B), of kinds, none of them 0.
    rise, fall
        float64 (..., M): what a block adds to a group's chart if all of it are of the group, less what it adds if none
        is; and the latter.
    scale
        float64 (M + 1,), the unit of each chart.
    """

    shares: Floats
    rise: Floats
    fall: Floats
    scale: Floats


def mix_law(counted: Floats, members: Floats, known: int) -> MixLaw:
    """Return the law of shares.

    Parameters
    ----------
    counted
        float64 (..., B), shares of kinds among `known` requests; half a request more is put to each.
    members
        float64 (B, M), 1 where a kind is in a group.
    known
        Number of requests.
    """
    B, M = members.shape
    shares = (counted * known + 0.5) / (known + 0.5 * B)
    p = shares @ members
    q = p + SHIFT * (1 - p)
    fall = BLOCK * np.log((1 - q) / (1 - p))
    return MixLaw(shares, BLOCK * np.log(q / p) - fall, fall, np.ones(M + 1))


@dataclass(slots=True)
class MixCharts:
    """State of the charts, for one stream or, with a leading axis, for many at a time."""

    recent: Floats  # (..., B), shares of kinds
    sums: Floats  # (..., M + 1), the last by the kinds whose shares have risen

    @classmethod
    def start(cls, law: MixLaw) -> MixCharts:
        """Return charts at rest."""
        return cls(law.shares.copy(), np.zeros((*law.fall.shape[:-1], law.fall.shape[-1] + 1)))

    def advance(self, law: MixLaw, kinds: Floats, groups: Floats) -> None:
        """Take a block in.

        Parameters
        ----------
        law
            What it is held against.
        kinds, groups
            float64 (..., B) and (..., M), its shares.
        """
        p, sums = law.shares, self.sums
        sums[..., :-1] += groups * law.rise + law.fall
        over = self.recent - p - _NOISE * np.sqrt(p * (1 - p) * (WEIGHT / (2 - WEIGHT) / BLOCK))
        np.maximum(over, 0.0, out=over)
        total = over.sum(axis=-1, keepdims=True)
        part = np.divide(over, total, out=over, where=total > 0)
        gain = np.log(1.0 - SHIFT + SHIFT * part / p)
        sums[..., -1] += BLOCK * np.where(total[..., 0] > 0, (kinds * gain).sum(axis=-1), 0.0)
        np.maximum(sums, 0.0, out=sums)
        self.recent += WEIGHT * (kinds - self.recent)

    def level(self, law: MixLaw) -> Floats:
        """Return the greatest chart, in its unit, (...)."""
        return np.asarray((self.sums / law.scale).max(axis=-1))
