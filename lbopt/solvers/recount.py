"""The verifier's own arithmetic: plain lists and Python integers, the standard library, nothing else of lbopt.

Written a second time on purpose. Where `objective.py`, `floors.py` or an exhaustion had an error, this would have to
have the same one to hide it. The exhaustive search is another algorithm, too: it decides pause after pause and request
after request, and keeps the set of distinct states, a state being what each worker has free and holds.

A plain problem is one in which exactly U = min(N, free slots) requests are admitted and nothing else is asked.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbopt.model import StepProblem

Table = list[list[int]]
Worker = tuple[int, ...]  # free slots, what is free of each pool, load h=0, load h=1, ...
State = tuple[tuple[tuple[Worker, ...], ...], int, int, int]  # workers by kind, who waits, what that and pauses cost

#: Where a request has no worker that may take it: above every load.
_NO_END = 1 << 200

_ORDER = (
    *("capacity", "pace", "prefill_budget", "need", "prompt", "waiting_cost"),
    *("running_worker", "running_work", "pause_cost", "allowed", "credit"),
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A step problem as plain lists; `given` holds its conditions by their names, none for a plain one."""

    base: Table
    slots: list[int]
    work: Table
    must: list[bool]
    given: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: StepProblem) -> Numbers:
        """Return the numbers of a step problem."""
        given = {} if problem.conditions is None else problem.conditions.to_dict()
        return cls(
            problem.base.tolist(), problem.slots.tolist(), problem.work.tolist(), problem.must_admit.tolist(), given
        )

    @property
    def exactly(self) -> int | None:
        """How many requests have to be admitted; None where the conditions leave that open."""
        admit = self.given.get("admit", min(len(self.work), sum(self.slots)))
        return admit if isinstance(admit, int) else None

    @property
    def goals(self) -> list[str]:
        """What is made least before the objective."""
        first = ["left_waiting"] if self.given.get("admit") == "most" else []
        return first + (["overdue"] if self.given.get("overdue_first") else [])

    @property
    def pausing(self) -> list[tuple[int, int, int]]:
        """Worker, tokens in column 0, and price of each running request that may pause."""
        names = ("running_worker", "running_work", "pause_cost")
        workers, rows, prices = (self.given.get(name, []) for name in names)
        return [(g, row[0], price) for g, row, price in zip(workers, rows, prices, strict=True)]

    @property
    def pools(self) -> list[tuple[list[int], list[int]]]:
        """What is free on each worker and what each request takes of it, for each thing that is shared."""
        pairs = (("capacity", "need"), ("prefill_budget", "prompt"))
        return [(self.given[free], self.given[taken]) for free, taken in pairs if free in self.given]

    def price(self, i: int) -> int:
        """What it costs that request i waits."""
        return int(self.given["waiting_cost"][i]) if "waiting_cost" in self.given else 0

    def pace(self, g: int) -> int:
        """Time of a token on worker g."""
        return int(self.given["pace"][g]) if "pace" in self.given else 1

    def adds(self, i: int, g: int) -> list[int]:
        """What request i adds to the load of worker g at each step."""
        held = self.given["credit"][i][g] if "credit" in self.given else 0
        return [self.pace(g) * (w - held) if w else 0 for w in self.work[i]]

    def allows(self, i: int, g: int) -> bool:
        """Whether worker g is one that may take request i."""
        return "allowed" not in self.given or bool(self.given["allowed"][i][g])

    def may(self, i: int, g: int) -> bool:
        """Whether worker g could take request i if it took nothing else."""
        return self.slots[g] > 0 and self.allows(i, g) and all(taken[i] <= free[g] for free, taken in self.pools)

    def choices(self) -> list[dict[int, list[int]]]:
        """Return of each request {worker: what it adds there}, over the workers that may take it."""
        workers, requests = range(len(self.slots)), range(len(self.work))
        return [{g: self.adds(i, g) for g in workers if self.may(i, g)} for i in requests]

    def kinds(self, *, rooms: bool) -> list[list[int]]:
        """Return workers that add the same for the same requests; with `rooms` they have as much free, too."""
        tables = [self.given[name] for name in ("allowed", "credit") if name in self.given]
        groups: dict[tuple[Any, ...], list[int]] = {}
        for g, free in enumerate(self.slots):
            key = (self.pace(g), *(tuple(row[g] for row in table) for table in tables))
            free_here = (free, *(pool[g] for pool, _ in self.pools)) if rooms else ()
            groups.setdefault((*key, *free_here), []).append(g)
        return list(groups.values())


