"""Which steps of a request's life a policy looks at, and how much each counts: the face of the compiled quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Quadrature:
    """A rule for sums over the steps 0, 1, ... of a request that may end in each of them.

    Parameters
    ----------
    nodes
        K; 0 = every step, which is the sum itself.
    product
        Weights that sum the survival exactly, at nodes of density sqrt(S); else trapezoid weights at percentiles.
    percentile
        Last percentile of the latter, up to 100.
    corrected
        Whether the ends of the trapezoid count in full.
    gamma
        Survival gamma**h instead of that of the samples; None = by samples.
    longest
        h_max, the last step that counts; "mean" = the mean output, in whole steps; None = the longest output's last.
    """

    nodes: int = 5
    product: bool = False
    percentile: float = 100.0
    corrected: bool = False
    gamma: float | None = None
    longest: int | Literal["mean"] | None = None

    def num_steps(self, outputs: Ints) -> int:
        """Return T, how many steps count where outputs are as the ascending `outputs`, int64 (n,)."""
        longest = int(outputs.mean()) if self.longest == "mean" else self.longest
        if longest is None:
            return max(1, int(outputs[-1]))
        if self.gamma is None:
            return max(1, min(longest + 1, int(outputs[-1])))
        return longest + 1

    def nodes_for(self, outputs: Ints) -> Ints:
        """Return the nodes, int64 (at most K,), from 0 up, for outputs as the ascending `outputs`, int64 (n,)."""
        from lbopt.kernels.routing.fast_phi import quadrature

        steps = self.num_steps(outputs)
        if self.nodes == 0 or (self.product and self.nodes >= steps):
            return np.arange(steps)
        found = np.zeros(self.nodes, dtype=np.int64)
        if self.product:
            one_bucket = np.array([0, outputs.size], dtype=np.int64)
            used = quadrature.root_nodes(self.curve(outputs, one_bucket, 0, steps), found)
        else:
            used = quadrature.percentile_nodes(outputs, self.percentile, steps, found)
        return found[:used]

    def curve(self, outputs: Ints, starts: Ints, bucket: int, num_steps: int) -> Floats:
        """Return the survival of a request of `bucket` that starts now, float64 (num_steps,).

        Parameters
        ----------
        outputs, starts
            int64: outputs of the samples, ascending in each bucket, and where each bucket starts.
        bucket
            Bucket of the request.
        num_steps
            Length of the curve.
        """
        from lbopt.kernels.routing.fast_phi.survival import survival_curve

        if self.gamma is not None:
            return self.decay(np.arange(num_steps))
        curve = np.ones(num_steps)  # where nothing is known, it stays
        survival_curve(outputs, starts, bucket, curve)
        return curve

    def decay(self, steps: Ints) -> Floats:
        """Return gamma**h at `steps`, int64 (K,); nothing where survival is by samples."""
        return np.empty(0) if self.gamma is None else np.power(self.gamma, steps.astype(np.float64))

    def coefficients(self, nodes: Ints, curve: Floats) -> Floats:
        """Return weight times survival at each node, float64 (K,), for a request of survival `curve`, float64 (T,)."""
        from lbopt.kernels.routing.fast_phi import quadrature

        if nodes.size == curve.size:
            return curve
        weights = np.empty(nodes.size)
        if self.product and nodes.size > 1:
            quadrature.product_weights(curve, nodes, weights)
            return weights
        quadrature.trapezoid_weights(nodes, self.corrected, weights)
        found: Floats = weights * curve[nodes]
        return found
