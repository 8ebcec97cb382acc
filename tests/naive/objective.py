"""The objective of one decision and its optimum by plain enumeration."""

from collections.abc import Sequence
from itertools import product

WAITS = -1


def imbalance(loads: Sequence[float]) -> float:
    """Imb = sum over workers of (max load - load) = G * max - sum (bf_io.md section 1, equation (2))."""
    heaviest = max(loads)
    total: float = 0
    for load in loads:
        total += heaviest - load
    return total


def spread(loads: Sequence[float]) -> float:
    """R = max load - min load (balance_route.md section 1, the reported metric)."""
    return max(loads) - min(loads)


def is_feasible(slots: Sequence[int], assignment: Sequence[int]) -> bool:
    """No worker gets more requests than it has free slots (bf_io.md section 2, constraints of (IO))."""
    for worker in range(len(slots)):
        placed = 0
        for choice in assignment:
            if choice == worker:
                placed += 1
        if placed > slots[worker]:
            return False
    return True


def objective(
    base: Sequence[Sequence[float]], slots: Sequence[int], work: Sequence[Sequence[float]], assignment: Sequence[int]
) -> float:
    """J = sum over window columns h of the imbalance of the predicted loads (bf_io.md section 2, (IO)).

    `base[g][h]` is what worker g holds already, `work[i][h]` what request i adds, `assignment[i]` the worker of
    request i or -1 when it waits.
    """
    if len(assignment) != len(work):
        raise ValueError("one choice per request")
    if not is_feasible(slots, assignment):
        raise ValueError("a worker gets more requests than it has free slots")
    total: float = 0
    for column in range(len(base[0])):
        loads = [base[worker][column] for worker in range(len(base))]
        for request, worker in enumerate(assignment):
            if worker != WAITS:
                loads[worker] += work[request][column]
        total += imbalance(loads)
    return total


def brute_force(
    base: Sequence[Sequence[float]],
    slots: Sequence[int],
    work: Sequence[Sequence[float]],
    must_admit: Sequence[bool] | None = None,
) -> tuple[float, list[list[int]]]:
    """The least J and every assignment that attains it (bf_io.md section 2, (IO)), over all (G + 1)^N choices.

    Exactly U = min(N, sum of free slots) requests are admitted, and those with a true `must_admit[i]` are among them
    (None: nobody is forced). Values are compared exactly, so give integers. The assignments come in ascending
    lexicographic order, with -1 (waits) first.
    """
    num_admitted = min(len(work), sum(slots))
    forced = [False] * len(work) if must_admit is None else [bool(flag) for flag in must_admit]
    if len(forced) != len(work):
        raise ValueError("one flag per request")
    best: float | None = None
    optima: list[list[int]] = []
    for choices in product([WAITS, *range(len(slots))], repeat=len(work)):
        assignment = list(choices)
        admitted = 0
        left_out = False
        for request, worker in enumerate(assignment):
            if worker != WAITS:
                admitted += 1
            elif forced[request]:
                left_out = True
        if left_out or admitted != num_admitted or not is_feasible(slots, assignment):
            continue
        value = objective(base, slots, work, assignment)
        if best is None or value < best:
            best = value
            optima = [assignment]
        elif value == best:
            optima.append(assignment)
    if best is None:
        raise ValueError("no feasible assignment")
    return best, optima
