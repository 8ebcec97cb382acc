"""The loop over moments: times at which anything happens.

In every moment, in this order: passes end; the number of healthy instances changes; requests reach their instance;
requests arrive and are bound, refused or queued; the scheduler hands out batches; passes start. So who comes at the
very time of a start is in that pass, and an instance whose pass ends can be topped up before the next one begins.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.allocation import Batch
from lbopt.kernels.prefill.anticipation import learn_pass
from lbopt.kernels.prefill.codes import ANTICIPATING, LAST_IMMEDIATE, TICK
from lbopt.kernels.prefill.instances import deliver, end_pass, start_pass
from lbopt.kernels.prefill.scheduler import bind, dispatch, measure_pass, recompute
from lbopt.kernels.prefill.state import FINISHED, PAUSED, ROWS_FULL, STUCK, Passes, Requests, Setting, State


@kernel
def run(requests: Requests, setting: Setting, state: State, batch: Batch, passes: Passes) -> int:
    """Run until all requests are finished or refused; returns why it came back (FINISHED, ROWS_FULL, PAUSED, STUCK).

    Called again it goes on where it was.

    Parameters
    ----------
    requests, setting
        Of the run.
    state, batch
        Changed in place.
    passes
        Rows from ``state.progress.row`` on are written; the caller empties them in between, by setting it to 0 and
        adding what it took to ``state.progress.passes``.
    """
    progress, instances, touched = state.progress, state.instances, state.touched
    arrival, waiting, queue_limit = requests.arrival, state.waiting, setting.queue_limit
    N, n, rows = instances.size, arrival.size, passes.rows.size
    latency, by_tick, immediate = setting.latency, setting.policy == TICK, setting.policy <= LAST_IMMEDIATE
    ahead = setting.policy == ANTICIPATING
    looks = by_tick or setting.while_left_over or ahead  # although no instance is idle
    while progress.unfinished > 0:
        if progress.row + N > rows:
            return ROWS_FULL
        if progress.moments_left == 0:
            return PAUSED
        progress.moments_left -= 1
        now = min(min(progress.next_end, progress.next_reach), min(progress.next_change, progress.timer))
        if progress.coming < n:
            now = min(now, arrival[progress.coming])
        if now == np.inf:
            return STUCK
        progress.now = now
        progress.touched = 0
        if progress.next_end <= now:
            _end_passes(now, setting, state)
        if progress.next_change <= now:
            _change_fleet(now, setting, state)
        if progress.next_reach <= now:
            deliver(now, latency, state)
        arrived = False
        while progress.coming < n and arrival[progress.coming] <= now:
            i = progress.coming
            progress.coming += 1
            if progress.not_begun >= queue_limit:
                progress.refused += 1
                progress.unfinished -= 1
                continue
            progress.not_begun += 1
            if immediate:
                bind(i, now, requests, setting, state)
            else:
                waiting[progress.queue_tail] = i
                progress.queue_tail += 1
                progress.queued += requests.length[i]
                arrived = True
        if progress.queue_head < progress.queue_tail:
            if progress.idle > 0 or looks:
                dispatch(now, arrived, setting, state, batch)
            else:
                progress.timer = np.inf  # the next end of a pass brings the next look
        row = progress.row
        for k in range(progress.touched):
            instances[touched[k]].is_touched = 0
            start_pass(touched[k], now, setting, state, passes)
        if ahead and progress.row > row and progress.queue_head < progress.queue_tail:
            progress.timer = now  # another look: the ends of these passes are predicted now
    return FINISHED


@kernel
def _end_passes(now: float, setting: Setting, state: State) -> None:
    """End all passes that end now, in the order of the instances."""
    ends = state.ends
    measured = state.window.size > 0
    nearest = np.inf
    for g in range(ends.size):
        if ends[g] <= now:
            seconds = end_pass(g, now, state)
            if measured and seconds >= 0:
                measure_pass(seconds, now, setting, state)
                if setting.policy == ANTICIPATING:
                    learn_pass(g, now, setting, state)
        else:
            nearest = min(nearest, ends[g])
    state.progress.next_end = nearest


@kernel
def _change_fleet(now: float, setting: Setting, state: State) -> None:
    """Change the number of healthy instances, and the interval with it."""
    progress, change_at = state.progress, setting.change_at
    while progress.next_change <= now:
        progress.healthy = setting.change_to[progress.change]
        progress.change += 1
        progress.next_change = change_at[progress.change] if progress.change < change_at.size else np.inf
        recompute(now, setting, progress)
