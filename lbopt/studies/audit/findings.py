"""What a log shows that the model of lockstep workers does not have: each thing is looked for, and said.

lbopt models workers that meet at a barrier in every step, at most one of which has another speed, that keep a request
until it ends and start it as soon as it is known and a slot is free. Each finding below is a departure from that. A
finding that `forbids` means that answers about other rules would be about another fleet.

One worker that is slower or faster than the others: found by what its tokens must count to explain the times.

The heaviest worker sets the pace. If worker g needs f times as long for a token, requests' times follow the largest of
the loads with its own counted f-fold. Each worker is tried with a few factors; the best is kept if it leaves far less
scatter than equal speeds, and its factor is then refined. A fast worker seldom is the heaviest: its factor is rough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from lbopt.instances.router_log import FINISHED
from lbopt.studies.audit.course import Floats, course_of, own_loads
from lbopt.studies.audit.happened import logged_tpot, modelled_tpot
from lbopt.studies.audit.law_from_log import Reconstruction, reconstruct, weighted_residual

#: Counting a worker's tokens for more or less explains the times so much better.
_EXPLAINS = 0.67
_SLOWER, _FASTER = (1.1, 1.2, 1.3, 1.4, 1.5), (0.9, 0.8, 0.67, 0.5)
#: Fleets up to this size are searched for a fast one too.
_FEW_WORKERS = 32
#: Fleets larger than this are not searched.
_MOST_WORKERS = 128
#: The factor is looked for between these shares of the last guess.
_AROUND, _PRECISION, _TURNS = (0.8, 1.25), 0.002, 4


@dataclass(frozen=True, slots=True)
class OddWorker:
    """A worker of another speed.

    Parameters
    ----------
    worker
        Its number.
    factor
        What its tokens count.
    left
        Share of the scatter of equal speeds that is left.
    """

    worker: int
    factor: float
    left: float

    def scale(self, workers: int) -> Floats:
        """Return what a token counts on each of so many workers."""
        scale = np.ones(workers)
        scale[self.worker] = self.factor
        return scale


def odd_worker(found: Reconstruction) -> OddWorker | None:
    """Return the worker whose speed differs from that of all others, if there is one; its factor is a first guess."""
    G = len(found.log.workers)
    if not 2 <= G <= _MOST_WORKERS:
        return None
    same = _left_by(found, 0, 1.0)
    best = OddWorker(-1, 1.0, 1.0)
    for g in range(G):
        for speeds in (_SLOWER, _FASTER if G <= _FEW_WORKERS else ()):
            for k, factor in enumerate(speeds):
                left = _left_by(found, g, factor) / same
                if left < best.left:
                    best = OddWorker(g, factor, left)
                elif k > 0:
                    break
    return best if best.left < _EXPLAINS else None


def counting(found: Reconstruction, odd: OddWorker, seed: int) -> tuple[Reconstruction, OddWorker]:
    """Return the log's fleet with the tokens of the odd worker counted as often as it needs, and that factor.

    Steps in an interval, the law and the factor depend on each other, so they are found by turns.

    Parameters
    ----------
    odd
        The worker, and a first guess of its factor.
    """
    same = _left_by(found, odd.worker, 1.0)
    for _ in range(_TURNS):
        found = reconstruct(found.log, seed, odd.scale(len(found.log.workers)))
        low, high = (odd.factor * share for share in _AROUND)
        left = partial(_left_by, found, odd.worker)
        best = minimize_scalar(left, bounds=(low, high), method="bounded", options={"xatol": _PRECISION})
        odd = OddWorker(odd.worker, float(best.x), float(best.fun) / same)
    return reconstruct(found.log, seed, odd.scale(len(found.log.workers))), odd


def _left_by(found: Reconstruction, g: int, factor: float) -> float:
    """Return what the best law leaves of requests' times where worker `g` needs `factor` times as long for a token."""
    log = found.log
    rows = np.isfinite(logged_tpot(found))
    took, output = (log.finish - log.start)[rows], log.output[rows].astype(np.float64)
    course = course_of(found.attempts, OddWorker(g, factor, 1.0).scale(len(log.workers)))
    counted = np.maximum(course.over_requests(found.steps), 1e-12)
    load = (course.over_requests(found.steps * course.heaviest) / counted)[rows]
    return weighted_residual(np.column_stack([output, output * load]), took, 1 / output)


#: No barrier: a request's own worker explains its time so much better than the heaviest does.
_OWN_EXPLAINS = 0.7
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
        "no barrier", "eligibility", "slow worker", "fast worker", "restart", "waits with free slots", "pauses" or
        "stalls".
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


def find_departures(found: Reconstruction, slots: int, odd: OddWorker | None = None) -> list[Finding]:
    """Return everything that the log shows and the model does not have.

    Parameters
    ----------
    odd
        Its worker of another speed, where there is one.
    """
    without = no_barrier(found)
    if without:
        return without
    return [*_odd(found, odd), *_restarts(found), *_waits(found, slots), *_pauses(found), *_stalls(found)]


def waited_with_a_free_slot(found: Reconstruction, slots: int) -> Any:
    """Return for each attempt whether it waited for more than a few steps though its worker had a free slot, (N,)."""
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


def no_barrier(found: Reconstruction) -> list[Finding]:
    """Return the finding that workers do not meet at a barrier, or nothing."""
    log, course = found.log, found.course
    if len(log.workers) < 2:
        return []
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
    if alone >= _OWN_EXPLAINS * together:
        return []
    sentence = (
        f"A request's time per token follows the load of its own worker, not that of the heaviest: its own load leaves "
        f"{alone / together:.0%} of the scatter that the heaviest leaves. These workers seem not to wait for each "
        "other, so there is no time at a barrier to be saved, and nothing below speaks of this fleet"
    )
    return [Finding("no barrier", sentence, forbids=True)]


def _odd(found: Reconstruction, odd: OddWorker | None) -> Iterator[Finding]:
    if odd is not None:
        slower = odd.factor > 1
        yield Finding(
            "slow worker" if slower else "fast worker",
            f"Worker {odd.worker} ({found.log.workers[odd.worker]}) seems {'slower' if slower else 'faster'} than the "
            f"others: counting its tokens {odd.factor:.2f}-fold leaves {odd.left:.0%} of the scatter. They count so in "
            "all that is said of this fleet; no rule knows of it",
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
