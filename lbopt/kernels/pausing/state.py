"""What the loop knows of pausing: `Pausing`. Its arrays are empty where nobody pauses.

A request counts as ``2 * blocks``, plus 1 if the plan let it in to fill a slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.by_reference import by_reference

# modes
NEVER = 0
STATIC = 1  # a plan after every step
DYNAMIC = 2  # for some time after a long request has come

#: The options, and where balancing stands.
TERMS = np.dtype(
    [
        ("mode", np.int64),
        ("first_step", np.int64),
        ("threshold", np.float64),  # blocks above the mean; below 1 a share of the largest load
        ("long_blocks", np.int64),
        ("stays", np.int64),  # steps that balancing goes on without a long request
        ("is_on", np.int64),  # dynamic: balancing goes on
        ("idle_steps", np.int64),  # since the last long request
        ("long_came", np.int64),  # since this was last looked at
        ("in_force", np.int64),  # the next decision, or this one, follows a plan
    ],
    align=True,
)


@by_reference
class Pausing(NamedTuple):
    """Everything of G workers of B slots that only pausing needs; scratch but for `terms`, `leaving`, `entering`."""

    terms: Record  # TERMS
    inside: Ints  # int64 (G, 2B), counts of those that run; the first `num_inside` are meant
    num_inside: Ints  # int64 (G,)
    outside: Ints  # int64 (G, 2B), of those that wait
    num_outside: Ints  # int64 (G,)
    load: Ints  # int64 (G,), blocks of those that run
    order: Ints  # int64 (G,), workers by load
    changed: Ints  # int64 (G,), 1 where the plan did more than fill slots
    leaving: Ints  # int64 (G, 2B), the plan: blocks of requests to pause
    num_leaving: Ints  # int64 (G,)
    entering: Ints  # int64 (G, 2B), the plan: blocks of requests to let in
    num_entering: Ints  # int64 (G,)
    candidates: Ints  # int64 (G,), requests at the head of the queue that the plan knew
    paused: Ints  # int64 (B,)
