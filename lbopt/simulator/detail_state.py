"""Fresh arrays of `Detail` for the compiled loop; all but its rules are empty without it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints, Record, Records, record, records
from lbopt.kernels.detail import state as compiled
from lbopt.kernels.detail.state import JOIN, RULES, TALLY, TRACK
from lbopt.kernels.pausing.state import TERMS, Pausing
from lbopt.kernels.prefix_cache.state import ABSENT, NONE, PrefixCache
from lbopt.kernels.simulation.state import Requests
from lbopt.model import Fleet, RequestPrefixes
from lbopt.simulator.detail import PAUSE, Detail


def fresh_detail(
    detail: Detail | None, fleet: Fleet, requests: Requests, seed: int, prefixes: RequestPrefixes | None
) -> compiled.Detail:
    """Return what the loop knows of workers before the first decision.

    Parameters
    ----------
    detail
        The options; None = none of it.
    fleet, requests, seed
        Of the run.
    prefixes
        Of the requests, where they are known.
    """
    N, G = (requests.prompt.size, fleet.num_workers) if detail is not None else (0, 0)
    chosen = Detail() if detail is None else detail

    def per_worker(value: int = 0) -> NDArray[np.int64]:
        return np.full(G, value, dtype=np.int64)

    rules = record(RULES)
    rules.on = detail is not None
    rules.blocks = -1 if chosen.preempt == "none" else (fleet.kv_capacity or 0) // chosen.block
    rules.block = chosen.block
    rules.kept_free = int(chosen.watermark * max(0, int(rules.blocks)))
    rules.swaps = chosen.preempt == "swap"
    rules.budget, rules.draft = chosen.prefill, chosen.draft
    rules.gate = chosen.gate
    rules.transfer, rules.compute_seconds = chosen.transfer, chosen.prefill_cost
    rules.move_seconds, rules.draft_seconds = chosen.swap_cost, chosen.draft_cost
    rules.seed = np.random.SeedSequence(seed).generate_state(2, np.uint64)[1]  # the first is that of reports

    slow, is_open = np.ones(G), per_worker(1)
    for worker, factor in chosen.slow:
        slow[worker] = factor
    events = chosen.events
    for _, worker, kind in reversed(events):  # the first event of a worker has the last word
        is_open[worker] = kind != JOIN
    size = np.array(requests.prompt[:N])
    return compiled.Detail(
        rules=rules,
        tally=record(TALLY),
        slow=slow,
        is_open=is_open,
        event_clock=np.array([second for second, _, _ in events], dtype=np.float64),
        event_worker=np.array([worker for _, worker, _ in events], dtype=np.int64),
        event_kind=np.array([kind for _, _, kind in events], dtype=np.int64),
        seats=np.full((G, fleet.slots_per_worker), -1, dtype=np.int64),
        tracks=_tracks(chosen, rules.seed, size, requests.output[:N]),
        size=size,
        ready=np.zeros(N),
        first_token_step=np.full(N, -1, dtype=np.int64),
        finish_step=np.full(N, -1, dtype=np.int64),
        used=per_worker(),
        committed=np.zeros(G if rules.blocks >= 0 else 0, dtype=np.int64),
        moved=per_worker(),
        free=per_worker(),
        open_workers=per_worker(),
        shown_load=per_worker(),
        shown_running=per_worker(),
        shown_queued=per_worker(),
        shown_tokens=per_worker(),
        shown_own=per_worker(),
        cache=_fresh_cache(chosen, rules, G, requests.prompt[:N], prefixes),
        pausing=fresh_pausing(chosen, G if chosen.pause != "none" else 0, fleet.slots_per_worker),
    )


def _fresh_cache(
    detail: Detail, rules: Record, workers: int, prompt: Ints, prefixes: RequestPrefixes | None
) -> PrefixCache:
    """Return empty caches of prefixes, and note their size in `rules`.

    Parameters
    ----------
    detail, rules
        The options, and the loop's record of them.
    workers, prompt
        G, and int64 (N,), tokens.
    prefixes
        As of `fresh_detail`.
    """
    first, blocks, different, caches = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), 0, 0
    if detail.prefix_cache and workers:
        assert prefixes is not None
        first, blocks, different = prefixes.full_blocks(prompt)
        rules.cache_block, caches = prefixes.block_tokens, workers
        rules.cache_blocks = detail.prefix_cache // prefixes.block_tokens
    return PrefixCache(
        first=first,
        blocks=blocks,
        newer=np.full((caches, different), ABSENT, dtype=np.int32),
        older=np.full((caches, different), NONE, dtype=np.int32),
        newest=np.full(caches, NONE, dtype=np.int64),
        oldest=np.full(caches, NONE, dtype=np.int64),
        held=np.zeros(caches, dtype=np.int64),
        to_compute=np.zeros(workers if detail.prefill else 0, dtype=np.int64),
    )


def fresh_pausing(detail: Detail, workers: int, slots: int) -> Pausing:
    """Return what pausing needs before the first step, for so many workers."""
    terms = record(TERMS)
    terms.mode = PAUSE.index(detail.pause)
    terms.first_step, terms.threshold = detail.pause_from, detail.pause_threshold
    terms.long_blocks, terms.stays = detail.pause_long, detail.pause_for

    def per_worker(*width: int) -> NDArray[np.int64]:
        return np.zeros((workers, *width), dtype=np.int64)

    return Pausing(
        terms=terms,
        inside=per_worker(2 * slots),
        num_inside=per_worker(),
        outside=per_worker(2 * slots),
        num_outside=per_worker(),
        load=per_worker(),
        order=per_worker(),
        changed=per_worker(),
        leaving=per_worker(2 * slots),
        num_leaving=per_worker(),
        entering=per_worker(2 * slots),
        num_entering=per_worker(),
        candidates=per_worker(),
        paused=np.zeros(slots if workers else 0, dtype=np.int64),
    )


def _tracks(detail: Detail, seed: np.uint64, prompt: Ints, output: Ints) -> Records:
    """Return the tracks of all requests before they start.

    Parameters
    ----------
    detail, seed
        The options, and the seed of its draws.
    prompt, output
        int64 (N,), tokens.
    """
    tracks = records(prompt.size, TRACK)
    tracks.tokens, tracks.wanted = prompt, output
    tracks.computed = 0 if detail.prefill else prompt
    if detail.draft and prompt.size:
        from lbopt.kernels.detail.step import draw_chances

        draw_chances(seed, detail.acceptance, detail.spread, tracks)
    return tracks
