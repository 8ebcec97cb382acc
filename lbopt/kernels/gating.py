"""When a rank may compute prompts: the gates of serving engines, one decision for all ranks before every step.

Where prompts are computed on the workers that decode, one rank's chunk makes every rank wait, so engines hold prompts
back until several ranks compute them in the same step. Before a step each rank publishes a `RANK`; `decide_gate` writes
how many tokens of prompts may begin there, and whether prompts that have begun stop.

Sources, read 2026-11: vLLM 0.32 (``Scheduler.schedule``, ``DPEngineCoreProc._should_throttle_prefills``), SGLang
(``PrefillDelayer``), TensorRT-LLM (``PyExecutor._balance_adp_requests``), ATOM (``PrefillDelayer``), vllm-ascend
(``patch_balance_schedule.py``), SBS (arXiv 2512.16134, Algorithm 1, one instance). Restated: the manual, page *detail*.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Record, Records
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

# codes; those from VLLM on decide when all requests of a decision have been sent
NONE = 0
ASCEND = 1
VLLM = 2
SGLANG = 3
TRTLLM = 4
ATOM = 5
SBS = 6

#: Where a gate stands.
GATE = np.dtype(
    [
        ("code", np.int64),
        ("shut", np.int64),  # 1: none is let in, whatever it lacks: not decided yet, or ASCEND
        ("budget", np.int64),  # tokens that a rank computes in a step
        ("capacity", np.int64),  # tokens that a rank holds; -1 = unknown
        ("counter", np.int64),  # steps of the wave; passes held in a row; iterations that waited for other ranks
        ("waited", np.int64),  # iterations waited for more prompts; passes in a row in which no work was added
        ("pending", np.int64),  # tokens that waited at the pass before; -1 = none is held
        ("is_first", np.int64),  # 1 until the first hold was skipped
        ("passes", np.int64),  # SBS: measured so far
        ("since", np.float64),  # s, since when prompts are held, or the last release
    ],
    align=True,
)

#: What a rank publishes, and what is decided of it: `room` and `stops`.
RANK = np.dtype(
    [
        ("present", np.int64),  # 0: closed, and nothing is left on it
        ("decoding", np.int64),  # requests that run and lack nothing
        ("begun", np.int64),  # requests that run and lack tokens
        ("can_begin", np.int64),  # 1: the head of the queue is a prompt, and a slot and memory are free for it
        ("waiting", np.int64),  # requests in the queue
        ("pending", np.int64),  # tokens that those begun and waiting lack, at most the budget
        ("most", np.int64),  # requests that computed prompts in one step, the most so far
        ("bound", np.int64),  # 1: requests were left in the queue when prompts were last allowed
        ("room", np.int64),  # tokens of prompts that may begin
        ("stops", np.int64),  # 1: prompts that have begun stop in this step
        ("usage", np.float64),  # share of its memory in use; NaN = unknown
        ("age", np.float64),  # s, that the head of the queue has waited
    ],
    align=True,
)


#: Knobs of all gates by their sources' names; NaN = off.
KNOBS = np.dtype(
    [
        (name, np.float64)
        for name in (
            *("interval", "max_delay_passes", "token_usage_low_watermark", "queue_min_ratio", "max_delay_ms"),
            *("timeout_iters", "batching_wait_iters", "target_fill", "ttft_max_ticks", "partial_max_ticks"),
            *("stall_ticks", "kv_high_watermark", "max_queue_ms", "window", "default_pass", "latency"),
        )
    ],
    align=True,
)


@by_reference
class Gate(NamedTuple):
    """The gate of G ranks; without one all arrays are empty."""

    terms: Record  # GATE
    knobs: Record  # KNOBS
    ranks: Records  # RANK (G,)
    seconds: Floats  # float64 (W,), of the last steps that computed prompts


@kernel
def decide_gate(clock: float, idle: bool, slots: int, gate: Gate) -> None:
    """Write `RANK.room` and `RANK.stops`, and where the gate stands.

    Parameters
    ----------
    clock, idle
        s; whether nothing runs anywhere. Passes of idle engines take no time, so that nothing is held then.
    slots
        Of the rank with the fewest.
    gate
        What ranks published is read; `RANK.room` was what decoding leaves of the budget.
    """
    terms, ranks = gate.terms, gate.ranks
    if terms.code == VLLM:
        _hold_by_cadence(idle, gate)
        return
    if terms.code == SGLANG:
        held = _delayer_holds(clock, idle, slots, gate)
    elif terms.code == TRTLLM:
        held = _balance_holds(slots, gate)
    elif terms.code == ATOM:
        held = _coalescer_holds(gate)
    else:
        held = _interval_holds(clock, idle, gate)
    for w in range(ranks.size):
        if held:
            ranks[w].room = 0
        ranks[w].stops = 1 if held and (terms.code == TRTLLM or terms.code == ATOM) else 0


@kernel
def _hold_by_cadence(idle: bool, gate: Gate) -> None:
    """Apply vLLM's rule: a rank defers on steps between, unless it could not take all last time or decodes nothing."""
    terms, ranks = gate.terms, gate.ranks
    if idle:
        terms.counter = 0
    closed = terms.counter % int(gate.knobs.interval) != 0
    for w in range(ranks.size):
        defers = closed and ranks[w].bound == 0 and ranks[w].decoding > 0
        ranks[w].stops = 1 if defers else 0
        if defers:
            ranks[w].room = 0


