"""(P2) The best fill of the next pass: which requests to place where, the others wait.

First as many tokens as possible in the pass, each unit up to its chunk; with that, as few tokens as possible beyond the
chunks; with that, as many old requests as possible. CP-SAT, one solve each, the value reached before held by a row.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill.exact.batch import PrefillBatch
from lbopt.prefill.exact.placement import Fill, fill_of
from lbopt.prefill.greedy_batch import pbaa
from lbopt.solvers.placing_program import PlacingProgram


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
    nobody = np.full(n, -1, dtype=np.int64)
    unit = pbaa(batch.chunk - batch.load, batch.length, batch.hits, batch.pending)
    proof = "elementary-bound"
    bounds, settled = [_most_filled(batch), fill_of(batch, nobody)[1], int(batch.pending.sum())], True
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
