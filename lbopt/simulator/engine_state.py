"""Fresh arrays of `Engine` for the compiled loop; all but its rules are empty where workers are kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import record
from lbopt.kernels.engine import state as compiled
from lbopt.kernels.engine.state import JOIN, RULES, TALLY
from lbopt.kernels.simulation.state import Requests
from lbopt.model import Fleet
from lbopt.simulator.engine import Engine


def fresh_engine(engine: Engine | None, fleet: Fleet, requests: Requests, seed: int) -> compiled.Engine:
    """Return what the loop knows of workers before the first decision.

    Parameters
    ----------
    engine
        The options; None = workers are kind.
    fleet, requests, seed
        Of the run.
    """
    N, G = (requests.prompt.size, fleet.num_workers) if engine is not None else (0, 0)
    chosen = Engine() if engine is None else engine

    def per_request(value: int = 0) -> NDArray[np.int64]:
        return np.full(N, value, dtype=np.int64)

    def per_worker(value: int = 0) -> NDArray[np.int64]:
        return np.full(G, value, dtype=np.int64)

    rules = record(RULES)
    rules.on = engine is not None
    rules.blocks = -1 if chosen.preempt == "none" else (fleet.kv_capacity or 0) // chosen.block
    rules.block = chosen.block
    rules.kept_free = int(chosen.watermark * max(0, int(rules.blocks)))
    rules.swaps = chosen.preempt == "swap"
    rules.budget, rules.draft = chosen.prefill, chosen.draft
    rules.transfer, rules.compute_seconds = chosen.transfer, chosen.prefill_cost
    rules.move_seconds, rules.draft_seconds = chosen.swap_cost, chosen.draft_cost
    rules.seed = np.random.SeedSequence(seed).generate_state(2, np.uint64)[1]  # the first is that of reports

    slots, slow, is_open = per_worker(fleet.slots_per_worker), np.ones(G), per_worker(1)
    for worker, count in chosen.slots:
        slots[worker] = count
    for worker, factor in chosen.slow:
        slow[worker] = factor
    events = chosen.events
    for _, worker, kind in reversed(events):  # the first event of a worker has the last word
        is_open[worker] = kind != JOIN
    size = np.array(requests.prompt[:N])
    return compiled.Engine(
        rules=rules,
        tally=record(TALLY),
        slots=slots,
        slow=slow,
        is_open=is_open,
        event_clock=np.array([second for second, _, _ in events], dtype=np.float64),
        event_worker=np.array([worker for _, worker, _ in events], dtype=np.int64),
        event_kind=np.array([kind for _, _, kind in events], dtype=np.int64),
        seats=np.full((G, fleet.slots_per_worker), -1, dtype=np.int64),
        size=size,
        made=per_request(),
        computed=per_request() if chosen.prefill else size.copy(),
        lost=per_request(),
        swapped=per_request(),
        held=per_request(),
        ready=np.zeros(N),
        chance=_chances(chosen, rules.seed, N if chosen.draft else 0),
        first_token_step=per_request(-1),
        finish_step=per_request(-1),
        used=per_worker(),
        stopped=per_worker(),
        moved=per_worker(),
        free=per_worker(),
        part=per_worker(),
        narrow=np.zeros((6, G), dtype=np.int64),
    )


def _chances(engine: Engine, seed: np.uint64, count: int) -> NDArray[np.float64]:
    """Return the chance of each of `count` requests that a drafted token is accepted."""
    chances = np.zeros(count)
    if count:
        from lbopt.kernels.engine.step import draw_chances

        draw_chances(seed, engine.acceptance, engine.spread, chances)
    return chances