def digest(p: Numbers) -> str:
    """SHA-256 of the content, as `StepProblem.digest` defines it."""
    width, version = len(p.base[0]), 2 if p.given else 1
    sha = hashlib.sha256(f"lbopt-step-problem {version} {(len(p.base), width)} {(len(p.work), width)}".encode())
    for row in (*p.base, p.slots, *p.work):
        sha.update(struct.pack(f"<{len(row)}q", *row))
    sha.update(bytes(p.must))
    for name in _ORDER:
        if name in p.given:
            values = p.given[name]
            is_table = bool(values) and isinstance(values[0], list)
            rows = values if is_table else [values]
            shape = (len(values), len(values[0])) if is_table else (len(values),)
            sha.update(f" {name} {shape} ".encode())
            for row in rows:
                sha.update(struct.pack(f"<{len(row)}q", *row))
    if p.given:
        sha.update(f" admit {p.given['admit']} overdue_first {bool(p.given.get('overdue_first'))}".encode())
    return sha.hexdigest()


def loads_with(p: Numbers, workers: list[int], pauses: list[bool]) -> Table:
    """Return the loads after placing request i on workers[i] (-1 waits), with some running requests paused."""
    loads = [[p.pace(g) * load for load in row] for g, row in enumerate(p.base)]
    for (g, tokens, _), paused in zip(p.pausing, pauses, strict=True):
        if paused:
            loads[g][0] -= p.pace(g) * tokens
    for i, g in enumerate(workers):
        if g >= 0:
            loads[g] = [a + b for a, b in zip(loads[g], p.adds(i, g), strict=True)]
    return loads


def values_of(p: Numbers, workers: list[int], pauses: list[bool]) -> tuple[list[int], int, int]:
    """Return the goals that are reached, the objective, and G * sum_h M_h."""
    idle, barrier = idle_and_barrier(loads_with(p, workers, pauses))
    waiting = [i for i, g in enumerate(workers) if g < 0]
    overdue = sum(p.price(i) for i in waiting)
    reached = {"left_waiting": len(waiting), "overdue": overdue}
    cost = idle + (0 if "overdue" in p.goals else overdue)
    cost += sum(price for (_, _, price), paused in zip(p.pausing, pauses, strict=True) if paused)
    return [reached[goal] for goal in p.goals], cost, barrier


def idle_and_barrier(loads: Table) -> tuple[int, int]:
    """Return the imbalance and G * sum_h M_h."""
    barrier = len(loads) * sum(max(column) for column in zip(*loads, strict=True))
    return barrier - sum(map(sum, loads)), barrier


def shape_of(loads: Table) -> list[int]:
    """Return all loads from the largest down."""
    return sorted((load for row in loads for load in row), reverse=True)


def broken_rule(p: Numbers, workers: list[int]) -> str | None:
    """Name the first rule that the assignment breaks, or None."""
    if len(workers) != len(p.work):
        return f"it has {len(workers)} entries for {len(p.work)} requests"
    on: list[list[int]] = [[] for _ in p.slots]
    for i, g in enumerate(workers):
        if type(g) is not int or not -1 <= g < len(p.slots):
            return f"request {i} is sent to worker {g!r}, which does not exist"
        if g < 0 and p.must[i]:
            return f"request {i} waits but must be admitted"
        if g >= 0 and not p.allows(i, g):
            return f"request {i} is sent to worker {g}, which may not take it"
        if g >= 0:
            on[g].append(i)
    for g, (here, free) in enumerate(zip(on, p.slots, strict=True)):
        if len(here) > free:
            return f"worker {g} gets {len(here)} requests for {free} free slots"
        for room, taken in p.pools:
            if sum(taken[i] for i in here) > room[g]:
                return f"worker {g} gets {sum(taken[i] for i in here)} where {room[g]} are free"
    admitted = sum(map(len, on))
    if p.exactly not in (None, admitted):
        return f"{admitted} requests are admitted instead of {p.exactly}"
    return None


