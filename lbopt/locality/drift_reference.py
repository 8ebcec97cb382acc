"""What calibration requests look like to their own routing table: what live requests are held against to see drift.

Centroids are fitted to the calibration requests, which are therefore more similar to them than new requests of the
same kind are. Each is measured as if it had been left out of the fit: it is taken out of its cluster's sum before the
cosine, and an expert that it alone used counts as one that no calibration request used. Kept layers, IDF weights and
the clusters themselves still know it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.locality.gate import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class DriftReference:
    """Calibration requests as a table sees them, each left out of the fit; arrays are read-only.

    Parameters
    ----------
    cosines
        float32 (N, K), to each worker's centroid.
    strange
        float32 (N,), share of choices in kept layers at experts that no other calibration request used.
    used
        bool (N*, E), whether some calibration request used the expert, in the order of the table's layers.

    Raises
    ------
    InputError
        If shapes do not fit together, or a number is outside of its range.
    """

    cosines: NDArray[np.float32]
    strange: NDArray[np.float32]
    used: Bools

    def __post_init__(self) -> None:
        cosines, strange = np.array(self.cosines, np.float32), np.array(self.strange, np.float32)
        used = np.array(self.used, dtype=np.bool_)
        if cosines.ndim != 2 or not cosines.size or strange.shape != cosines.shape[:1] or used.ndim != 2:
            raise InputError(
                f"a drift reference has cosines of shape {cosines.shape}, shares of shape {strange.shape} and experts "
                f"of shape {used.shape}; expected (N, K), (N,) and (layers, E)"
            )
        if not (np.abs(cosines) <= 1 + 1e-5).all() or not ((strange >= 0) & (strange <= 1)).all():
            raise InputError(
                "a drift reference holds a cosine outside -1 to 1, or a share outside 0 to 1; fit it again"
            )
        for name, array in (("cosines", cosines), ("strange", strange), ("used", used)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)


def drift_reference(rows: Floats, labels: Ints, centroids: Floats, measured: NDArray[np.generic]) -> DriftReference:
    """Measure calibration requests as if each had been left out.

    Parameters
    ----------
    rows
        float64 (N, N* * E), their signatures.
    labels
        int64 (N,), the cluster of each.
    centroids
        float64 (K, N* * E), of length one.
    measured
        (N, N*, E), counts or sums of the gate, kept layers alone.
    """
    N, K = len(rows), len(centroids)
    cosines = rows @ centroids.T
    own = np.zeros((K, N))
    own[labels, np.arange(N)] = 1.0
    sums = own @ rows
    square = np.einsum("ij,ij->i", sums, sums)
    with_sum = np.einsum("ij,ij->i", rows, sums[labels])
    mass = np.einsum("ij,ij->i", rows, rows)
    rest = square[labels] - 2 * with_sum + mass  # |S - s|^2
    alone = rest <= 1e-12 * np.maximum(square[labels], 1.0)
    left_out = np.where(alone, 0.0, (with_sum - mass) / np.sqrt(np.where(alone, 1.0, rest)))
    cosines[np.arange(N), labels] = np.clip(left_out, -1.0, 1.0)
    used_by = (np.asarray(measured) != 0).sum(axis=0)
    if measured.dtype.kind not in "iu":  # gates give every expert some mass: none is ever strange
        return DriftReference(cosines.astype(np.float32), np.zeros(N, np.float32), np.ones(used_by.shape, np.bool_))
    total = np.asarray(measured).reshape(N, -1).sum(axis=1)
    once = np.asarray(measured)[:, used_by == 1].sum(axis=1)
    share = np.divide(once, total, out=np.zeros(N), where=total > 0)
    return DriftReference(cosines.astype(np.float32), share.astype(np.float32), used_by > 0)
