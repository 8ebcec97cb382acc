"""The best decision of a step problem under conditions, from their words: all assignments, all sets of pauses.

A case is a dict of plain lists. `base`, `slots`, `work` and `must` are those of a plain problem. Each of the others may
be absent: `capacity` with `need`, `prefill_budget` with `prompt`, `allowed`, `credit`, `pace`, `waiting_cost`,
`overdue_first`, `admit` ("most", "free" or a number), and `running_worker`, `running_work`, `pause_cost`. Python
integers, loops, nothing of lbopt.
"""

from itertools import product
from typing import Any

Case = dict[str, Any]


def work_of(case: Case, i: int, g: int) -> list[int]:
    """Tokens that request i adds to worker g at each step: where it is there, less the prefix that g holds."""
    row = []
    for tokens in case["work"][i]:
        if tokens > 0 and case.get("credit"):
            tokens = max(0, tokens - case["credit"][i][g])
        row.append(tokens)
    return row


def loads_of(case: Case, workers: tuple[int, ...], pauses: tuple[bool, ...]) -> list[list[int]]:
    """Loads of each worker at each step, in units of its pace."""
    loads = [list(row) for row in case["base"]]
    for i, g in enumerate(workers):
        if g >= 0:
            for h, tokens in enumerate(work_of(case, i, g)):
                loads[g][h] += tokens
    for r, paused in enumerate(pauses):
        if paused:
            loads[case["running_worker"][r]][0] -= case["running_work"][r][0]
    if case.get("pace"):
        loads = [[case["pace"][g] * load for load in row] for g, row in enumerate(loads)]
    return loads


def is_feasible(case: Case, workers: tuple[int, ...]) -> bool:
    """Whether an assignment keeps slots, eligibility, memory, prefill budget, those that must start, and number."""
    for g, free in enumerate(case["slots"]):
        here = [i for i, chosen in enumerate(workers) if chosen == g]
        if len(here) > free:
            return False
        if case.get("allowed") and not all(case["allowed"][i][g] for i in here):
            return False
        if case.get("capacity"):
            need = case.get("need") or [row[-1] for row in case["work"]]
            if sum(need[i] for i in here) > case["capacity"][g]:
                return False
        if case.get("prefill_budget"):
            prompt = case.get("prompt") or [row[0] for row in case["work"]]
            if sum(prompt[i] for i in here) > case["prefill_budget"][g]:
                return False
    if any(must and g < 0 for must, g in zip(case["must"], workers, strict=True)):
        return False
    admit = case.get("admit", "most")
    return isinstance(admit, str) or sum(g >= 0 for g in workers) == admit


def rank_of(case: Case, workers: tuple[int, ...], pauses: tuple[bool, ...]) -> tuple[int, ...]:
    """What is made least, most important first."""
    waiting = [i for i, g in enumerate(workers) if g < 0]
    overdue = sum(case["waiting_cost"][i] for i in waiting) if case.get("waiting_cost") else 0
    cost = 0
    for column in zip(*loads_of(case, workers, pauses), strict=True):
        for load in column:
            cost += max(column) - load
    cost += sum(price for price, paused in zip(case.get("pause_cost") or [], pauses, strict=True) if paused)
    goals = [len(waiting)] if case.get("admit", "most") == "most" else []
    if case.get("overdue_first"):
        # A cost of nothing makes nobody overdue: then there is no such goal.
        return (*goals, overdue, cost) if any(case["waiting_cost"]) else (*goals, cost)
    return (*goals, cost + overdue)


def decisions(case: Case):
    """Yield (rank, workers, pauses) of every feasible decision."""
    runs = len(case.get("running_worker") or [])
    for workers in product(range(-1, len(case["slots"])), repeat=len(case["work"])):
        if is_feasible(case, workers):
            for pauses in product([False, True], repeat=runs):
                yield rank_of(case, workers, pauses), workers, pauses


def least_rank(case: Case) -> tuple[int, ...] | None:
    """The rank of the best decision; None where no assignment is feasible."""
    return min((rank for rank, _, _ in decisions(case)), default=None)
