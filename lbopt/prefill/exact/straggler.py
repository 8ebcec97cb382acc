"""(P1) The least straggler: place all requests so that the fullest unit has the fewest tokens.

Without a cache this is the step problem at horizon 0 with the units' loads and room for all on every unit: then all n
requests are admitted, the total load is the same for every placement, and the imbalance D * max - total orders
placements as their stragglers do. `solvers.solve` answers it with a proof. Handing over to CP-SAT what is open after
half of the time leaves about as many open (17 instead of 18 of 50 batches of a loaded fleet in 2 s) and turns proofs
into claims, so that it has no part in this. With a cache a request costs a different amount on each unit (unrelated
machines), which is CP-SAT's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.model import StepProblem
from lbopt.prefill.exact.batch import PrefillBatch
from lbopt.prefill.exact.placement import Placement, straggler_of
from lbopt.solvers.placing_program import PlacingProgram
from lbopt.solvers.solve import solve


def least_straggler(batch: PrefillBatch, time_limit: float | None = None, seed: int = 0) -> Placement:
    """Place the whole batch with the least straggler; within `time_limit` seconds as good as is known by then."""
    if batch.hits is None:
        return _as_step_problem(batch, time_limit, seed)
    unit, bound = longest_to_earliest_end(batch), elementary_bound(batch)
    if straggler_of(batch, unit) == bound:
        return Placement(unit, bound, bound, "elementary-bound")
    program = PlacingProgram(batch.load, batch.cost, place_all=True)
    straggler = program.model.new_int_var(bound, straggler_of(batch, unit), "straggler")
    for tokens in program.tokens:
        program.model.add(tokens <= straggler)
    program.model.minimize(straggler)
    found, claimed = program.solve(time_limit, seed)
    if found is not None and straggler_of(batch, found) < straggler_of(batch, unit):
        unit = found
    proof = "elementary-bound"
    if claimed is not None and bound < claimed <= straggler_of(batch, unit):
        bound, proof = claimed, "claimed:cp-sat"
    return Placement(unit, straggler_of(batch, unit), bound, proof)


def elementary_bound(batch: PrefillBatch) -> int:
    """Return the largest of: a unit's own load, the least total shared evenly, one request where it ends earliest."""
    cost, load = batch.cost, batch.load
    if batch.num_requests == 0:
        return int(load.max())
    shared: int = -(-(sum(load.tolist()) + sum(cost.min(axis=1).tolist())) // batch.num_units)
    return max(int(load.max()), shared, int((load + cost).min(axis=1).max()))


def longest_to_earliest_end(batch: PrefillBatch) -> NDArray[np.int64]:
    """Place the longest first, each where it ends earliest."""
    load, cost = batch.load.copy(), batch.cost
    unit = np.zeros(batch.num_requests, dtype=np.int64)
    for r in np.argsort(-cost.min(axis=1), kind="stable"):
        unit[r] = np.argmin(load + cost[r])
        load[unit[r]] += cost[r, unit[r]]
    return unit


def _as_step_problem(batch: PrefillBatch, time_limit: float | None, seed: int) -> Placement:
    n, D = batch.num_requests, batch.num_units
    problem = StepProblem.now(batch.load, np.full(D, n), batch.length)
    result = solve(problem, "search", time_limit=time_limit, seed=seed)
    if result.stop_reason == "interrupted":  # the search has caught Ctrl-C; the caller has to hear of it
        raise KeyboardInterrupt
    unit = longest_to_earliest_end(batch)
    if result.assignment is not None and straggler_of(batch, np.array(result.assignment)) <= straggler_of(batch, unit):
        unit = np.array(result.assignment)
    total = sum(batch.load.tolist()) + sum(batch.length.tolist())
    bound, proof = elementary_bound(batch), "elementary-bound"
    if result.bound is not None and -(-(result.bound + total) // D) > bound:
        bound, proof = -(-(result.bound + total) // D), str(result.proof)
    return Placement(unit, straggler_of(batch, unit), bound, proof)
