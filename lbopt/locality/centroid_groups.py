"""Groups of centroids that the same requests are near to: kinds of traffic, as far as a routing table can tell them.

Alike are centroids to which calibration requests have correlated cosines. Groups are those that come about when
centroids are joined two by two, the most alike first (complete linkage), and around each centroid its nearest one, two,
three, ... others. Traffic that moves to one kind of request raises the share of the group that stands for it, which
single centroids show much less: each has a part of the rise, and its own noise.

Of more than 32 centroids the most alike are joined to 32 kinds first, and groups are made of these.
"""

from __future__ import annotations

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
