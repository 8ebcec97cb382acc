"""BR-H, one round: batches scored over a window of H + 1 steps, in exact integers (balance_route.md 2.2 to 2.4, 3).

Every worker comes with its projected loads Lbar[g][0..H]; the envelope is M_h = max over g of Lbar[g][h], the margins
are m_h = M_h - Lbar[g][h]. Discounts enter as integer weights, a reward r_h and a penalty p_h per step, so that no
comparison depends on rounding. A batch that adds d_h tokens in step h scores

    F = sum over h of r_h * d_h - p_h * max(0, d_h - m_h)          (equation (2))

where d_h is the summed prompt length in every h ("constant"), or the sum of given profiles. Envelope and margins are
made anew after each admission. Loops over everything, nothing kept between two questions.
"""

import math
from collections.abc import Sequence
from itertools import combinations

WAITS = -1

Act = tuple[int, list[int], int]


def weights(horizon: int, alpha: float, beta: float, gamma: float, shift: int) -> tuple[list[int], list[int]]:
    """Rewards alpha * gamma**h and penalties beta * gamma**h of h = 0..H, times 2**shift, each rounded by itself."""
    rewards = [round(alpha * gamma**h * 2**shift) for h in range(horizon + 1)]
    penalties = [round(beta * gamma**h * 2**shift) for h in range(horizon + 1)]
    return rewards, penalties


def envelope(projected: Sequence[Sequence[int]]) -> list[int]:
    """M_h = max over the workers of their projected load at h."""
    return [max(row[h] for row in projected) for h in range(len(projected[0]))]


def margins_of(worker: int, projected: Sequence[Sequence[int]]) -> list[int]:
    """m_h = M_h - Lbar[g][h] of one worker."""
    return [top - load for top, load in zip(envelope(projected), projected[worker], strict=True)]


def horizon_score(
    added: Sequence[int], margins: Sequence[int], rewards: Sequence[int], penalties: Sequence[int]
) -> int:
    """F of a batch that adds `added[h]` tokens in step h."""
    total = 0
    for h in range(len(margins)):
        total += rewards[h] * added[h] - penalties[h] * max(0, added[h] - margins[h])
    return total


def peak(margins: Sequence[int], rewards: Sequence[int], penalties: Sequence[int]) -> int | None:
    """The least total with the largest F in the constant mode, equation (2a); None where F rises for ever.

    The least margin at which the penalties of all margins up to it outweigh the reward.
    """
    for margin in sorted(margins):
        if sum(p for p, m in zip(penalties, margins, strict=True) if m <= margin) >= sum(rewards):
            return margin
    return None


def project(
    actives: Sequence[tuple[int, float]], horizon: int, growth: int, cut: str = "cut", boundary: str = "alive"
) -> list[int]:
    """One worker's projected loads of h = 0..H, from (present load w, predicted remaining steps c) of its requests.

    "cut": w + growth * h while h < c; "fractional": (w + growth * h) * min(1, max(0, c - h)), rounded down request by
    request. With boundary "alive" a c of H or more counts fully at every h, h = H included; "literal" has no such
    exception (equation (7), sections 2.4 and 9).
    """
    if cut not in ("cut", "fractional"):
        raise ValueError(f"unknown cut {cut!r}")
    if boundary not in ("alive", "literal"):
        raise ValueError(f"unknown boundary {boundary!r}")
    loads = [0] * (horizon + 1)
    for load, remaining in actives:
        for h in range(horizon + 1):
            tokens = load + growth * h
            if boundary == "alive" and remaining >= horizon:
                loads[h] += tokens
            elif cut == "cut":
                if h < remaining:
                    loads[h] += tokens
            else:
                loads[h] += math.floor(tokens * min(1, max(0, remaining - h)))
    return loads


def window_positions(waiting: Sequence[int], sizes: Sequence[int], window_size: int, window_order: str) -> list[int]:
    """The first requests of the pool in window order; `waiting` is in order of revelation."""
    if window_order == "size":
        ordered = sorted(waiting, key=lambda request: (-sizes[request], request))
    elif window_order == "arrival":
        ordered = list(waiting)
    else:
        raise ValueError(f"unknown window order {window_order!r}")
    return ordered[:window_size]


def worker_with_most_slots(capacity: Sequence[int], projected: Sequence[Sequence[int]]) -> int:
    """The worker of stage 1; ties: smaller present load, then smaller index."""
    best = 0
    for worker in range(1, len(capacity)):
        if capacity[worker] > capacity[best] or (
            capacity[worker] == capacity[best] and projected[worker][0] < projected[best][0]
        ):
            best = worker
    return best


def worker_with_largest_key(capacity: Sequence[int], projected: Sequence[Sequence[int]], key: str) -> int:
    """The worker of stage 2, by its free slots and the least margin of its window; ties: smaller index."""
    best = -1
    best_key: tuple[int, ...] = ()
    for worker in range(len(capacity)):
        if capacity[worker] == 0:
            continue
        least = min(margins_of(worker, projected))
        if key == "lexicographic":
            worker_key: tuple[int, ...] = (capacity[worker], least)
        elif key == "product":
            worker_key = (capacity[worker] * least,)
        else:
            raise ValueError(f"unknown key {key!r}")
        if best < 0 or worker_key > best_key:
            best = worker
            best_key = worker_key
    return best


