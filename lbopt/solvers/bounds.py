"""Elementary lower bounds on the imbalance, each with its one-line proof; exact integers, no solver.

All are evaluated on the reduced loads of `reduced_loads` (columns shifted by their least base load, which
leaves G max - sum unchanged; everything divided by its gcd), where rounding up gains most, at the envelope floors
m_h <= M_h of `floors.envelope_floors`. Every bound below is non-decreasing in M_h, so m_h may stand for M_h.
"""

from __future__ import annotations

from itertools import accumulate

from lbopt.model import StepProblem
from lbopt.model.floors import admitted_total, envelope_floors
from lbopt.model.reduced_loads import ReducedLoads, reduce_loads


def elementary_bound(problem: StepProblem) -> int:
    """Return the best of the bounds below, in tokens.

    With Z_h the imbalance at h, Z = sum_h Z_h, and `room` a set of columns taken together:

    * mean: Z(room) = G sum M_h - sum base - (work admitted in room) >= G sum m_h - sum base - (the most work that U
      requests, `must_admit` among them, bring to the room).
    * worker by worker: Z(room) = sum_g sum_h (M_h - L_g(h)), and each term is at least
      max(0, sum_h (m_h - base[g,h]) - (the most work that slots_g requests bring to the room)).

    The rooms are each single column (their bounds add up) and the whole window (one set of requests has to serve all
    columns, which single columns do not know).
    """
    loads = reduce_loads(problem)
    floors = envelope_floors(problem, loads)
    columns = range(problem.horizon + 1)
    apart = sum(
        max(_mean(problem, loads, floors, (h,)), _worker_by_worker(problem, loads, floors, (h,))) for h in columns
    )
    whole = tuple(columns)
    joint = max(_mean(problem, loads, floors, whole), _worker_by_worker(problem, loads, floors, whole))
    return loads.scale * max(apart, joint)


def _mean(problem: StepProblem, loads: ReducedLoads, floors: list[int], room: tuple[int, ...]) -> int:
    base = sum(row[h] for row in loads.base for h in room)
    work = [sum(row[h] for h in room) for row in loads.work]
    most = admitted_total(work, problem.must_admit.tolist(), problem.num_admitted, largest=True)
    return problem.num_workers * sum(floors[h] for h in room) - base - most


def _worker_by_worker(problem: StepProblem, loads: ReducedLoads, floors: list[int], room: tuple[int, ...]) -> int:
    heaviest = sorted((sum(row[h] for h in room) for row in loads.work), reverse=True)
    most = list(accumulate(heaviest, initial=0))
    idle = 0
    for row, slots in zip(loads.base, problem.slots.tolist(), strict=True):
        least = sum(floors[h] - row[h] for h in room) - most[min(slots, problem.num_requests)]
        idle += max(0, least)
    return idle
