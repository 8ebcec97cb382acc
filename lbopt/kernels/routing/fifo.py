"""Rules that take requests in order of revelation and choose only the worker.

* `fill_in_order` (fcfs): worker 0 takes as many from the head as it has free slots, then worker 1, ... (BF-IO,
  algorithm 2, and the authors' simulator).
* `place_in_turn`: each request in turn goes to a worker with a free slot, picked by the rule's signal: a turn
  (round-robin), a uniform number (random, power-of-two), running requests (jsq, vllm), resident tokens (jsq-load), or
  a score of a serving engine (`least_score`).
* `bind`: the same signals when requests are bound on arrival to any worker, with or without a free slot.

Sources: the baselines of the BalanceRoute evaluation (arXiv 2605.06113) and BF-IO, appendix A.1.1; vllm's score is the
4 * waiting + running of vLLM's data-parallel balancer (vllm/v1/engine/core_client.py).
"""

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.books import entry_of
from lbopt.kernels.routing.codes import FIRST_BY_SCORE, JSQ, JSQ_LOAD, POWER_OF_TWO, RANDOM, ROUND_ROBIN, VLLM
from lbopt.kernels.routing.least_score import least_score
from lbopt.kernels.routing.max_min import lightest_open
from lbopt.kernels.routing.state import Room, Shown, Waiting


@kernel
def fill_in_order(parameters: Record, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Fill worker 0, then worker 1, ... from the head of the pool; returns positions filled."""
    position = 0
    for g in range(room.free.size):
        for _ in range(room.free[g]):
            if position == waiting.pool.size:
                return position
            choice[position] = g
            position += 1
    return position


@kernel
def place_in_turn(code: int, parameters: Record, room: Room, waiting: Waiting, turn: Record, choice: Ints) -> int:
    """Send each request of the pool in turn to a worker with a free slot; returns positions filled.

    Nothing is queued at a worker in this form. `turn` is changed in place.
    """
    load, free, running, own = room
    pool, prompt, uniforms = waiting.pool, waiting.prompt, waiting.uniforms
    reach = min(free.sum(), pool.size)
    nothing = pool[:0]
    queued = load * 0 if code >= FIRST_BY_SCORE else nothing
    books = own.copy() if own.size > 0 else own
    shown = Shown(load, running, queued, queued, books)
    for position in range(reach):
        i = pool[position]
        w = bind(code, i, parameters, shown, nothing, free, uniforms, turn)
        choice[position] = w
        load[w] += prompt[i]
        running[w] += 1
        free[w] -= 1
        if books.size > 0:
            books[w] += entry_of(code, prompt[i])
    return reach


@kernel
def bind(
    code: int,
    i: int,
    parameters: Record,
    shown: Shown,
    to_compute: Ints,
    free: Ints,
    uniforms: Floats,
    turn: Record,
) -> int:
    """Return the worker that the rule picks for request `i`, full or not unless `free` says otherwise.

    Parameters
    ----------
    code, i
        The rule, see `codes`, and the request.
    parameters
        `state.PARAMETERS`, of which rules by score read `front_ends` and `kv_capacity`.
    to_compute
        int64 (G,), tokens that come before the request's first one; empty where none are counted.
    free
        int64 (G,), workers that may be picked (> 0), at least one; empty, where `shown` has queues: all.
    uniforms
        float64 (N, 2) in [0, 1), by request number; may be empty for rules that draw nothing.
    turn
        `state.TURN`; changed in place.
    """
    if code >= FIRST_BY_SCORE:
        return least_score(code, i, parameters, shown, to_compute, free, uniforms, turn)
    G = shown.load.size
    if code == ROUND_ROBIN:
        w = turn.next_worker
        while free.size > 0 and free[w] == 0:
            w = (w + 1) % G
        turn.next_worker = (w + 1) % G
        return w
    if code == RANDOM:
        return _nth_open(free, int(uniforms[i, 0] * _num_open(free, G)))
    if code == POWER_OF_TWO:
        return _shorter_of_two(shown, free, uniforms[i, 0], uniforms[i, 1])
    if shown.queued.size == 0:
        return lightest_open(shown.load if code == JSQ_LOAD else shown.running, free)
    best, best_signal = 0, _signal(code, 0, shown)
    for g in range(1, G):
        signal = _signal(code, g, shown)
        if signal < best_signal:
            best, best_signal = g, signal
    return best


@kernel
def _shorter_of_two(shown: Shown, free: Ints, u: float, v: float) -> int:
    """Of two workers drawn by uniform numbers, return the one with fewer requests; ties: lower number."""
    num_open = _num_open(free, shown.load.size)
    a = b = int(u * num_open)
    if num_open > 1:
        b = int(v * (num_open - 1))
        if b >= a:
            b += 1
    first, second = _nth_open(free, min(a, b)), _nth_open(free, max(a, b))
    more = shown.running[first] - shown.running[second]
    if shown.queued.size > 0:
        more += shown.queued[first] - shown.queued[second]
    return second if more > 0 else first


@kernel
def _num_open(free: Ints, G: int) -> int:
    """How many workers may be picked."""
    if free.size == 0:
        return G
    count = 0
    for g in range(G):
        count += free[g] > 0
    return count


@kernel
def _nth_open(free: Ints, n: int) -> int:
    """Worker number n, counting only workers that may be picked."""
    if free.size == 0:
        return n
    for g in range(free.size):
        if free[g] > 0:
            if n == 0:
                return g
            n -= 1
    return -1


@kernel
def _signal(code: int, g: int, shown: Shown) -> int:
    """Return the signal of worker g, of which the least is picked."""
    if code == VLLM:
        return 4 * shown.queued[g] + shown.running[g]
    if code == JSQ:
        return shown.queued[g] + shown.running[g]
    return shown.load[g] + shown.queued_tokens[g]
