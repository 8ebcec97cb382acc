"""The verifier's own arithmetic under conditions: plain lists, Python integers, the standard library.

Written a second time on purpose, as `recount` is. Its exhaustive search is another algorithm, too: it decides pause
after pause and request after request, and keeps the set of distinct states of the fleet.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any

Table = list[list[int]]

_ORDER = (
    *("capacity", "pace", "prefill_budget", "need", "prompt", "waiting_cost"),
    *("running_worker", "running_work", "pause_cost", "allowed", "credit"),
)


@dataclass(frozen=True, slots=True)
class Conditioned:
    """A step problem under conditions as plain lists; `given` holds the conditions by their names."""

    base: Table
    slots: list[int]
    work: Table
    must: list[bool]
    given: dict[str, Any]

    @property
    def goals(self) -> list[str]:
        """What is made least before the objective."""
        first = ["left_waiting"] if self.given["admit"] == "most" else []
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

    def may(self, i: int, g: int) -> bool:
        """Whether worker g could take request i if it took nothing else."""
        if self.slots[g] == 0 or ("allowed" in self.given and not self.given["allowed"][i][g]):
            return False
        return all(taken[i] <= free[g] for free, taken in self.pools)


def digest(p: Conditioned) -> str:
    """SHA-256 of the content, as `StepProblem.digest` defines it with conditions."""
    width = len(p.base[0])
    sha = hashlib.sha256(f"lbopt-step-problem 2 {(len(p.base), width)} {(len(p.work), width)}".encode())
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
    sha.update(f" admit {p.given['admit']} overdue_first {bool(p.given.get('overdue_first'))}".encode())
    return sha.hexdigest()


def loads_with(p: Conditioned, workers: list[int], pauses: list[bool]) -> Table:
    """Return the loads after placing request i on workers[i] (-1 waits), with some running requests paused."""
    loads = [[p.pace(g) * load for load in row] for g, row in enumerate(p.base)]
    for (g, tokens, _), paused in zip(p.pausing, pauses, strict=True):
        if paused:
            loads[g][0] -= p.pace(g) * tokens
    for i, g in enumerate(workers):
        if g >= 0:
            loads[g] = [a + b for a, b in zip(loads[g], p.adds(i, g), strict=True)]
    return loads


def values_of(p: Conditioned, workers: list[int], pauses: list[bool]) -> tuple[list[int], int, int]:
    """Return the goals that are reached, the objective, and G * sum_h M_h."""
    loads = loads_with(p, workers, pauses)
    barrier = len(loads) * sum(max(column) for column in zip(*loads, strict=True))
    waiting = [i for i, g in enumerate(workers) if g < 0]
    overdue = sum(p.price(i) for i in waiting)
    reached = {"left_waiting": len(waiting), "overdue": overdue}
    cost = barrier - sum(map(sum, loads)) + (0 if "overdue" in p.goals else overdue)
    cost += sum(price for (_, _, price), paused in zip(p.pausing, pauses, strict=True) if paused)
    return [reached[goal] for goal in p.goals], cost, barrier


def broken_rule(p: Conditioned, workers: list[int]) -> str | None:
    """Name the first rule that the assignment breaks, or None."""
    if len(workers) != len(p.work):
        return f"it has {len(workers)} entries for {len(p.work)} requests"
    for i, g in enumerate(workers):
        if type(g) is not int or not -1 <= g < len(p.slots):
            return f"request {i} is sent to worker {g!r}, which does not exist"
        if g < 0 and p.must[i]:
            return f"request {i} waits but must be admitted"
        if g >= 0 and "allowed" in p.given and not p.given["allowed"][i][g]:
            return f"request {i} is sent to worker {g}, which may not take it"
    for g, free in enumerate(p.slots):
        here = [i for i, chosen in enumerate(workers) if chosen == g]
        if len(here) > free:
            return f"worker {g} gets {len(here)} requests for {free} free slots"
        for room, taken in p.pools:
            if sum(taken[i] for i in here) > room[g]:
                return f"worker {g} gets {sum(taken[i] for i in here)} where {room[g]} are free"
    admitted, admit = sum(g >= 0 for g in workers), p.given["admit"]
    if isinstance(admit, int) and admitted != admit:
        return f"{admitted} requests are admitted instead of {admit}"
    return None


def lower_bounds(p: Conditioned, admitted: int | None) -> list[int]:
    """Return elementary bounds on the goals and the objective; the proofs are in `lbopt/model/paced_floors.py`.

    Parameters
    ----------
    p
        The problem.
    admitted
        Requests that the decision in question admits; None for any decision.
    """
    can = [[g for g in range(len(p.slots)) if p.may(i, g)] for i in range(len(p.work))]
    most = min(sum(map(bool, can)), sum(_can_take(p, g, can) for g in range(len(p.slots))))
    least, admit = sum(p.must), p.given["admit"]
    floors = {"left_waiting": len(p.work) - most}
    if isinstance(admit, int):
        least, most = max(least, admit), min(most, admit)
    if admit == "most" and admitted is not None:
        least = most = admitted
    floors["overdue"] = _least_overdue(p, can, most)
    objective = _least_idle(p, can, least, most) + (0 if "overdue" in p.goals else floors["overdue"])
    return [*(floors[goal] for goal in p.goals), objective]


def _can_take(p: Conditioned, g: int, can: list[list[int]]) -> int:
    mine = [i for i, workers in enumerate(can) if g in workers]
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


def _least_overdue(p: Conditioned, can: list[list[int]], most: int) -> int:
    stay = sum(p.price(i) for i, workers in enumerate(can) if not workers)
    free = sorted(p.price(i) for i, workers in enumerate(can) if workers and not p.must[i])
    return stay + sum(free[: max(0, sum(map(bool, can)) - most)])


def _least_idle(p: Conditioned, can: list[list[int]], least: int, most: int) -> int:
    width, workers = len(p.base[0]), range(len(p.slots))
    full = loads_with(p, [-1] * len(p.work), [False] * len(p.pausing))
    light = loads_with(p, [-1] * len(p.work), [True] * len(p.pausing))
    adds = [{g: p.adds(i, g) for g in places} for i, places in enumerate(can)]
    levels = []
    for h in range(width):
        level = max(row[h] for row in light)
        cheapest = [(min(row[h] for row in one.values()), i) for i, one in enumerate(adds) if one]
        total = sum(row[h] for row in light) + sum(tokens for tokens, i in cheapest if p.must[i])
        missing = max(0, least - sum(p.must[i] for _, i in cheapest))
        total += sum(sorted(tokens for tokens, i in cheapest if not p.must[i])[:missing])
        for i, one in enumerate(adds):
            if p.must[i] and one:
                level = max(level, min(light[g][h] + row[h] for g, row in one.items()))
        levels.append(max(level, -(-total // len(light))))

    def on(part: list[int]) -> int:
        level = sum(levels[h] for h in part)
        sums = [{g: sum(row[h] for h in part) for g, row in one.items()} for one in adds]
        before = [sum(row[h] for h in part) for row in full]
        together = len(before) * level - sum(before)
        together -= sum(sorted((max(one.values()) for one in sums if one), reverse=True)[:most])
        apart = 0
        for g in workers:
            brought = sorted((one[g] for one in sums if g in one), reverse=True)[: min(p.slots[g], most)]
            apart += max(0, level - before[g] - sum(brought))
        return max(together, apart)

    return max(sum(on([h]) for h in range(width)), on(list(range(width))))


def exhaust(p: Conditioned, limit: int) -> dict[tuple[int, ...], int] | None:
    """Return the least objective for each combination of goals that can be reached; None beyond `limit` steps of work.

    Parameters
    ----------
    p
        The problem.
    limit
        Steps of work at most.
    """
    pools, width = p.pools, len(p.base[0])
    start = tuple(
        (p.slots[g], *(free[g] for free, _ in pools), *(p.pace(g) * load for load in row))
        for g, row in enumerate(p.base)
    )
    first = 1 + len(pools)  # where the loads of a worker begin
    states = {(start, 0, 0, 0)}  # the fleet, who waits, what that costs, what pauses cost
    steps = 0
    for g, tokens, price in p.pausing:
        following = set(states)
        for fleet, waiting, overdue, paid in states:
            lighter = (*fleet[g][:first], fleet[g][first] - p.pace(g) * tokens, *fleet[g][first + 1 :])
            following.add(((*fleet[:g], lighter, *fleet[g + 1 :]), waiting, overdue, paid + price))
        steps += len(states)
        states = following
        if steps > limit:
            return None
    for i in range(len(p.work)):
        needs = (1, *(taken[i] for _, taken in pools))
        options = [(g, p.adds(i, g)) for g in range(len(p.slots)) if p.may(i, g)]
        following = set()
        for fleet, waiting, overdue, paid in states:
            if not p.must[i]:
                following.add((fleet, waiting + 1, overdue + p.price(i), paid))
            for g, row in options:
                rooms = [a - b for a, b in zip(fleet[g], needs, strict=False)]
                if min(rooms) >= 0:
                    mine = (*rooms, *(a + b for a, b in zip(fleet[g][first:], row, strict=True)))
                    following.add(((*fleet[:g], mine, *fleet[g + 1 :]), waiting, overdue, paid))
                steps += 1
            if steps > limit:
                return None
        states = following
    admit = p.given["admit"]
    found: dict[tuple[int, ...], int] = {}
    for fleet, waiting, overdue, paid in states:
        if isinstance(admit, int) and len(p.work) - waiting != admit:
            continue
        columns = [[worker[first + h] for worker in fleet] for h in range(width)]
        cost = paid + sum(len(column) * max(column) - sum(column) for column in columns)
        reached = {"left_waiting": waiting, "overdue": overdue}
        goals = tuple(reached[goal] for goal in p.goals)
        cost += 0 if "overdue" in p.goals else overdue
        found[goals] = min(cost, found.get(goals, cost))
    return found