# ---------------------------------------------------------------------- elementary bounds


def lower_bounds(p: Numbers, admitted: int | None = None) -> list[int]:
    """Return elementary bounds on the goals and the objective; the proofs are in `lbopt/model/floors.py`.

    Parameters
    ----------
    admitted
        Requests that the decision in question admits; None for any decision.
    """
    kinds = p.kinds(rooms=True)
    options = [{j: p.adds(i, own[0]) for j, own in enumerate(kinds) if p.may(i, own[0])} for i in range(len(p.work))]
    places = [0] * len(p.slots)
    for j, own in enumerate(kinds):
        mine = [i for i, one in enumerate(options) if j in one]
        for g in own:
            places[g] = most_on(p, g, mine)
    can = [i for i, one in enumerate(options) if one]
    most, least = min(len(can), sum(places)), sum(p.must)
    floors = {"left_waiting": len(p.work) - most}
    if p.exactly is not None:
        least, most = max(least, p.exactly), min(most, p.exactly)
    if "left_waiting" in p.goals and admitted is not None:
        least = most = admitted
    stay = sum(p.price(i) for i, one in enumerate(options) if not one)
    free = sorted(p.price(i) for i in can if not p.must[i])
    floors["overdue"] = stay + sum(free[: max(0, len(can) - most)])
    idle = _Idle(p, kinds, [options[i] for i in can], [p.must[i] for i in can], places)
    objective = idle.least(least, most) + (0 if "overdue" in p.goals else floors["overdue"])
    return [*(floors[goal] for goal in p.goals), objective]


def most_on(p: Numbers, g: int, mine: list[int]) -> int:
    """Return how many of the requests `mine` worker g can take at most."""
    most = min(p.slots[g], len(mine))
    for free, taken in p.pools:
        held = count = 0
        for need in sorted(taken[i] for i in mine):
            held += need
            if held > free[g]:
                break
            count += 1
        most = min(most, count)
    return most


class _Idle:
    """What is idle at least where from `least` to `most` requests are admitted, in units that divide all of it.

    Parameters
    ----------
    p, kinds
        The problem, and workers that nothing but their loads tells apart.
    options, must
        Of each request that some worker may take: {kind of workers: what it adds}, and whether it has to be admitted.
    places
        Most requests that each worker can take.
    """

    def __init__(
        self,
        p: Numbers,
        kinds: list[list[int]],
        options: list[dict[int, list[int]]],
        must: list[bool],
        places: list[int],
    ) -> None:
        full = loads_with(p, [-1] * len(p.work), [False] * len(p.pausing))
        light = loads_with(p, [-1] * len(p.work), [True] * len(p.pausing))
        low = [min(column) for column in zip(*light, strict=True)]
        cuts = [p.pace(g) * tokens for g, tokens, _ in p.pausing]
        above = [load - least for row in light for load, least in zip(row, low, strict=True)]
        added = [tokens for one in options for row in one.values() for tokens in row]
        self.unit = math.gcd(*above, *cuts, *added) or 1
        self.light = [_reduced(row, low, self.unit) for row in light]
        self.full = [_reduced(row, low, self.unit) for row in full]
        nothing = [0] * len(low)
        self.options = [{j: _reduced(row, nothing, self.unit) for j, row in one.items()} for one in options]
        self.kinds, self.slots, self.must, self.places = kinds, p.slots, must, places

    def least(self, least: int, most: int) -> int:
        """Return the least imbalance where from `least` to `most` requests are admitted."""
        steps = range(len(self.light[0]))
        peaks = [self._peak(h, least, most) for h in steps]

        def on(part: list[int]) -> int:
            level = sum(peaks[h] for h in part)
            before = [sum(row[h] for h in part) for row in self.full]
            sums = [{j: sum(row[h] for h in part) for j, row in one.items()} for one in self.options]
            together = len(before) * level - sum(before)
            together -= _extreme([max(one.values()) for one in sums], self.must, most, heaviest=True)
            apart = 0
            for j, own in enumerate(self.kinds):
                heavy = sorted((one[j] for one in sums if j in one), reverse=True)
                brought = sum(heavy[: min(self.slots[own[0]], most)])
                apart += sum(max(0, level - before[g] - brought) for g in own)
            return max(together, apart)

        return self.unit * max(sum(on([h]) for h in steps), on(list(steps)))

    def _peak(self, h: int, least: int, most: int) -> int:
        """Return a lower bound on the largest load at step h; the proofs are in `floors.Floors`."""
        column = _Column(self, h, least)
        peak = max(column.mean, *column.light)
        places = [min(c, most) for c in self.places]
        if not sum(self.must) <= least <= min(sum(places), len(self.must)):  # nothing keeps the rules
            return peak
        peak = column.raised(peak, places)
        if least < len(self.must):
            return peak
        smallest = _sums(sorted(column.sizes))

        def impossible(level: int) -> bool:
            """Whether the slots that this level leaves a use for are too few, or enforce more."""
            used = [min(c, bisect_right(smallest, level - a) - 1) for a, c in zip(column.light, places, strict=True)]
            return sum(used) < least or column.raised(peak, used) > level

        below, step = peak - 1, 1
        while impossible(below + step):
            below += step
            step *= 2
        top = below + step
        while top - below > 1:
            middle = (below + top) // 2
            if impossible(middle):
                below = middle
            else:
                top = middle
        return top


