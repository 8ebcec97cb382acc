"""The records that compiled rules take: their parameters, and whose turn it is."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints, Record, integers, record


class Shown(NamedTuple):
    """What a rule is shown of the workers, int64 (G,) each."""

    load: Ints  # resident tokens
    running: Ints  # running requests
    queued: Ints  # requests queued at the worker; empty where none queue and the rule goes by no score
    queued_tokens: Ints
    own: Ints  # what the front end has in its books, see `books`; empty for rules without


class Room(NamedTuple):
    """Workers of a pooled decision, int64 (G,) each; changed in place."""

    load: Ints  # tokens
    free: Ints  # free slots
    running: Ints  # running requests
    own: Ints  # what the router has in its books, see `books`; empty for rules without


class Waiting(NamedTuple):
    """Requests of a pooled decision.

    Every pooled rule takes (parameters, room, waiting, choice), writes the worker of each position of the pool, or -1,
    into `choice`, int64 (>= n,), and returns how many positions it has filled.
    """

    pool: Ints  # int64 (n,), request numbers in order of revelation
    prompt: Ints  # int64 (N,), tokens, by request number
    reveal_step: Ints  # int64 (N,), the step in which it joined the pool
    uniforms: Floats  # float64 (N, 2) in [0, 1); may be empty for rules that draw nothing
    step: int  # now


#: Parameters of all rules; each reads its own. There is one type for all of them, so that one loop is compiled.
PARAMETERS = integers(
    "whole_pool",  # max-min. 1: the U largest of the pool; 0: the oldest U
    "stage_switch",  # br-0 and br-h. Stage 1 runs while more than this many slots are free
    "window_size",  # R_max
    "window_by_arrival",  # 0: largest first, 1: in order of revelation
    "key_product",  # 0: lexicographic (slots, margin), 1: slots * margin
    "age_bound",  # steps after which a request is placed before the stages; -1 = never
    "subset",  # br-h. How stage 2 chooses, see `horizon`
    "thousandths",  # iqr. The multiplier k, in thousandths
    "percentile",  # one of the codes PERCENTILE_LINEAR, ...
    "overbooking",  # br-0-bypass. Requests that a worker may hold beyond its slots; -1 = any number
    "ties_by_number",  # 0: equal F goes to the lighter worker, 1: to the lower number
    "width",  # band. In units of BAND_UNIT
    "front_ends",  # rules by score. Routers that share the fleet; 0 counts as one
    "kv_capacity",  # rules by score. Tokens that a worker can hold; 0 = not known
    "by_cache",  # tpu-inference and dynamo. 1: what a worker's cache of prefixes holds counts as computed
    "age_thousandths",  # auto. What the mean wait counts, in thousandths of the mean size
)

#: Where round-robin stands, or the scan of a rule that begins at another worker each time.
TURN = integers("next_worker")


@lru_cache(maxsize=256)
def parameters_of(**values: int) -> Record:
    """Return PARAMETERS with these values, and zeros elsewhere; kept and shared, so it is not to be changed."""
    parameters = record(PARAMETERS)
    for name, value in values.items():
        setattr(parameters, name, value)
    return parameters


def turn_of(next_worker: int) -> Record:
    """Return a TURN that begins with this worker."""
    turn = record(TURN)
    turn.next_worker = next_worker
    return turn
