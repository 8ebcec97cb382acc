"""What a log shows that the model of lockstep workers does not have: each thing is looked for, and said.

lbopt models workers that meet at a barrier in every step, all equally fast, that keep a request until it ends and start
it as soon as it is known and a slot is free. Each finding below is a departure from that. A finding that `forbids`
means that answers about other rules would be about another fleet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lbopt.instances.router_log import FINISHED
from lbopt.studies.audit.course import course_of, own_loads
from lbopt.studies.audit.happened import logged_tpot, modelled_tpot
from lbopt.studies.audit.law_from_log import weighted_residual
from lbopt.studies.audit.reconstruction import Reconstruction

#: No barrier: a request's own worker explains its time so much better than the heaviest does.
_OWN_EXPLAINS = 0.7
#: A slow worker: counting its tokens for more explains the times so much better.
_SLOW_EXPLAINS = 0.67
_SLOWER, _FASTER = (1.1, 1.2, 1.3, 1.4, 1.5), (0.9, 0.8, 0.67, 0.5)
#: Fleets up to this size are searched for a fast one too.
_FEW_WORKERS = 32
#: Fleets larger than this are not searched for a slow worker.
_MOST_WORKERS = 128
#: Share of the requests beyond which waits with a free slot, or pauses, are reported.
_MANY_WAITS, _MANY_PAUSES = 0.05, 0.002
#: Share of such waits beyond which the number of slots is doubted.
_MOSTLY = 0.5
#: Waits shorter than so many steps are those for the end of a step.
_STEPS = 2.5


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the model does not have.

    Parameters
    ----------
    kind
        "no barrier", "slow worker", "fast worker", "restart", "waits with free slots", "pauses" or "stalls".
    sentence
        What was seen, and what it means for the answers.
    forbids
        Whether no other rule can be judged by this log.
    """

    kind: str
    sentence: str
    forbids: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def find_departures(found: Reconstruction, slots: int) -> list[Finding]:
    """Return everything that the log shows and the model does not have.

    Parameters
    ----------
    found
        The log's fleet.
    slots
        Slots of a worker.
    """
    without = list(_no_barrier(found))
    if without:
        return without
    return [*_odd_worker(found), *_restarts(found), *_waits(found, slots), *_pauses(found), *_stalls(found)]


def waited_with_a_free_slot(found: Reconstruction, slots: int) -> Any:
    """Return for each attempt whether it waited for more than a few steps though its worker had a free slot, (N,).

    Parameters
    ----------
    found
        The log's fleet.
    slots
        Slots of a worker.
    """
    log, attempts = found.log, found.attempts
    step = found.mean_step_seconds
    late = log.start - log.arrival > _STEPS * step
    free = np.zeros(len(log), dtype=np.bool_)
    for g in range(len(log.workers)):
        mine = np.flatnonzero((log.worker == g) & late)
        if not mine.size:
            continue
        running = attempts.of_worker(g)[0]
        until = np.maximum(attempts.first[mine] - 1, 0)  # the interval before it starts
        since = np.searchsorted(attempts.times, attempts.times[attempts.first[mine]] - _STEPS * step) - 1
        full = np.concatenate([np.zeros(1), np.cumsum(running >= slots)])
        free[mine] = full[until + 1] == full[np.clip(since, 0, until)]
    return free


def _no_barrier(found: Reconstruction) -> Iterator[Finding]:
    log, course = found.log, found.course
    if len(log.workers) < 2:
        return
    tpot = logged_tpot(found)
    counted = course.over_requests(found.steps)
    rows = np.isfinite(tpot) & (counted > 0)
    output, took = log.output[rows].astype(np.float64), (log.finish - log.start)[rows]
    seconds = course.seconds * course.is_busy  # by time: without a barrier there are no common steps
    length = np.maximum(course.over_requests(seconds)[rows], 1e-12)
    shared = course.over_requests(seconds * course.heaviest)[rows] / length
    own = own_loads(found.attempts, seconds)[rows] / length
    weight = 1 / output
    together = weighted_residual(np.column_stack([output, output * shared]), took, weight)
    alone = weighted_residual(np.column_stack([output, output * own]), took, weight)
    if alone < _OWN_EXPLAINS * together:
        yield Finding(
            "no barrier",
            f"A request's time per token follows the load of its own worker, not that of the heaviest: its own load "
            f"leaves {alone / together:.0%} of the scatter that the heaviest leaves. These workers seem not to wait "
            "for each other, so there is no time at a barrier to be saved, and nothing below speaks of this fleet",
            forbids=True,
        )


