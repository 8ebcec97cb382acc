"""Groups of centroids that the same requests are near to: kinds of traffic, as far as a routing table can tell them.

Alike are centroids to which calibration requests have correlated cosines. Groups are those that come about when
centroids are joined two by two, the most alike first (complete linkage), and around each centroid its nearest one, two,
three, ... others. Traffic that moves to one kind of request raises the share of the group that stands for it, which
single centroids show much less: each has a part of the rise, and its own noise.

Of more than 32 centroids the most alike are joined to 32 kinds first, and groups are made of these.

Charts of the mix of traffic: whether a part of it has moved to one kind of request.

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

from lbopt.locality.gate import Bools, Floats

#: Kinds at most.
_MOST_KINDS = 32
#: Shares of requests that a group has at least and at most.
_LEAST_SHARE, _LARGEST_SHARE = 0.02, 0.5
#: Kinds of a group around one, and groups, at most.
_NEAREST, _MOST_GROUPS = 8, 64


def centroid_kinds(cosines: Floats) -> Floats:
    """Return of which kind each centroid is, float64 (K, B) with a 1 in each row.

    Parameters
    ----------
    cosines
        float64 (N, K), of calibration requests.
    """
    K = cosines.shape[1]
    groups = [frozenset([k]) for k in range(K)]
    if K > _MOST_KINDS:
        groups = _joined(_alike(cosines), _MOST_KINDS)[0]
    return _members(groups, K).astype(np.float64)


def centroid_groups(cosines: Floats, shares: Floats) -> Bools:
    """Return which kinds are in each group, bool (B, M).

    Parameters
    ----------
    cosines
        float64 (N, B), of calibration requests, the means over the centroids of each kind.
    shares
        float64 (B,), of requests by the nearest centroid.
    """
    B = len(shares)
    alike = _alike(cosines)
    order = np.argsort(-alike, axis=1, kind="stable")
    around = [frozenset(row[: n + 1].tolist()) for n in range(1, min(_NEAREST, B)) for row in order]
    found = list(dict.fromkeys([*_joined(alike, 2)[1][::-1], *around]))
    members = _members(found, B)
    of_group = shares @ members
    chosen = np.flatnonzero((of_group >= _LEAST_SHARE) & (of_group <= _LARGEST_SHARE))
    return members[:, chosen[:_MOST_GROUPS]]


def _alike(cosines: Floats) -> Floats:
    """Return the correlations of columns, (K, K), with infinity of each to itself."""
    centred = cosines - cosines.mean(axis=0)
    length = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    near = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    alike: Floats = near.T @ near
    np.fill_diagonal(alike, np.inf)
    return alike


def _joined(alike: Floats, number: int) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """Join two by two until so many groups are left; return these, and all that came about on the way."""
    alike, K = alike.copy(), len(alike)
    np.fill_diagonal(alike, -np.inf)
    groups = {k: frozenset([k]) for k in range(K)}
    found = list(groups.values())
    for _ in range(K - number):
        first, second = divmod(int(alike.argmax()), K)
        merged = np.minimum(alike[first], alike[second])
        merged[[first, second]] = -np.inf
        alike[first], alike[:, first] = merged, merged
        alike[second], alike[:, second] = -np.inf, -np.inf
        groups[first] |= groups.pop(second)
        found.append(groups[first])
    return list(groups.values()), found


def _members(groups: list[frozenset[int]], K: int) -> Bools:
    """Return which of K are in each group, bool (K, M)."""
    members = np.zeros((K, len(groups)), dtype=np.bool_)
    for m, group in enumerate(groups):
        members[list(group), m] = True
    return members


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