@kernel
def _delayer_holds(clock: float, idle: bool, slots: int, gate: Gate) -> bool:
    """Return whether SGLang's PrefillDelayer holds."""
    terms, ranks = gate.terms, gate.ranks
    present, prefillable, low = 0, 0, False
    running, batch, queue = 0, 0, 0
    for w in range(ranks.size):
        rank = ranks[w]
        if rank.present == 0:
            continue
        present += 1
        prefillable += rank.can_begin
        low = low or (rank.can_begin == 1 and rank.usage < gate.knobs.token_usage_low_watermark)
        running, batch, queue = max(running, rank.decoding), max(batch, rank.most), max(queue, rank.waiting)
    held = False
    if prefillable == 0 or idle or low:
        held = False
    elif prefillable < present:
        held = terms.counter < gate.knobs.max_delay_passes - 1
    else:
        held = slots - running < batch
        if not math.isnan(gate.knobs.queue_min_ratio):
            least = min(int(running * gate.knobs.queue_min_ratio), batch)
            late = terms.counter > 0 and 1000.0 * (clock - terms.since) >= gate.knobs.max_delay_ms
            held = held or (queue < least and not late)
        if held and terms.is_first == 1:
            terms.is_first = 0
            held = False
    if not held:
        terms.counter = 0
        return False
    if terms.counter == 0:
        terms.since = clock
    terms.counter += 1
    return True


@kernel
def _balance_holds(slots: int, gate: Gate) -> bool:
    """Return whether TensorRT-LLM's balance holds."""
    terms, ranks = gate.terms, gate.ranks
    all_compute, all_decode, all_free = True, True, True
    for w in range(ranks.size):
        rank = ranks[w]
        if rank.present == 1:
            all_compute = all_compute and rank.begun + rank.can_begin > 0
            all_decode = all_decode and rank.decoding > 0
            all_free = all_free and rank.decoding < slots
    if all_compute and all_free:
        terms.counter = 0
        if not all_decode:
            return False
        held = terms.waited < gate.knobs.batching_wait_iters
        terms.waited = terms.waited + 1 if held else 0
        return bool(held)
    terms.counter += 1
    if terms.counter >= gate.knobs.timeout_iters or not all_decode:
        terms.counter = 0
        return False
    return True


@kernel
def _coalescer_holds(gate: Gate) -> bool:
    """Return whether ATOM's PrefillDelayer holds."""
    terms, ranks, knobs = gate.terms, gate.ranks, gate.knobs
    present, prefillable, pending, decoding = 0, 0, 0, 0
    begun, forced = False, False
    for w in range(ranks.size):
        rank = ranks[w]
        if rank.present == 0:
            continue
        present += 1
        pending += rank.pending
        decoding += rank.decoding
        begun = begun or rank.begun > 0
        if rank.begun + rank.can_begin > 0:
            prefillable += 1
            forced = (
                forced
                or rank.usage >= knobs.kv_high_watermark
                or rank.usage < knobs.token_usage_low_watermark
                or 1000.0 * rank.age >= knobs.max_queue_ms
            )
    fires = terms.is_first == 1 or prefillable == 0 or decoding == 0 or forced
    fires = fires or terms.counter >= knobs.ttft_max_ticks or (begun and terms.counter >= knobs.partial_max_ticks)
    if not fires and prefillable == present:
        fires = pending / (prefillable * terms.budget) >= knobs.target_fill
        if not fires:
            terms.waited = terms.waited + 1 if pending <= terms.pending else 0
            terms.pending = pending
            fires = terms.waited >= knobs.stall_ticks
    terms.is_first = 0
    if fires:
        terms.counter, terms.waited, terms.pending = 0, 0, -1
        return False
    terms.counter += 1
    return True


@kernel
def _interval_holds(clock: float, idle: bool, gate: Gate) -> bool:
    """Return whether SBS holds on one instance: until a mean pass after the last release, and while it computes."""
    terms, ranks = gate.terms, gate.ranks
    ready, waiting = True, 0
    for w in range(ranks.size):
        ready = ready and ranks[w].begun == 0
        waiting += ranks[w].waiting
    count = min(terms.passes, gate.seconds.size)
    typical = gate.knobs.default_pass
    if count > 0:
        total = 0.0
        for k in range(count):
            total += gate.seconds[k]
        typical = total / count
    if waiting == 0 or not (idle or (ready and clock - terms.since >= typical + gate.knobs.latency)):
        return waiting > 0
    terms.since = clock
    return False


@kernel
def end_gated_step(computed: int, seconds: float, any_full: bool, gate: Gate) -> None:
    """Note a step that computed so many tokens of prompts, after which some rank was full or none was."""
    terms = gate.terms
    if terms.code == ASCEND:
        terms.shut = 1 if any_full else 0
    elif terms.code == VLLM:
        terms.counter += 1
    elif terms.code == SBS and computed > 0:
        gate.seconds[terms.passes % gate.seconds.size] = seconds
        terms.passes += 1
