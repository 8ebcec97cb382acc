"""A problem under conditions as the compiled search reads it: classes of requests, workers that decide, and modes.

Requests that nothing tells apart are one class, in the order of their first members. A worker decides something where
it can take a request, or has a running request that may pause. It takes at most so many requests as its slots and its
resources permit, and every slot of these is filled, by a request or a *blank*. How many blanks there are says how many
requests are admitted. Which of a worker's running requests pause is a mode: of two sets that take as much off the load
the one that costs less is kept, and of two that cost as much the one that takes more off.

Everything is exact in 64 bits; what is too large for that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lbopt.kernels.conditions.state import FORBIDDEN, Step
from lbopt.model import StepProblem
from lbopt.model.integers import BoolArray, IntArray

#: Slots that a worker may fill; pauses that a worker may choose among.
MOST_SLOTS, MOST_PAUSES = 16, 10

#: Units of a price in a unit of value, at most.
_SCALE = 4096

_LARGEST = 1 << 60

#: Classes times workers up to which the search is started.
_MOST_PAIRS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """What does not depend on the goal: classes, workers, modes.

    Parameters
    ----------
    members
        Of each class, the requests.
    workers
        int64 (W,): the workers that decide.
    fits
        bool (K, W): whether a worker may take a request of a class if it takes nothing else.
    work, costs, must
        int64 (K, W), in units of pace; int64 (K,), bool (K,).
    needs, rooms
        int64 (2, K) and (2, W).
    slots
        int64 (W,): most requests that a worker can take.
    load
        int64 (W,): before, in units of pace.
    modes
        Of each worker, what a mode takes off its load, what it costs beyond that, and who pauses.
    all_workers, total, heaviest
        G; loads before of all workers; the largest of those that decide nothing.
    """

    members: list[list[int]]
    workers: IntArray
    fits: BoolArray
    work: IntArray
    costs: IntArray
    must: BoolArray
    needs: IntArray
    rooms: IntArray
    slots: IntArray
    load: IntArray
    modes: list[list[tuple[int, int, tuple[int, ...]]]]
    all_workers: int
    total: int
    heaviest: int

    @property
    def copies(self) -> IntArray:
        """Requests of each class, int64 (K,)."""
        return np.array([len(one) for one in self.members], dtype=np.int64)

    @property
    def most(self) -> int:
        """Requests that can be admitted at most, as `lbopt.model.floors.Floors.most_admitted` counts them."""
        return min(int(self.copies[self.fits.any(axis=1)].sum()), int(self.slots.sum()))


def classes_of(problem: StepProblem) -> Classes | None:
    """Return the classes of a problem under conditions at H = 0; None where the search does not take it."""
    conditions = problem.conditions
    assert conditions is not None, "a plain problem has another search"
    G, N = problem.num_workers, problem.num_requests
    if problem.horizon > 0 or N == 0 or N * G > _MOST_PAIRS:
        return None
    pace = np.ones(G, dtype=np.int64) if conditions.pace is None else conditions.pace
    sizes, costs = problem.work[:, 0], np.zeros(N, dtype=np.int64)
    if conditions.waiting_cost is not None:
        costs = conditions.waiting_cost
    resources = conditions.resources
    if any(int(resource.need.max()) * MOST_SLOTS > _LARGEST for resource in resources):
        return None
    columns: list[Any] = [sizes[:, None], problem.must_admit[:, None], costs[:, None]]
    columns += [resource.need[:, None] for resource in resources]
    columns += [table for table in (conditions.allowed, conditions.credit) if table is not None]
    table = np.ascontiguousarray(np.concatenate([part.astype(np.int64) for part in columns], axis=1))
    groups: dict[bytes, list[int]] = {}
    for i in range(N):
        groups.setdefault(table[i].tobytes(), []).append(i)
    members = list(groups.values())
    first = np.array([one[0] for one in members], dtype=np.int64)
    largest = max(1, int(sizes.max())) * int(pace.max())
    if largest * 4 > _LARGEST or sum(pace.tolist()[g] * load for g, load in enumerate(problem.base[:, 0].tolist())) > (
        _LARGEST // max(1, G)
    ):
        return None
    fits = np.ones((first.size, G), dtype=np.bool_) if conditions.allowed is None else conditions.allowed[first].copy()
    fits &= problem.slots > 0
    needs, rooms = np.zeros((2, first.size), dtype=np.int64), np.zeros((2, G), dtype=np.int64)
    for r, resource in enumerate(resources):
        needs[r], rooms[r] = resource.need[first], resource.limit
        fits &= needs[r][:, None] <= rooms[r]
    work = np.broadcast_to(sizes[first][:, None], fits.shape)
    if conditions.credit is not None:
        work = work - conditions.credit[first]
    work = work * pace
    copies = np.array([len(one) for one in members], dtype=np.int64)
    slots = _most_on(problem.slots, fits, copies, needs, rooms, len(resources))
    modes = _modes(problem, pace)
    if modes is None or slots.max() > MOST_SLOTS:
        return None
    decides = slots > 0
    decides[[g for g, own in enumerate(modes) if len(own) > 1]] = True
    load = problem.base[:, 0] * pace
    chosen = np.flatnonzero(decides)
    if chosen.size == 0:
        return None
    return Classes(
        members=members,
        workers=chosen,
        fits=fits[:, chosen],
        work=work[:, chosen],
        costs=costs[first],
        must=problem.must_admit[first],
        needs=needs,
        rooms=rooms[:, chosen],
        slots=slots[chosen],
        load=load[chosen],
        modes=[modes[g] for g in chosen],
        all_workers=G,
        total=int(load.sum()),
        heaviest=int(load[~decides].max(initial=0)),
    )


def _most_on(
    free: IntArray, fits: BoolArray, copies: IntArray, needs: IntArray, rooms: IntArray, resources: int
) -> IntArray:
    """Return how many requests each worker can take at most, int64 (G,).

    Parameters
    ----------
    free
        int64 (G,): free slots.
    fits
        bool (K, G).
    copies
        int64 (K,).
    needs, rooms
        int64 (2, K) and (2, G).
    """
    most: IntArray = np.minimum(free, copies @ fits)
    for r in range(resources):
        order = np.argsort(needs[r], kind="stable")
        need, count = needs[r][order], copies[order]
        for g in np.flatnonzero(most > 0):
            mine = fits[order, g]
            each = np.repeat(need[mine], np.minimum(count[mine], most[g]))[: most[g]]
            most[g] = min(int(most[g]), int((np.cumsum(each) <= rooms[r, g]).sum()))
    return most


def _modes(problem: StepProblem, pace: IntArray) -> list[list[tuple[int, int, tuple[int, ...]]]] | None:
    """Return the modes of each worker, the first of which pauses no request; None where there are too many."""
    conditions = problem.conditions
    modes: list[list[tuple[int, int, tuple[int, ...]]]] = [[(0, 0, ())] for _ in range(problem.num_workers)]
    if conditions is None or conditions.running_worker is None:
        return modes
    assert conditions.running_work is not None and conditions.pause_cost is not None, "they come together"
    if np.bincount(conditions.running_worker).max() > MOST_PAUSES:
        return None
    for r, g in enumerate(conditions.running_worker.tolist()):
        cut, cost = int(pace[g]) * int(conditions.running_work[r, 0]), int(conditions.pause_cost[r])
        modes[g] += [(tokens + cut, price + cost, (*who, r)) for tokens, price, who in modes[g]]
    return [_worthwhile(own) for own in modes]


def _worthwhile(modes: list[tuple[int, int, tuple[int, ...]]]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Keep the modes that no other one replaces: one that takes as much off and costs no more with its work counted."""
    kept: list[tuple[int, int, tuple[int, ...]]] = []
    for cut, cost, who in sorted(modes, key=lambda one: (-one[0], one[0] + one[1], len(one[2]))):
        if not kept or cut + cost < kept[-1][0] + kept[-1][1]:
            kept.append((cut, cost, who))
    return kept[::-1]


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """What a search makes least, and how many requests it admits.

    Parameters
    ----------
    name
        "left_waiting", "overdue" or "objective".
    blanks
        Slots that stay empty at most.
    exactly
        Whether exactly so many stay empty.
    weight
        What a unit of waiting cost adds to the objective.
    forced
        bool (K,): classes all of which are admitted.
    """

    name: str
    blanks: int
    exactly: bool
    weight: int
    forced: BoolArray


