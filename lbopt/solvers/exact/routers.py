"""What a router would do: the placement that an unfinished search must not be worse than.

The search starts from three cheap placements. BR-0 is often better than they are, and dearer; a search that ends with a
proof beats it anyway, so it is asked only where the search was cut off. See `lbopt.kernels.routing.br_0`.
"""

from __future__ import annotations

import numpy as np

from lbopt.kernels.routing.br_0 import br_0
from lbopt.kernels.routing.state import parameters_of
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray

#: The defaults of policy "br-0": largest first, lexicographic key, no age bound.
PARAMETERS = parameters_of(stage_switch=7, window_size=4, age_bound=-1)


def routed(problem: StepProblem) -> IntArray | None:
    """Return BR-0's placement, int64 (N,); None where some requests must be admitted, of which it knows nothing."""
    if problem.must_admit.any():
        return None
    count = problem.num_requests
    choice = np.full(count, -1, dtype=np.int64)
    pool = np.arange(count)
    loads, free = problem.base[:, 0].copy(), problem.slots.copy()
    br_0(PARAMETERS, loads, free, pool, problem.work[:, 0], np.zeros(count, dtype=np.int64), 0, choice)
    return choice
