"""Rules that take the pool in order of revelation and choose only the worker.

* `fill_in_order` (fcfs): worker 0 takes as many from the head as it has free slots, then worker 1, ... (BF-IO,
  algorithm 2, and the authors' simulator).
* `one_by_one`: each request in turn goes to one worker with a free slot, picked by the rule's signal: a turn
  (round-robin), a uniform number (random, power-of-two), running requests (jsq, vllm) or resident tokens (jsq-load).
* `bind`: the same signals when requests are bound on arrival to any worker, with or without a free slot.

Sources: the baselines of the BalanceRoute evaluation (arXiv 2605.06113) and BF-IO, appendix A.1.1; vllm's score is the
4 * waiting + running of vLLM's data-parallel balancer (vllm/v1/engine/core_client.py).
"""

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.codes import JSQ, JSQ_LOAD, POWER_OF_TWO, RANDOM, ROUND_ROBIN, VLLM


@kernel
def fill_in_order(free: Ints, pool_size: int, choice: Ints) -> int:
    """Fill worker 0, then worker 1, ... from the head of the pool; returns positions filled."""
    position = 0
    for g in range(free.size):
        for _ in range(free[g]):
            if position == pool_size:
                return position
            choice[position] = g
            position += 1
    return position


@kernel
def one_by_one(
    code: int,
    load: Ints,
    free: Ints,
    running: Ints,
    pool: Ints,
    prompt: Ints,
    uniforms: Floats,
    turn: Record,
    choice: Ints,
) -> int:
    """Send each request in turn to a worker with a free slot; returns positions filled.

    `load` (G,) tokens, `free` (G,), `running` (G,) and `turn` are changed in place; `uniforms` (., 2) is
    indexed by request number.

    Parameters
    ----------
    code
        The rule, see `codes`.
    load, free, running
        int64 (G,), tokens, free slots and running requests of each worker; changed in place.
    pool
        int64 (n,), request numbers in order of revelation.
    prompt
        int64 (N,), tokens, by request number.
    choice
        int64 (>= n,), written: the worker of each pool position, or -1.
    uniforms
        float64 (N, 2) in [0, 1), by request number; may be empty for rules that draw nothing.
    turn
        `state.TURN`; changed in place.
    """
    G = load.size
    slots = 0
    open_workers = 0
    for g in range(G):
        slots += free[g]
        if free[g] > 0:
            open_workers += 1
    reach = min(slots, pool.size)
    for position in range(reach):
        i = pool[position]
        if code == ROUND_ROBIN:
            w = turn.next_worker
            while free[w] == 0:
                w = (w + 1) % G
            turn.next_worker = (w + 1) % G
        elif code == RANDOM:
            w = _nth_open(free, int(uniforms[i, 0] * open_workers))
        elif code == POWER_OF_TWO:
            a = int(uniforms[i, 0] * open_workers)
            b = a
            if open_workers > 1:
                b = int(uniforms[i, 1] * (open_workers - 1))
                if b >= a:
                    b += 1
            w = _nth_open(free, min(a, b))
            other = _nth_open(free, max(a, b))
            if running[other] < running[w]:
                w = other
        else:
            signal = load if code == JSQ_LOAD else running  # JSQ, and VLLM: nothing queues at a worker in this form
            w = -1
            for g in range(G):
                if free[g] > 0 and (w < 0 or signal[g] < signal[w]):
                    w = g
        choice[position] = w
        load[w] += prompt[i]
        running[w] += 1
        free[w] -= 1
        if free[w] == 0:
            open_workers -= 1
    return reach


@kernel
def _nth_open(free: Ints, n: int) -> int:
    """Worker number n, counting only workers with a free slot."""
    for g in range(free.size):
        if free[g] > 0:
            if n == 0:
                return g
            n -= 1
    return -1


@kernel
def bind(
    code: int, i: int, load: Ints, running: Ints, queued: Ints, queued_tokens: Ints, uniforms: Floats, turn: Record
) -> int:
    """Return the worker to which request `i` is bound on arrival; `turn` is changed in place.

    Parameters
    ----------
    code, i
        The rule, see `codes`, and the request.
    load, running, queued, queued_tokens
        int64 (G,), resident tokens, running requests, and requests and tokens queued at each worker.
    uniforms
        float64 (N, 2) in [0, 1), by request number; may be empty for rules that draw nothing.
    turn
        `state.TURN`; changed in place.
    """
    G = load.size
    if code == ROUND_ROBIN:
        w = turn.next_worker
        turn.next_worker = (w + 1) % G
        return w
    if code == RANDOM:
        return int(uniforms[i, 0] * G)
    if code == POWER_OF_TWO:
        a = int(uniforms[i, 0] * G)
        if G == 1:
            return a
        b = int(uniforms[i, 1] * (G - 1))
        if b >= a:
            b += 1
        first, second = min(a, b), max(a, b)
        if running[second] + queued[second] < running[first] + queued[first]:
            return second
        return first
    best = 0
    best_score = _score(code, 0, load, running, queued, queued_tokens)
    for g in range(1, G):
        score = _score(code, g, load, running, queued, queued_tokens)
        if score < best_score:
            best, best_score = g, score
    return best


@kernel
def _score(code: int, g: int, load: Ints, running: Ints, queued: Ints, queued_tokens: Ints) -> int:
    """Return the signal of worker g, of which the least is chosen.

    Parameters
    ----------
    code, g
        The rule, see `codes`, and the worker.
    load, running, queued, queued_tokens
        int64 (G,), resident tokens, running requests, and requests and tokens queued at each worker.
    """
    if code == VLLM:
        return 4 * queued[g] + running[g]
    if code == JSQ:
        return queued[g] + running[g]
    return load[g] + queued_tokens[g]