def step_of(classes: Classes, goal: Goal, heavy: bool = False) -> tuple[Step, int, int] | None:
    """Return the decision for the compiled search, and the least and the largest envelope; None where it is too large.

    Parameters
    ----------
    goal
        What is made least.
    heavy
        Whether prices have to rule out that no decision exists: then breaking a rule costs more than all is worth.
    """
    K, W = classes.fits.shape
    counts = goal.name == "objective"
    fits = np.ones((W, K + 1), dtype=np.bool_)
    fits[:, :K] = classes.fits.T
    work, value = np.zeros((W, K + 1), dtype=np.int64), np.zeros((W, K + 1), dtype=np.int64)
    if counts:
        work[:, :K] = classes.work.T
    spent = goal.weight * sum(c * len(one) for c, one in zip(classes.costs.tolist(), classes.members, strict=True))
    if spent > _LARGEST:
        return None
    if goal.name == "left_waiting":
        value[:, :K] = 1
    else:
        value[:, :K] = work[:, :K] + goal.weight * classes.costs
    value[~fits] = 0
    modes = classes.modes if counts else [[(0, 0, ())] for _ in range(W)]
    first = np.concatenate([[0], np.cumsum([len(own) for own in modes])])
    cut = np.array([one[0] for own in modes for one in own], dtype=np.int64)
    worth = np.array([-one[0] - one[1] for own in modes for one in own], dtype=np.int64)
    load = classes.load if counts else np.zeros(W, dtype=np.int64)
    slots = classes.slots
    top, Q = int(value.max(initial=0)) + int(cut.max(initial=0)) + 1, int(slots.max(initial=1))
    lost = int(-sum(worth[first[w] : first[w + 1]].min() for w in range(W)))
    forced = np.append(goal.forced, goal.exactly)
    everything = 2 * W * Q * top + lost
    bonus = (everything if heavy else 4 * (Q + 1) * top) if forced.any() else 0
    penalty = 2 * Q * W * (top + bonus) + lost if heavy else 8 * (Q + 1) * (top + bonus)
    scale, all_copies = _SCALE, sum(map(len, classes.members)) + goal.blanks + W * Q + 2
    while scale and (penalty * all_copies + lost) * scale > _LARGEST:
        scale //= 2
    if scale == 0:
        return None
    copies = np.append(classes.copies, goal.blanks)
    floor = np.where(forced, -bonus * scale, 0)
    work[~fits] = FORBIDDEN
    room = np.clip(classes.rooms, 0, MOST_SLOTS * int(classes.needs.max(initial=0)))
    if not classes.needs.any():
        room = np.full((2, W), 1, dtype=np.int64)
    step = Step(
        value=value,
        work=work,
        need=np.concatenate([classes.needs, np.zeros((2, 1), dtype=np.int64)], axis=1),
        room=np.ascontiguousarray(room),
        copies=copies,
        floor=floor,
        load=np.ascontiguousarray(load),
        slots=slots,
        order=np.lexsort((classes.fits.sum(axis=0), -load, slots)),
        mode_first=first,
        mode_cut=cut,
        mode_value=worth,
        workers=classes.all_workers if counts else 0,
        total=classes.total - spent if counts else -spent if goal.name == "overdue" else -sum(classes.copies.tolist()),
        heaviest=classes.heaviest if counts else 0,
        scale=scale,
        bonus=bonus,
        penalty=penalty,
    )
    if not counts:
        return step, 0, 0
    least, most = _envelopes(classes, goal)
    return (step, least, most) if classes.all_workers * most <= _LARGEST else None


def _envelopes(classes: Classes, goal: Goal) -> tuple[int, int]:
    """Return the least and the largest envelope that a decision can have."""
    least = most = classes.heaviest
    for w in range(classes.workers.size):
        cut = max(one[0] for one in classes.modes[w])
        q = int(classes.slots[w])
        sums = np.sort(
            np.repeat(classes.work[classes.fits[:, w], w], np.minimum(classes.copies[classes.fits[:, w]], q))
        )
        fewest = max(0, q - goal.blanks)
        least = max(least, int(classes.load[w]) - cut + int(sums[:fewest].sum()))
        most = max(most, int(classes.load[w]) + int(sums[sums.size - q :].sum() if q else 0))
    return least, most
