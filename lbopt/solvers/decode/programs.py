"""Exact counterparts of the decode rule of SBS (arXiv 2512.16134, Algorithm 3, `policies.iqr`): programs D1 to D3.

Unit i has B_i requests and K_i tokens and takes at most room_i of the m requests, all of which are placed.

* D1, `count_then_load`: the largest count as small as possible, then the largest load. The first is known before
  (`counts`); the second is the step problem at horizon 0 with min(room_i, B* - B_i) free slots.
* D2, `level_then_load`: counts as level as possible (leximax), then the largest load. All counts are known before but
  for which units end one higher. Where none does this is the step problem again; else CP-SAT decides it with the loads.
* D3, `barrier_time`: the largest alpha * count + beta * load, which every step waits for: the step problem at horizon 0
  with loads alpha * B_i + beta * K_i, where a request adds alpha + beta * length.

In all of them m requests are admitted and the total is the same for every placement, so that least imbalance is least
maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.solvers.decode.batch import DecodeBatch, DecodePlacement
from lbopt.solvers.decode.counts import fewest_requests_first, least_largest_count, water_level
from lbopt.solvers.placing_program import PlacingProgram
from lbopt.solvers.solve import solve

#: Weights stay below this, so that barriers stay far from 2**63.
MOST_WEIGHT = 2**31


def count_then_load(batch: DecodeBatch, time_limit: float | None = None, seed: int = 0) -> DecodePlacement:
    """Return a placement of the least largest load among those with the least largest count (D1).

    Parameters
    ----------
    batch
        The requests to place, and the load of each unit.
    time_limit
        Seconds; None for no limit.
    seed
        Seed of the solver.
    """
    slots = np.minimum(batch.room, np.maximum(least_largest_count(batch) - batch.count, 0))
    return _as_step_problem(batch.load, slots, batch.length, time_limit, seed)


def barrier_time(
    batch: DecodeBatch, alpha: int, beta: int, time_limit: float | None = None, seed: int = 0
) -> DecodePlacement:
    """Return a placement with the least barrier (D3).

    `alpha` and `beta` are the times per request and per token in whole units of the caller's choice, such as
    nanoseconds, >= 0.

    Parameters
    ----------
    batch
        The requests to place, and the load of each unit.
    alpha
        Time per request, in whole units such as nanoseconds, >= 0.
    beta
        Time per token, in the same units, >= 0.
    time_limit
        Seconds; None for no limit.
    seed
        Seed of the solver.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if value is None or not 0 <= value < MOST_WEIGHT:
            raise InputError(
                f"{name} is {'none' if value is None else value}; expected a whole number of 0 or more, below 2**31"
            )
    base = [alpha * b + beta * k for b, k in zip(batch.count.tolist(), batch.load.tolist(), strict=True)]
    work = [alpha + beta * tokens for tokens in batch.length.tolist()]
    return _as_step_problem(base, np.minimum(batch.room, batch.length.size), work, time_limit, seed)


def level_then_load(batch: DecodeBatch, time_limit: float | None = None, seed: int = 0) -> DecodePlacement:
    """Return a placement of the least largest load among those with counts as level as possible (D2).

    Parameters
    ----------
    batch
        The requests to place, and the load of each unit.
    time_limit
        Seconds; None for no limit.
    seed
        Seed of the solver.
    """
    w, left = water_level(batch)
    top = batch.count + batch.room
    least = np.clip(w, batch.count, top) - batch.count
    if left == 0:
        return _as_step_problem(batch.load, least, batch.length, time_limit, seed)
    may_rise = (batch.count <= w) & (w < top)
    N, unit = batch.count.size, fewest_requests_first(batch)
    value = max(batch.loads_after(unit))
    bound = max(int(batch.load.max()), -(-(sum(batch.load.tolist()) + sum(batch.length.tolist())) // N))
    if value == bound:
        return DecodePlacement(unit, value, value, "elementary-bound")
    cost = np.repeat(batch.length[:, None], N, axis=1)
    program = PlacingProgram(batch.load, cost, place_all=True, kind=(2 * least + may_rise).tolist())
    model = program.model
    rises = [model.new_bool_var(f"rises[{i}]") if may_rise[i] else 0 for i in range(N)]
    for i in range(N):
        model.add(sum(row[i] for row in program.on) == int(least[i]) + rises[i])
    largest = model.new_int_var(bound, value, "largest")
    for tokens in program.tokens:
        model.add(tokens <= largest)
    model.minimize(largest)
    program.hint(unit)
    found, claimed = program.solve(time_limit, seed)
    if found is not None and max(batch.loads_after(found)) < value:
        unit, value = found, max(batch.loads_after(found))
    proof = "elementary-bound"
    if claimed is not None and bound < claimed <= value:
        bound, proof = claimed, "claimed:cp-sat"
    return DecodePlacement(unit, value, bound, proof)


def _as_step_problem(base: Any, slots: Any, work: Any, time_limit: float | None, seed: int) -> DecodePlacement:
    problem = StepProblem.now(base, slots, work)
    result = solve(problem, "search", time_limit=time_limit, seed=seed)
    assert result.assignment is not None, "greedy always finds one"
    if result.stop_reason == "interrupted":  # the search has caught Ctrl-C; the caller has to hear of it
        raise KeyboardInterrupt
    unit = np.array(result.assignment)
    loads = problem.base[:, 0].tolist()
    for r, i in enumerate(unit.tolist()):
        loads[i] += int(problem.work[r, 0])
    bound = -(-((result.bound or 0) + sum(loads)) // len(loads))
    return DecodePlacement(unit, max(loads), max(bound, int(problem.base.max())), str(result.proof))
