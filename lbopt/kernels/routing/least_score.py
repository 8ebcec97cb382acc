"""Rules of serving engines of 2026 that take the worker of least score: one scan, a score by code, ties by code.

`w` requests queued, `r` running, `u` share of the KV cache in use (0 where no capacity is known), C front ends:

* vllm: max(C * own in flight, w + r), plus 6 w max(0, u - 1/2); the first that the scan meets, which begins one worker
  further at each decision;
* sglang: tokens resident and queued, then requests; lowest number;
* tpu-inference: queued prompt tokens, then w + r; lowest number; where workers compute prompts, the
  tokens to compute;
* smg: queued tokens / 2000 + 0.15 u / (1 - u), u at most 0.999; lowest number;
* dynamo: blocks of the prompts in its books; any of the equal ones (blocks of the request itself add alike everywhere);
  where workers compute prompts, the blocks to compute beside them;
* llm-d: minus the sum of (most - w) / (most - least), the same of r, and 1 - u; any of the equal ones;
* lmdeploy: own in flight; lightllm: r + w; any of the equal ones;
* vllm-ascend: tokens of the prompts in its books; lowest number.

Scores are float64; tokens are exact in them up to 2**53. Files and commits of the sources: `policies.engine_rules`.
"""

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.codes import (
    BLOCK,
    DYNAMO,
    LIGHTLLM,
    LLM_D,
    LMDEPLOY,
    SGLANG,
    SMG,
    TPU_INFERENCE,
    VLLM_2026,
)
from lbopt.kernels.routing.state import Shown

#: smg: prompt tokens that a worker takes in a second, weight of the cache, and the largest share that it counts.
_THROUGHPUT = 2000.0
_CACHE_WEIGHT = 0.15
_FULLEST = 0.999


@kernel
def least_score(
    code: int,
    i: int,
    parameters: Record,
    shown: Shown,
    to_compute: Ints,
    free: Ints,
    uniforms: Floats,
    turn: Record,
) -> int:
    """Return the worker of least score of those that may be picked; arguments as of `fifo.bind`."""
    running, queued = shown.running, shown.queued
    everyone = free.size == 0
    G = shown.load.size
    w_least = w_most = r_least = r_most = -1  # of those that may be chosen, for llm-d
    if code == LLM_D:
        for g in range(G):
            if everyone or free[g] > 0:
                w_least = queued[g] if w_least < 0 else min(w_least, queued[g])
                r_least = running[g] if r_least < 0 else min(r_least, running[g])
                w_most, r_most = max(w_most, queued[g]), max(r_most, running[g])
    start = 0
    if code == VLLM_2026:
        start = turn.next_worker
        turn.next_worker = (start + 1) % G
    by_requests = code in (SGLANG, TPU_INFERENCE)
    best, ties, best_score, best_requests = -1, 0, 0.0, 0
    for k in range(G):
        g = start + k if start + k < G else start + k - G
        if everyone or free[g] > 0:
            bounds = (w_least, w_most, r_least, r_most)
            score = _score(code, g, parameters, shown, to_compute, bounds)
            requests = running[g] + queued[g] if by_requests else 0
            if best < 0 or score < best_score or (score == best_score and requests < best_requests):
                best, ties, best_score, best_requests = g, 1, score, requests
            elif score == best_score and requests == best_requests:
                ties += 1
    if ties == 1 or not _draws(code):
        return best
    nth = int(uniforms[i, 0] * ties)
    for g in range(best, G):  # such a scan begins at worker 0, so `best` is the first of the equal ones
        if everyone or free[g] > 0:
            bounds = (w_least, w_most, r_least, r_most)
            if _score(code, g, parameters, shown, to_compute, bounds) == best_score:
                if nth == 0:
                    return g
                nth -= 1
    return best


@kernel
def _draws(code: int) -> bool:
    """Return whether the rule takes any of equal workers."""
    return code in (DYNAMO, LLM_D, LMDEPLOY, LIGHTLLM)


@kernel
def _score(
    code: int,
    g: int,
    parameters: Record,
    shown: Shown,
    to_compute: Ints,
    bounds: tuple[int, int, int, int],
) -> float:
    """Return the score of worker g, of which the least is chosen.

    Parameters
    ----------
    bounds
        Least and most queued requests and least and most running ones, of the workers that may be picked; for llm-d.
    """
    load, running, queued, queued_tokens, own = shown
    if code == VLLM_2026:
        score = float(max(max(1, parameters.front_ends) * own[g], queued[g] + running[g]))
        if queued[g] > 0:
            score += queued[g] * 6.0 * max(0.0, _cache_share(load[g], parameters.kv_capacity) - 0.5)
        return score
    if code == SGLANG:
        return float(load[g] + queued_tokens[g])
    if code == TPU_INFERENCE:
        return float(to_compute[g] if to_compute.size > 0 else queued_tokens[g])
    if code == SMG:
        u = min(_cache_share(load[g], parameters.kv_capacity), _FULLEST)
        return queued_tokens[g] / _THROUGHPUT + _CACHE_WEIGHT * u / (1.0 - u)
    if code == LLM_D:
        w_least, w_most, r_least, r_most = bounds
        free_share = 1.0 - _cache_share(load[g], parameters.kv_capacity)
        return -(_lightness(queued[g], w_least, w_most) + _lightness(running[g], r_least, r_most) + free_share)
    if code == LIGHTLLM:
        return float(running[g] + queued[g])
    if code == DYNAMO and to_compute.size > 0:
        return float(own[g]) + to_compute[g] / BLOCK
    return float(own[g])  # DYNAMO, LMDEPLOY, VLLM_ASCEND


@kernel
def _lightness(value: int, least: int, most: int) -> float:
    """Return 1 at the least value and 0 at the most; 1 where all are equal."""
    return 1.0 if most == least else (most - value) / (most - least)


@kernel
def _cache_share(load: int, kv_capacity: int) -> float:
    """Return the share of a worker's KV cache in use, 0 where its capacity is not known."""
    return load / kv_capacity if kv_capacity > 0 else 0.0