class _Column:
    """One step of the window: loads before, and what requests add at least and at most."""

    def __init__(self, idle: _Idle, h: int, least: int) -> None:
        self.kinds, self.count = idle.kinds, least
        self.light, full = [row[h] for row in idle.light], [row[h] for row in idle.full]
        self.options = [{j: row[h] for j, row in one.items()} for one in idle.options]
        self.sizes = [min(one.values()) for one in self.options]
        self.bound = [i for i, must in enumerate(idle.must) if must or least == len(idle.must)]
        self.needed = sum(self.light) + _extreme(self.sizes, idle.must, least, heaviest=False)
        self.mean = -(-self.needed // len(self.light))
        self.smallest = _sums(sorted(self.sizes))
        heaviest = _sums(sorted((max(one.values()) for one in self.options), reverse=True))
        self.tops = (full, heaviest)

    def raised(self, peak: int, places: list[int]) -> int:
        """Raise a bound on the largest load by what these slots enforce."""
        for load, c in zip(self.light, places, strict=True):
            elsewhere = sum(places) - c
            if self.count > elsewhere:  # the others cannot take them all
                peak = max(peak, load + self.smallest[self.count - elsewhere])
        if self.bound:
            lightest = [min((self.light[g] for g in own if places[g]), default=_NO_END) for own in self.kinds]
            for i in self.bound:
                peak = max(peak, min(lightest[j] + size for j, size in self.options[i].items()))
            peak = max(peak, _counted_peak(self.light, places, [self.sizes[i] for i in self.bound]))
        # each worker fills up to its ceiling; raise the water level until all fits
        full, heaviest = self.tops
        ceilings = sorted(a + heaviest[c] for a, c in zip(full, places, strict=True))
        missing = self.needed
        for done, ceiling in enumerate(ceilings):
            share = -(-missing // (len(ceilings) - done))
            if share <= ceiling:
                return max(peak, share)
            missing -= ceiling
        return peak


def _reduced(row: list[int], low: list[int], unit: int) -> list[int]:
    return [(a - b) // unit for a, b in zip(row, low, strict=True)]


def _counted_peak(column: list[int], places: list[int], sizes: list[int]) -> int:
    """Count the largest requests among the workers; the proof is in `floors.counting_floor`."""
    heaviest_first = sorted(sizes, reverse=True)
    sums = _sums(heaviest_first)
    changes = {1, *places, *(c + 1 for c in places)}  # where other workers can hold so many
    peak = each = below = 0  # with one less than `each` at most, workers hold `below` at most
    holders: list[int] = []
    for n in range(1, len(sizes) + 1):
        while n > below + len(holders):
            below += len(holders)
            each += 1
            if each in changes:
                holders = sorted(a for a, c in zip(column, places, strict=True) if c >= each)
                light = _sums(holders)
                wider = min((a for a, c in zip(column, places, strict=True) if c > each), default=None)
        k = n - below
        found = -(-(sums[n] - sums[n - k * each] + light[k]) // k)
        if wider is not None and n > each:
            found = min(found, sums[n] - sums[n - each - 1] + wider)
        peak = max(peak, found)
    return peak


def _sums(values: list[int]) -> list[int]:
    sums = [0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def _extreme(sizes: list[int], must: list[bool], count: int, *, heaviest: bool) -> int:
    free = sorted((s for s, m in zip(sizes, must, strict=True) if not m), reverse=heaviest)
    return sum(s for s, m in zip(sizes, must, strict=True) if m) + sum(free[: max(0, count - sum(must))])


# ---------------------------------------------------------------------- exhaustion


def exhaust(p: Numbers, limit: int) -> dict[tuple[int, ...], tuple[int, list[int]]] | None:
    """Return what each combination of goals that can be reached costs at least; None beyond `limit` steps of work.

    Returns
    -------
    dict
        {goals: (least objective, the least loads from the largest down with that objective)}.
    """
    first = 1 + len(p.pools)  # where the loads of a worker begin
    alone: list[Worker] = [
        (p.slots[g], *(free[g] for free, _ in p.pools), *(p.pace(g) * load for load in row))
        for g, row in enumerate(p.base)
    ]
    fleets = {(tuple(alone), 0)}
    steps = 0
    for g, tokens, price in p.pausing:
        paused = set()
        for workers, paid in fleets:
            lighter = (*workers[g][:first], workers[g][first] - p.pace(g) * tokens, *workers[g][first + 1 :])
            paused.add(((*workers[:g], lighter, *workers[g + 1 :]), paid + price))
        fleets |= paused
        steps += len(fleets)
        if steps > limit:
            return None
    kinds = p.kinds(rooms=False)
    states: set[State] = {
        (tuple(tuple(sorted(workers[g] for g in own)) for own in kinds), 0, 0, paid) for workers, paid in fleets
    }
    order = sorted(range(len(p.work)), key=lambda i: (not p.must[i], p.work[i]))
    spared = len(order) - p.exactly if p.exactly is not None else len(order)  # may wait at most
    for done, i in enumerate(order):
        needs = (1, *(taken[i] for _, taken in p.pools))
        options = [(j, p.adds(i, own[0])) for j, own in enumerate(kinds) if p.allows(i, own[0])]
        following: set[State] = set()
        for fleet, waiting, overdue, paid in states:
            if not p.must[i] and waiting < spared:
                following.add((fleet, waiting + 1, overdue + p.price(i), paid))
            if done - waiting == p.exactly:
                continue
            for j, row in options:
                workers = fleet[j]
                for place, (rooms, loads) in enumerate((one[:first], one[first:]) for one in workers):
                    after = [a - b for a, b in zip(rooms, needs, strict=True)]
                    if min(after) < 0 or (place and workers[place - 1] == workers[place]):
                        continue
                    mine = (*after, *(a + b for a, b in zip(loads, row, strict=True)))
                    changed = tuple(sorted((*workers[:place], mine, *workers[place + 1 :])))
                    following.add(((*fleet[:j], changed, *fleet[j + 1 :]), waiting, overdue, paid))
                    steps += max(1, len(workers) // 4)  # many workers take longer to copy and sort
            if steps > limit:
                return None
        states = following
    found: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for fleet, waiting, overdue, paid in states:
        if p.exactly not in (None, len(order) - waiting):
            continue
        ends = [list(worker[first:]) for own in fleet for worker in own]
        reached = {"left_waiting": waiting, "overdue": overdue}
        goals = tuple(reached[goal] for goal in p.goals)
        cost = paid + idle_and_barrier(ends)[0] + (0 if "overdue" in p.goals else overdue)
        end = cost, shape_of(ends)
        found[goals] = min(end, found.get(goals, end))
    return found
