"""(P1) The least straggler: place all requests so that the fullest unit has the fewest tokens.

Without a cache this is the step problem at horizon 0 with the units' loads and room for all on every unit: then all n
requests are admitted, the total load is the same for every placement, and the imbalance D * max - total orders
placements as their stragglers do. `solvers.solve` answers it with a proof. Handing over to CP-SAT what is open after
half of the time leaves about as many open (17 instead of 18 of 50 batches of a loaded fleet in 2 s) and turns proofs
into claims, so that it has no part in this. With a cache a request costs a different amount on each unit (unrelated
machines), which is CP-SAT's.

(P2) The best fill of the next pass: which requests to place where, the others wait.

First as many tokens as possible in the pass, each unit up to its chunk; with that, as few tokens as possible beyond the
chunks; with that, as many old requests as possible. CP-SAT, one solve each, the value reached before held by a row.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from lbopt.model import StepProblem
from lbopt.prefill.allocations import pbaa
from lbopt.prefill.exact.batch import Fill, Placement, PrefillBatch, fill_of, straggler_of
from lbopt.solvers.front import solve
from lbopt.solvers.placing_program import PlacingProgram


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


def best_fill(batch: PrefillBatch, time_limit: float | None = None, seed: int = 0, *, stages: int = 3) -> Fill:
    """Choose and place; within `time_limit` seconds as good as is known by then.

    Parameters
    ----------
    batch
        The batch.
    time_limit
        Seconds; None for no limit.
    seed
        Seed of the solver.
    stages
        1 decides only the tokens of the pass, 2 those beyond the chunks as well, 3 also the rest.
    """
    started = time.perf_counter()

    def left() -> float | None:
        return None if time_limit is None else time_limit - (time.perf_counter() - started)

    n = batch.num_requests
    if n == 0:
        value = fill_of(batch, np.zeros(0, dtype=np.int64))
        return Fill(np.zeros(0, dtype=np.int64), *value, value, "elementary-bound")
    program = PlacingProgram(batch.load, batch.cost, place_all=False, chunk=batch.chunk)
    model = program.model
    filled = []
    for d, tokens in enumerate(program.tokens):
        used = model.new_int_var(0, batch.chunk, f"filled[{d}]")
        model.add(used <= tokens)
        filled.append(used)
    placed = sum(program.tokens)
    pending = sum(program.on[r][d] for r in range(n) if batch.pending[r] for d in range(batch.num_units))
    none_chosen = np.full(n, -1, dtype=np.int64)
    unit = pbaa(batch.chunk - batch.load, batch.length, batch.hits, batch.pending)
    proof = "elementary-bound"
    bounds, settled = [_most_filled(batch), fill_of(batch, none_chosen)[1], int(batch.pending.sum())], True
    for stage in range(stages):
        value = fill_of(batch, unit)
        if stage == 1:
            model.add(sum(filled) == value[0])
        elif stage == 2:
            model.add(placed == value[0] + value[1])  # with the same fill, the rest of what is placed overshoots
        if value[stage] == bounds[stage] or not settled:
            continue
        if stage == 1:
            model.minimize(placed - value[0])
        else:
            model.maximize(sum(filled) if stage == 0 else pending)
        program.hint(unit)
        found, claimed = program.solve(left(), seed)
        if found is not None and _rank(batch, found) > _rank(batch, unit):
            unit = found
        reached, sign = fill_of(batch, unit)[stage], -1 if stage == 1 else 1
        if claimed is not None and sign * reached <= sign * claimed < sign * bounds[stage]:
            bounds[stage], proof = claimed, "claimed:cp-sat"
        settled = reached == bounds[stage]
    value = fill_of(batch, unit)
    return Fill(unit, *value, (bounds[0], bounds[1], bounds[2]), proof)


def _rank(batch: PrefillBatch, unit: NDArray[np.int64]) -> tuple[int, int, int]:
    """Return what is compared: the greater, the better."""
    filled, overshoot, pending = fill_of(batch, unit)
    return filled, -overshoot, pending


def _most_filled(batch: PrefillBatch) -> int:
    """Return a bound on the tokens of the pass: all chunks, or if they are fewer, what the units have in it and what
    each request can add to it where it adds most. On unit d that is at most the headroom there.
    """
    held = np.minimum(batch.load, batch.chunk)
    adds = np.minimum(batch.cost, batch.chunk - held).max(axis=1, initial=0)
    tokens: int = sum(held.tolist()) + sum(adds.tolist())
    return min(batch.num_units * batch.chunk, tokens)
