"""Batches that are sent ahead of the end of a pass, so that they reach the instance before its next pass starts.

A batch that leaves the scheduler when a pass ends comes a latency too late for the next one. Staggered batch scheduling
(SBS, arXiv 2512.16134, caption of figure 2) sends to engines that are ready *or soon ready*, and gives no rule. This
one is ours.

* Law of a pass. Seconds over the tokens of the fullest unit, the least-squares line through the last W passes of all
  instances; its slope is kept between 0 and (mean seconds / mean tokens), since no pass takes less than nothing or less
  for more. The scheduler knows what a pass holds when it starts, hence the predicted end. A set error is put on the
  predicted seconds: times (1 + error * z), with z standard normal.
* Margin. A batch is to reach its instance so long before the predicted end: `margin` times the root of the mean square
  of what the last W predictions missed, at least LEAST_MARGIN. Where the queue fills the pass it is FILLED times that:
  who arrives later would find no room, so to be early costs little, and a miss costs a pass of what is left over.
* Pass to come. Its load on a unit is what was sent there, less what the running pass computes. It starts by itself at
  the end of the running pass if anything was sent for it, or is left over; else when the first batch reaches it.
* Window. An instance that will start by itself takes batches from (predicted end - margin - latency) on, until
  (predicted end - latency): later ones would miss the pass; if its pass is predicted to be shorter than the latency,
  none is in time and all go at once. One that will not start by itself has no end of its window. Its pass is not to
  start before (last start that was planned + `spacing` * mean pass / healthy instances), so that passes do not start
  together, and the batch is timed for the predicted end itself, since to be late costs no more than that. But if the
  queue fills the pass, a later batch would be no better: it is sent a margin ahead, without spacing.
* Whom. Among the instances in their window that have room, the one whose pass to come is predicted to start the
  soonest; one that runs nothing before others, then the one that has been free the longest. Later arrivals may follow
  while the window is open. What it leaves in the queue closes it for that pass; but if the queue had filled the pass,
  arrivals that fit beside the batch still go there, since a hole in such a pass is lost.
* Room. Of each unit by itself: what one has beyond a chunk takes nothing from the others.
* Misses. A batch that comes too late, because the pass ended before its predicted end, waits on the device for the pass
  after, and is part of the load of that one: no place is given away twice.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill import rules
from lbopt.kernels.prefill.codes import BACK_TO_BACK, CLOSED, FULL, LEAST_MARGIN, TOPPED_UP
from lbopt.kernels.prefill.rules import Moment, PassToCome
from lbopt.kernels.prefill.state import Setting, State

opening, goes_before, slope_of = kernel(rules.opening), kernel(rules.goes_before), kernel(rules.slope_of)


@kernel
def predict_end(g: int, now: float, setting: Setting, state: State) -> None:
    """Predict the end of the pass that instance g starts now."""
    instance, progress, deviations = state.instances[g], state.progress, setting.deviations
    seconds = progress.law_seconds + progress.law_slope * (instance.fullest - progress.law_tokens)
    z = deviations[(instance.begun * state.instances.size + g) % deviations.size]
    instance.predicted_end = now + max(0.0, max(0.0, seconds) * (1.0 + setting.error * z))


@kernel
def learn_pass(g: int, now: float, setting: Setting, state: State) -> None:
    """Fit law and margin anew with the pass of instance g, which ends now and is the last one in the window."""
    instance, progress = state.instances[g], state.progress
    window, seen, missed = state.window, state.seen, state.missed
    W = window.size
    slot = (progress.measured - 1) % W
    seen[slot] = instance.fullest
    missed[slot] = now - instance.predicted_end
    held = min(W, progress.measured)
    x = y = xx = xy = ee = 0.0
    for k in range(progress.measured - held, progress.measured):
        tokens, seconds, miss = seen[k % W], window[k % W], missed[k % W]
        x += tokens
        y += seconds
        xx += tokens * tokens
        xy += tokens * seconds
        ee += miss * miss
    progress.law_slope = slope_of(held, x, y, xx, xy)
    progress.law_tokens = x / held
    progress.law_seconds = y / held
    progress.margin = max(LEAST_MARGIN, setting.margin * np.sqrt(ee / held))


@kernel
def soonest(now: float, setting: Setting, state: State) -> int:
    """Return the instance to which a batch goes now, or -1; sets the timer to the next time at which a window opens.

    `progress.last_start` is moved to the start of the pass that the batch is for.
    """
    progress, instances, ends = state.progress, state.instances, state.ends
    due = progress.last_start + setting.spacing * progress.mean_pass / max(1, progress.healthy)
    at = Moment(now, setting.latency, progress.margin, due, progress.queued)
    chosen, first, timer = -1, np.inf, np.inf
    for g in range(progress.healthy):
        one = instances[g]
        room = 0 if one.closed in (CLOSED, FULL) else headroom(g, setting, state)
        if room == 0:
            continue
        runs = ends[g] < np.inf
        by_itself = one.on_device + one.on_the_way > 0 or setting.engine == BACK_TO_BACK
        start, opens = opening(PassToCome(runs, one.started, one.predicted_end, by_itself, room), at)
        if opens > now:
            timer = min(timer, opens)
        elif start < first or (
            chosen >= 0
            and start == first
            and goes_before(runs, one.free_since, ends[chosen] < np.inf, instances[chosen].free_since)
        ):
            chosen, first = g, start
    progress.timer = timer
    if chosen >= 0:
        progress.last_start = max(progress.last_start, first)
    return chosen


@kernel
def reopen(state: State) -> None:
    """Let instances whose pass to come was filled take those who fit beside its batch, since a request arrived."""
    instances = state.instances
    for g in range(state.progress.healthy):
        if instances[g].closed == FULL:
            instances[g].closed = TOPPED_UP


@kernel
def headroom(g: int, setting: Setting, state: State) -> int:
    """Return the tokens for which the pass to come of instance g has room; 0 if it takes no further request."""
    instance, backlog, queues, chunk = state.instances[g], state.backlog, state.queues, setting.chunk
    D = backlog.shape[1]
    if instance.on_device + instance.on_the_way >= D * setting.capacity:
        return 0
    room = 0
    for d in range(D):
        room += max(0, chunk - (backlog[g, d] - queues[g * D + d].in_pass))
    return room