def _odd_worker(found: Reconstruction) -> Iterator[Finding]:
    log, G = found.log, len(found.log.workers)
    if not 2 <= G <= _MOST_WORKERS:
        return
    rows = np.isfinite(logged_tpot(found))
    took, output = (log.finish - log.start)[rows], log.output[rows].astype(np.float64)

    def left_by(scale: Any) -> float:
        course = course_of(found.attempts, scale)
        counted = np.maximum(course.over_requests(found.steps), 1e-12)
        load = (course.over_requests(found.steps * course.heaviest) / counted)[rows]
        return weighted_residual(np.column_stack([output, output * load]), took, 1 / output)

    same = left_by(None)
    best, odd, factor = same, -1, 1.0
    for g in range(G):
        for speeds in (_SLOWER, _FASTER if G <= _FEW_WORKERS else ()):
            for k, times in enumerate(speeds):
                scale = np.ones(G)
                scale[g] = times
                left = left_by(scale)
                if left < best:
                    best, odd, factor = left, g, times
                elif k > 0:
                    break
    if odd >= 0 and best < _SLOW_EXPLAINS * same:
        slower = factor > 1
        yield Finding(
            "slow worker" if slower else "fast worker",
            f"Worker {odd} ({log.workers[odd]}) seems {'slower' if slower else 'faster'} than the others: counting its "
            f"tokens {factor:g}-fold leaves {best / same:.0%} of the scatter. Workers are taken to be equally fast "
            "here",
        )


def _restarts(found: Reconstruction) -> Iterator[Finding]:
    log, attempts = found.log, found.attempts
    G = len(log.workers)
    step = found.mean_step_seconds
    for g in range(G):
        ended = np.flatnonzero((log.worker == g) & (log.ending != FINISHED) & np.isfinite(log.finish))
        if ended.size < 3:
            continue
        times, counts = np.unique(attempts.last[ended], return_counts=True)
        most = int(np.argmax(counts))
        running = attempts.of_worker(g)[0]
        at = int(times[most])
        if counts[most] < max(3, 0.5 * running[max(at - 1, 0)]):
            continue
        back = np.flatnonzero(running[at:] > 0)
        gap = attempts.times[at + back[0]] - attempts.times[at] if back.size else log.span - attempts.times[at]
        yield Finding(
            "restart",
            f"Worker {g} ({log.workers[g]}) lost {int(counts[most])} requests at once, {attempts.times[at]:,.0f} s "
            f"into the log, and was empty for {max(gap, step):,.1f} s: a restart. Other rules are judged as if all "
            "workers were there all the time",
        )


def _waits(found: Reconstruction, slots: int) -> Iterator[Finding]:
    share = float(waited_with_a_free_slot(found, slots).mean())
    if share > _MANY_WAITS:
        yield Finding(
            "waits with free slots",
            f"{share:.0%} of the requests waited for more than {_STEPS:g} steps though their worker had a free slot, "
            "as they do for prefill or a router's own queue. That wait is not modelled: for these requests other rules "
            "are given the moment at which decoding started" + _fewer_slots(found, slots, share),
        )


def _fewer_slots(found: Reconstruction, slots: int, share: float) -> str:
    most = found.course.most_running
    if share < _MOSTLY or slots <= most:
        return ""
    return f". No worker ran more than {most} at once: perhaps it has no more slots than that, and not {slots}"


def _pauses(found: Reconstruction) -> Iterator[Finding]:
    log = found.log
    logged, modelled = logged_tpot(found), modelled_tpot(found)
    rows = np.isfinite(logged) & np.isfinite(modelled)
    more = ((logged - modelled) * log.output)[rows]
    scatter = 1.4826 * float(np.median(np.abs(more - np.median(more))))
    step = found.mean_step_seconds
    longer = more - np.median(more)
    lasted = (log.finish - log.start)[rows]
    long = longer > np.maximum(max(10 * scatter, 5 * step), 0.1 * lasted)
    share = float(long.mean())
    if share > _MANY_PAUSES:
        yield Finding(
            "pauses",
            f"{share:.1%} of the requests took far longer than the steps they ran in, by {np.median(more[long]):.2f} s "
            "in the median: pre-empted or paused. Pauses are not modelled",
        )


def _stalls(found: Reconstruction) -> Iterator[Finding]:
    if found.law.stalled > 0.01:
        yield Finding(
            "stalls",
            f"{found.law.stalled:.1%} of the busy time went into steps that took far longer than their loads say, such "
            "as passes of prefill between decode steps. The law leaves them out, and so do other rules' times",
        )
