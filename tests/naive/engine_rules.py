"""Rules of serving engines and their routers, 2026 (FIELD.md, section 1)."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from naive.pooled_rules import WAITS, workers_with_a_free_slot

ENGINE_RULES = (
    "vllm_2026",
    "sglang",
    "tpu_inference",
    "smg",
    "dynamo",
    "llm_d",
    "lmdeploy",
    "lightllm",
    "vllm_ascend",
)


@dataclass
class Seen:
    """One worker as a front end sees it, and the prompts of what that front end sent there and has not ended."""

    load: int = 0
    running: int = 0
    queued: int = 0
    queued_tokens: int = 0
    own_prompts: list[int] = field(default_factory=list)

    def share(self, capacity: int | None) -> float:
        """Of the KV cache in use; 0 where nobody knows how much there is."""
        return 0.0 if capacity is None else self.load / capacity


def llm_d_part(value: int, values: Sequence[int]) -> float:
    """(max - n) / (max - min), 1 if all are equal."""
    if max(values) == min(values):
        return 1.0
    return (max(values) - value) / (max(values) - min(values))


def engine_scores(name: str, workers: Sequence[Seen], capacity: int | None, front_ends: int) -> list[tuple[float, ...]]:
    """What the rule minimises, one tuple a worker, compared in order; the request to be sent adds alike everywhere."""
    scores: list[tuple[float, ...]] = []
    for one in workers:
        w, r, u = one.queued, one.running, one.share(capacity)
        if name == "vllm_2026":
            score = max(front_ends * len(one.own_prompts), w + r)
            penalty = 6 * w * max(0.0, u - 0.5) if w > 0 else 0.0
            scores.append((score + penalty,))
        elif name == "sglang":
            scores.append((one.load + one.queued_tokens, w + r))
        elif name == "tpu_inference":
            scores.append((one.queued_tokens, w + r))
        elif name == "smg":
            u = min(u, 0.999)
            scores.append((one.queued_tokens / 2000 + 0.15 * u / (1 - u),))
        elif name == "dynamo":
            scores.append((sum(math.ceil(prompt / 16) for prompt in one.own_prompts),))
        elif name == "llm_d":
            queue = llm_d_part(w, [other.queued for other in workers])
            active = llm_d_part(r, [other.running for other in workers])
            scores.append((-(queue + active + (1 - u)),))
        elif name == "lmdeploy":
            scores.append((len(one.own_prompts),))
        elif name == "lightllm":
            scores.append((r + w,))
        elif name == "vllm_ascend":
            scores.append((sum(one.own_prompts),))
        else:
            raise ValueError(f"unknown rule {name!r}")
    return scores


def bind_of_engine(
    name: str,
    workers: Sequence[Seen],
    uniform: float,
    start: int,
    capacity: int | None = None,
    front_ends: int = 1,
    eligible: Sequence[int] | None = None,
) -> tuple[int, int]:
    """The worker of a request, and where the next scan of vllm starts.

    Ties: vllm the first from `start` on, which moves on by one; dynamo, llm_d, lmdeploy and lightllm entry
    floor(u * n) of the n equal ones; the others the lowest number. `eligible` None: all workers.
    """
    chosen = list(range(len(workers))) if eligible is None else list(eligible)
    scores = engine_scores(name, [workers[worker] for worker in chosen], capacity, front_ends)
    best = [worker for worker, score in zip(chosen, scores, strict=True) if score == min(scores)]
    if name == "vllm_2026":
        distance = [(worker - start) % len(workers) for worker in best]
        return best[distance.index(min(distance))], (start + 1) % len(workers)
    if name in ("dynamo", "llm_d", "lmdeploy", "lightllm"):
        return best[math.floor(uniform * len(best))], start
    return best[0], start


def place_of_engine(
    name: str,
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    running: Sequence[int],
    uniforms: Sequence[tuple[float, float]],
    start: int,
) -> list[int]:
    """The pooled form: each request in turn among workers with a free slot, where nothing is queued."""
    free = list(slots)
    workers = [Seen(load, count, own_prompts=[0] * count) for load, count in zip(loads, running, strict=True)]
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        worker, start = bind_of_engine(name, workers, uniforms[request][0], start, eligible=eligible)
        placement[request] = worker
        free[worker] -= 1
        workers[worker].load += sizes[request]
        workers[worker].running += 1
        workers[worker].own_prompts.append(sizes[request])
    return placement


def tensorrt_llm(prompts: Sequence[Sequence[int]], most_per_rank: int, sizes: Sequence[int]) -> list[int]:
    """TensorRT-LLM's attention-DP router without wished ranks; `prompts[g]` are those of the active requests of rank g.

    The oldest that fit are fetched; longest first onto a heap of (prompt tokens of active ones, count, rank), which a
    rank leaves at min(max(ceil((active + new) / G), most active), B).
    """
    num_ranks = len(prompts)
    active = sum(len(of_rank) for of_rank in prompts)
    new = min(len(sizes), num_ranks * most_per_rank - active)
    fair = -(-(active + new) // num_ranks)
    leaves_at = min(max(fair, max(len(of_rank) for of_rank in prompts)), most_per_rank)
    heap = [(sum(of_rank), len(of_rank), rank) for rank, of_rank in enumerate(prompts) if len(of_rank) < leaves_at]
    heapq.heapify(heap)
    placement = [WAITS] * len(sizes)
    for request in sorted(range(new), key=lambda request: -sizes[request]):
        tokens, count, rank = heapq.heappop(heap)
        placement[request] = rank
        if count + 1 < leaves_at:
            heapq.heappush(heap, (tokens + sizes[request], count + 1, rank))
    return placement
