"""What the loop knows of workers that are not kind: `Engine`. Its arrays are empty where the option is not used.

Requests of a worker stand in `seats` in the order in which they started. A request's size is its prompt and what it has
made; `computed` of these tokens are in memory, or on their way with a request that was computed elsewhere.
Definition: the manual, page *engine*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, integers
from lbopt.kernels.by_reference import by_reference

#: The options of a run. `blocks`: of each worker, -1 = memory never runs out.
RULES = np.dtype(
    [
        ("on", np.int64),  # 0: the loop does not look at anything here
        ("blocks", np.int64),
        ("block", np.int64),  # tokens
        ("kept_free", np.int64),  # blocks
        ("swaps", np.int64),  # 1: a pre-empted request keeps what was computed
        ("budget", np.int64),  # tokens that a worker computes in a step; 0 = prompts are computed elsewhere
        ("draft", np.int64),  # tokens
        ("transfer", np.float64),  # s
        ("compute_seconds", np.float64),  # s a token
        ("move_seconds", np.float64),  # s a token
        ("draft_seconds", np.float64),  # s a step
        ("seed", np.uint64),
        ("next_event", np.int64),
    ],
    align=True,
)

#: What happened in the whole run.
TALLY = integers(
    "preemptions",
    "recomputed",  # tokens that were computed once more
    "moved",  # tokens out of and into memory
    "returned",  # requests that a worker which left gave back
)

# kinds of events; at the same time and worker they happen in this order
JOIN = 0
DRAIN = 1
LEAVE = 2


@by_reference
class Engine(NamedTuple):
    """Everything of N requests on G workers that only runs with these options have."""

    rules: Record  # RULES
    tally: Record  # TALLY
    slots: Ints  # int64 (G,)
    slow: Floats  # float64 (G,), factor of a worker's own part of a step
    is_open: Ints  # int64 (G,)
    event_clock: Floats  # float64 (E,), s, ascending
    event_worker: Ints  # int64 (E,)
    event_kind: Ints  # int64 (E,)
    seats: Ints  # int64 (G, B), requests of each worker; the first `running` are taken
    size: Ints  # int64 (N,), tokens
    made: Ints  # int64 (N,), tokens of the output so far
    computed: Ints  # int64 (N,), tokens
    lost: Ints  # int64 (N,), tokens that were computed, lost, and not computed again yet
    swapped: Ints  # int64 (N,), 1 while what was computed is out of memory
    held: Ints  # int64 (N,), blocks
    ready: Floats  # float64 (N,), s: its memory has arrived
    chance: Floats  # float64 (N,), of a drafted token; empty where nothing is drafted
    first_token_step: Ints  # int64 (N,), output
    finish_step: Ints  # int64 (N,), output
    used: Ints  # int64 (G,), blocks
    stopped: Ints  # int64 (G,), 1 where something was pre-empted in this decision
    moved: Ints  # int64 (G,), tokens moved since the last step
    free: Ints  # int64 (G,), slots that pooled rules see free
    part: Ints  # int64 (G,), requests that take part in the step
    narrow: Ints  # int64 (6, G), scratch: open workers and what is seen of them
