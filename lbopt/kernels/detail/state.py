"""The state of workers in detail, and how much memory requests take.

What the loop knows of workers in detail: `Detail`. Its arrays are empty where the option is not used.

Requests of a worker stand in `seats` in the order in which they started. What a step needs of a request
is its track, see `TRACK`.
Definition: the manual, page *detail*.

Memory in blocks: what a request occupies, whether one more fits, and who is pre-empted where it ran out.

The last of the list goes first, as in vLLM. That is the longest head of the list that fits with what every request of
it needs next. Definition: the manual, page *detail*, "A decision", 2 and 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, Records, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.gating import Gate
from lbopt.kernels.pausing import Pausing
from lbopt.kernels.prefix_cache import PrefixCache

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
        ("cache_block", np.int64),  # tokens
        ("cache_blocks", np.int64),  # that a worker's cache of prefixes holds; 0 = there is none
    ],
    align=True,
)

#: What a step reads and writes of a request, together in one line of the cache.
TRACK = np.dtype(
    [
        ("tokens", np.int64),  # its size: prompt, and output so far
        ("computed", np.int64),  # tokens of these
        ("made", np.int64),  # tokens of the output so far
        ("wanted", np.int64),  # tokens of the whole output
        ("blocks", np.int64),  # that it occupies; 0 where it neither runs nor is paused
        ("lost", np.int64),  # tokens that were computed, lost, and not computed again yet
        ("held", np.int64),  # of one that waits again: NOTHING, SWAPPED or PAUSED
        ("chance", np.float64),  # that a drafted token is accepted
    ],
    align=True,
)

# where the memory of a request that waits again is
NOTHING = 0  # nowhere
SWAPPED = 1  # moved out
PAUSED = 2  # on its worker

#: What happened in the whole run.
TALLY = integers(
    "preemptions",
    "recomputed",  # tokens that were computed once more
    "moved",  # tokens out of and into memory
    "returned",  # requests that a worker which left gave back
    "reused",  # tokens that a cache of prefixes saved
    "pauses",  # times that a running request was held out of a step
)

# kinds of events; at the same time and worker they happen in this order
JOIN = 0
DRAIN = 1
LEAVE = 2


@by_reference
class Detail(NamedTuple):
    """Everything of N requests on G workers that only runs with these options have."""

    rules: Record  # RULES
    tally: Record  # TALLY
    slow: Floats  # float64 (G,), factor of a worker's own part of a step
    is_open: Ints  # int64 (G,)
    event_clock: Floats  # float64 (E,), s, ascending
    event_worker: Ints  # int64 (E,)
    event_kind: Ints  # int64 (E,)
    seats: Ints  # int64 (G, B), requests of each worker; the first `running` are taken
    tracks: Records  # TRACK (N,)
    size: Ints  # int64 (N,), tokens, of requests that do not run
    ready: Floats  # float64 (N,), s: its memory has arrived
    first_token_step: Ints  # int64 (N,), output
    finish_step: Ints  # int64 (N,), output
    used: Ints  # int64 (G,), blocks
    committed: Ints  # int64 (G,), blocks as `count_committed` counts them; (0,) where memory never runs out
    moved: Ints  # int64 (G,), tokens moved since the last step
    open_workers: Ints  # int64 (G,), scratch: their numbers first
    shown_load: Ints  # int64 (G,), scratch: what is seen of the open workers, in this order; as the next four
    shown_running: Ints
    shown_queued: Ints
    shown_tokens: Ints
    shown_own: Ints
    pausing: Pausing
    cache: PrefixCache
    gate: Gate


@kernel
def blocks_of(size: int, rules: Record) -> int:
    """Return the blocks that a running request of `size` tokens occupies, those of the drafted tokens included."""
    return (size + rules.draft + rules.block - 1) // rules.block


@kernel
def has_room(i: int, w: int, running: int, detail: Detail) -> bool:
    """Return whether request `i`, which waits on worker `w`, fits there beside its `running` ones.

    Parameters
    ----------
    i, w, running
        Request, worker, and the length of its list.
    """
    rules = detail.rules
    if rules.blocks < 0 or detail.tracks[i].held == PAUSED:
        return True
    kept_free = rules.kept_free if running > 0 else 0
    return bool(detail.used[w] + blocks_of(detail.size[i], rules) <= rules.blocks - kept_free)


@kernel
def lose(track: Record) -> None:
    """Let a request lose what was computed of it."""
    track.lost += track.computed
    track.computed = 0
    track.held = NOTHING
