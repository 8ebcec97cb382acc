"""One step of workers that are not kind: every running request is visited.

Decoding requests come first; what a worker may still compute goes to prompts, in the order of its list. A request that
ends or does not end keeps the order of the others. Definition: the manual, page *engine*, "A step".
"""

import math

import numpy as np

from lbopt.kernels.arrays import Floats
from lbopt.kernels.compile import kernel
from lbopt.kernels.engine.memory import blocks_of
from lbopt.kernels.engine.state import Engine
from lbopt.kernels.routing.books import entry_of
from lbopt.kernels.simulation.sight import share
from lbopt.kernels.simulation.state import Requests, Rows, Setting, State


@kernel
def take_engine_step(requests: Requests, setting: Setting, state: State, rows: Rows) -> None:
    """Advance by one step and write its row. Cost: one visit to every running request.

    Parameters
    ----------
    requests, setting
        Of the run.
    state
        Changed in place.
    rows
        Row ``state.progress.row`` is written.
    """
    progress, engine = state.progress, state.engine
    r, G = progress.row, state.load.size
    rows.blocks[r] = engine.used.sum()
    rows.admitted[r] = progress.admitted
    rows.waiting[r] = progress.waiting
    rows.free_slots[r] = progress.free_slots
    rows.real_choice[r] = progress.real_choice
    progress.admitted = 0
    progress.step += 1

    slowest, total, active, made, computed, completed = 0.0, 0, 0, 0, 0, 0
    drafts = False
    of_running = setting.seconds_of_running
    for w in range(G):
        ran = state.running[w]
        attended, part, tokens, prompts, decoding = _run_worker(w, requests, setting, state)
        rows.barrier_loads[r, w] = attended
        engine.part[w] = part
        own = setting.seconds_per_token * attended
        if of_running.size > 0:
            own += of_running[part]
        own += prompts * engine.rules.compute_seconds + engine.moved[w] * engine.rules.move_seconds
        engine.moved[w] = 0
        slowest = max(slowest, own * engine.slow[w])
        total += attended
        active += part
        made += tokens
        computed += prompts
        completed += ran - state.running[w]
        drafts = drafts or decoding > 0
    together = 0.0
    if setting.seconds_per_mean_token > 0:
        together = setting.seconds_per_mean_token * (total / G)
    if setting.seconds_of_active.size > 0:
        together += setting.seconds_of_active[active]
    if drafts and engine.rules.draft > 0:
        together += engine.rules.draft_seconds
    seconds = setting.fixed_seconds + slowest + together

    progress.clock += seconds
    progress.active -= completed
    over = 0
    for w in range(G):
        rows.post_loads[r, w] = state.load[w]
        if setting.kv_capacity >= 0 and rows.barrier_loads[r, w] > setting.kv_capacity:
            over += 1
    if rows.running.shape[0] > 0:
        rows.running[r] = engine.part
    rows.active[r] = active
    rows.seconds[r] = seconds
    rows.clock[r] = progress.clock
    rows.over_capacity[r] = over
    rows.completed[r] = completed
    rows.made[r] = made
    rows.computed[r] = computed
    rows.experts[r] = math.nan
    progress.row = r + 1


@kernel
def _run_worker(w: int, requests: Requests, setting: Setting, state: State) -> tuple[int, int, int, int, int]:
    """Let worker `w` do its part of the step.

    Returns
    -------
    tuple of ints
        Tokens attended to, requests that took part, tokens made, tokens computed, and requests that decoded.
    """
    engine, rules = state.engine, state.engine.rules
    seats, size, done = engine.seats[w], engine.size, engine.computed
    n = state.running[w]
    left = rules.budget
    if rules.budget > 0:
        for seat in range(n):
            if done[seats[seat]] == size[seats[seat]]:
                left -= 1 + rules.draft
    attended, part, tokens, prompts, decoding, kept = 0, 0, 0, 0, 0, 0
    for seat in range(n):
        i = seats[seat]
        lacking = size[i] - done[i]
        drafts = rules.draft
        if lacking > 0:
            more = lacking
            if rules.budget > 0:
                more = min(lacking, left)
                left -= more
                drafts = 0
            _compute(i, more, engine)
            prompts += more
            if done[i] < size[i]:
                if more > 0:
                    part += 1
                    attended += done[i]
                seats[kept] = i
                kept += 1
                continue
        part += 1
        attended += size[i]
        if lacking == 0 or rules.budget == 0:
            decoding += 1
        new = 1
        if drafts > 0:
            new += _accepted(i, drafts, engine)
        new = min(new, requests.output[i] - engine.made[i])
        if engine.made[i] == 0:
            engine.first_token_step[i] = state.progress.step
        engine.made[i] += new
        tokens += new
        if engine.made[i] == requests.output[i]:
            _end(i, w, requests, setting, state)
            continue
        size[i] += new
        done[i] = size[i]
        state.load[w] += new
        if rules.blocks >= 0:
            _grow(i, w, engine)
        seats[kept] = i
        kept += 1
    state.running[w] = kept
    return attended, part, tokens, prompts, decoding


@kernel
def _compute(i: int, more: int, engine: Engine) -> None:
    """Compute `more` tokens of request `i`."""
    again = min(more, engine.lost[i])
    engine.lost[i] -= again
    engine.tally.recomputed += again
    engine.computed[i] += more


@kernel
def _accepted(i: int, drafts: int, engine: Engine) -> int:
    """Return how many of the drafted tokens of request `i` are accepted."""
    accepted = 0
    while accepted < drafts and share(engine.rules.seed, i, engine.made[i] + accepted + 1) < engine.chance[i]:
        accepted += 1
    return accepted


@kernel
def _grow(i: int, w: int, engine: Engine) -> None:
    """Give request `i` of worker `w` the blocks that its next step needs, also where there are none left."""
    rules = engine.rules
    needed = engine.size[i] + rules.draft
    if engine.held[i] * rules.block < needed:  # a division for every token would be half of the step
        blocks = blocks_of(engine.size[i], rules)
        engine.used[w] += blocks - engine.held[i]
        engine.held[i] = blocks


@kernel
def _end(i: int, w: int, requests: Requests, setting: Setting, state: State) -> None:
    """Let request `i` of worker `w` end; its seat is given up by the caller.

    Parameters
    ----------
    i, w
        Request and worker.
    requests, setting
        Of the run.
    state
        Changed in place.
    """
    engine = state.engine
    state.load[w] -= engine.size[i]
    engine.finish_step[i] = state.progress.step
    engine.used[w] -= engine.held[i]
    engine.held[i] = 0
    books = state.sight.books
    if books.size > 0:
        books[i % len(books), w] -= entry_of(setting.code, requests.prompt[i])


@kernel
def draw_chances(seed: np.uint64, mean: float, spread: float, chance: Floats) -> None:
    """Write the chance that a drafted token is accepted, of each request, into `chance`, float64 (N,)."""
    for i in range(chance.size):
        chance[i] = min(1.0, max(0.0, mean + spread * (2.0 * share(seed, i, 0) - 1.0)))
