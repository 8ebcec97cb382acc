"""max-min among workers that differ in speed: largest first, each to the worker that would be done with it first.

Of the oldest U requests, or of the U largest of the pool, the largest goes first. Worker g would need

    f_g (L_g + s)

for its part of a step, f_g the factor of its own part and L_g its load; the least of these wins, the lower number among
equal ones. This is list scheduling on uniform machines, largest first (Gonzalez, Ibarra and Sahni, SIAM J. Comput. 6
(1), 1977), begun from loads that are there. Where all are alike, or their speed is unknown, it decides as `max-min`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.policies.bf_io import paces_of
from lbopt.policies.observation import Observation
from lbopt.policies.policy import Admission


@dataclass(frozen=True, slots=True)
class PacedMaxMin:
    """The rule; decides in Python.

    Parameters
    ----------
    whole_pool
        Whether it takes the U largest of the pool; else the oldest U.
    """

    whole_pool: bool = False

    @property
    def name(self) -> str:
        """What tables call it."""
        return "max-min:scope=pool,pace=yes" if self.whole_pool else "max-min:pace=yes"

    @property
    def admission(self) -> Admission:
        """Pooled."""
        return "pooled"

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Return the worker of each waiting request, or -1."""
        sizes, U = observation.sizes, observation.num_admissible
        seen = sizes if self.whole_pool else sizes[:U]
        chosen = np.full(sizes.size, -1, dtype=np.int64)
        pace = paces_of(observation.slow)[0]
        if pace is None:
            pace = np.ones(observation.loads.size, dtype=np.int64)
        load, free = observation.loads.copy(), observation.free_slots.copy()
        for i in np.argsort(-seen, kind="stable")[:U].tolist():
            open_workers = np.flatnonzero(free)
            g = open_workers[np.argmin(pace[open_workers] * (load[open_workers] + sizes[i]))]
            chosen[i] = g
            load[g] += sizes[i]
            free[g] -= 1
        return chosen