class Round:
    """The state of one round: what is free, what waits, what was done."""

    def __init__(
        self,
        projected: Sequence[Sequence[int]],
        free: Sequence[int],
        sizes: Sequence[int],
        rewards: Sequence[int],
        penalties: Sequence[int],
        profile: Sequence[Sequence[int]] | None,
    ) -> None:
        self.projected = [list(row) for row in projected]
        self.capacity = list(free)
        self.sizes = list(sizes)
        self.rewards = rewards
        self.penalties = penalties
        self.profile = profile
        self.waiting = list(range(len(sizes)))
        self.acts: list[Act] = []

    def added(self, batch: Sequence[int]) -> list[int]:
        """Tokens that the batch adds in each step of the window."""
        steps = range(len(self.projected[0]))
        if self.profile is None:
            return [sum(self.sizes[request] for request in batch) for _ in steps]
        return [sum(self.profile[request][h] for request in batch) for h in steps]

    def score(self, batch: Sequence[int], worker: int) -> int:
        """F of the batch on the worker, with the margins of this moment."""
        return horizon_score(self.added(batch), margins_of(worker, self.projected), self.rewards, self.penalties)

    def admit(self, batch: Sequence[int], worker: int) -> None:
        """Place the batch; the envelope follows from the projected loads."""
        self.acts.append((worker, list(batch), self.score(batch, worker)))
        for h, tokens in enumerate(self.added(batch)):
            self.projected[worker][h] += tokens
        for request in batch:
            self.waiting.remove(request)
            self.capacity[worker] -= 1

    def best_single(self, requests: Sequence[int], worker: int) -> int:
        """The request of largest F; ties: larger size, then earlier in the order of `requests`."""
        best = requests[0]
        for request in requests[1:]:
            value, best_value = self.score([request], worker), self.score([best], worker)
            if value > best_value or (value == best_value and self.sizes[request] > self.sizes[best]):
                best = request
        return best

    def best_subset(self, window: Sequence[int], worker: int) -> list[int]:
        """The non-empty subset of largest F that the worker has slots for.

        Ties: larger total size, then fewer requests, then the one that holds the lowest window position in which two
        sets differ (sets of one size come in that order).
        """
        best: list[int] = []
        best_key = (0, 0, 0)
        for count in range(1, min(self.capacity[worker], len(window)) + 1):
            for batch in combinations(window, count):
                total = sum(self.sizes[request] for request in batch)
                batch_key = (self.score(batch, worker), total, -count)
                if not best or batch_key > best_key:
                    best = list(batch)
                    best_key = batch_key
        return best


def br_h_trace(
    projected: Sequence[Sequence[int]],
    free: Sequence[int],
    sizes: Sequence[int],
    waited: Sequence[int],
    *,
    rewards: Sequence[int],
    penalties: Sequence[int],
    stage_switch: int,
    window_size: int,
    window_order: str,
    key: str,
    age_bound: int | None,
    profile: Sequence[Sequence[int]] | None = None,
) -> list[Act]:
    """One round of BR-H as a list of acts: worker, requests placed in window order, F at that moment.

    `projected[g]` are the H + 1 projected loads of worker g, `free[g]` its slots; `sizes` and `waited` belong to the
    waiting requests in order of revelation (so `waited` never rises), `profile[i]` to request i where given. Overdue
    requests go first, one by one; then stage 1 while more than `stage_switch` slots are free; then stage 2.
    """
    here = Round(projected, free, sizes, rewards, penalties, profile)

    if age_bound is not None:
        for request in range(len(sizes)):
            if waited[request] < age_bound or sum(here.capacity) == 0:
                continue
            best = -1
            for worker in range(len(free)):
                if here.capacity[worker] == 0:
                    continue
                if best < 0:
                    best = worker
                    continue
                value, best_value = here.score([request], worker), here.score([request], best)
                if value > best_value or (value == best_value and here.projected[worker][0] < here.projected[best][0]):
                    best = worker
            here.admit([request], best)

    while sum(here.capacity) > stage_switch and here.waiting:
        worker = worker_with_most_slots(here.capacity, here.projected)
        here.admit([here.best_single(here.waiting, worker)], worker)

    while sum(here.capacity) > 0 and here.waiting:
        worker = worker_with_largest_key(here.capacity, here.projected, key)
        window = window_positions(here.waiting, sizes, window_size, window_order)
        batch = here.best_subset(window, worker)
        if here.score(batch, worker) <= 0:
            batch = [here.best_single(window, worker)]
        here.admit(batch, worker)
    return here.acts


def br_h(
    projected: Sequence[Sequence[int]],
    free: Sequence[int],
    sizes: Sequence[int],
    waited: Sequence[int],
    *,
    rewards: Sequence[int],
    penalties: Sequence[int],
    stage_switch: int,
    window_size: int,
    window_order: str,
    key: str,
    age_bound: int | None,
    profile: Sequence[Sequence[int]] | None = None,
) -> list[int]:
    """The worker of each waiting request after one round of BR-H, or -1 where it keeps waiting."""
    placement = [WAITS] * len(sizes)
    for worker, batch, _ in br_h_trace(
        projected,
        free,
        sizes,
        waited,
        rewards=rewards,
        penalties=penalties,
        stage_switch=stage_switch,
        window_size=window_size,
        window_order=window_order,
        key=key,
        age_bound=age_bound,
        profile=profile,
    ):
        for request in batch:
            placement[request] = worker
    return placement
