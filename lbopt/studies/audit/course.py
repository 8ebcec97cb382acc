"""The fleet's course: what its workers held and ran between one event of the log and the next.

A request that runs from a to b and makes o tokens holds p + o (t - a) / (b - a) tokens at time t. So between two events
(a start or an end anywhere) the load of every worker is linear in time, and a log of N requests is the fleet's course
over at most 2 N intervals. Steps do not all take the same time, so this is only a first guess; once the law of steps is
known, t, a and b are counted in steps instead of seconds.

In a fleet with a barrier starts and ends fall on the boundaries of steps, and those of one boundary may be written a
moment apart: events closer to each other than a fraction of a step count as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.router_log import RouterLog

Floats = NDArray[np.float64]

#: Events within this share of a token's time of the one before belong to the same boundary of steps.
_SAME_BOUNDARY = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Loads between events; J intervals.

    Parameters
    ----------
    begin, end
        (J,), seconds.
    first, last
        (N,), each attempt runs in the intervals first .. last - 1.
    running
        (J,), requests that run, in the fleet.
    total
        (J,), tokens held in the middle of the interval, in the fleet.
    work
        (J,), tokens in the fleet at the begin of a step as they count, mean over the interval: those of a slow worker
        count more.
    heaviest
        (J,), the largest load of a worker at the begin of a step as it counts, mean over the interval, tokens.
    heaviest_worker
        (J,), who holds it in the middle.
    rate
        (J,), mean of the rates at which the running requests make tokens, tokens a tick of the clock.
    requests, tokens
        (G,), time averages for each worker.
    most_running
        The most requests that a worker ran at once.
    scatter
        Mean distance of times in the log from the boundary that they share, in steps.
    counted
        (3, K), the router counted at least so many steps (third row) between two boundaries (first and second row).
    """

    begin: Floats
    end: Floats
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    running: Floats
    total: Floats
    work: Floats
    heaviest: Floats
    heaviest_worker: NDArray[np.int64]
    rate: Floats
    requests: Floats
    tokens: Floats
    most_running: int
    scatter: float
    counted: Floats

    @property
    def seconds(self) -> Floats:
        """(J,), length of each interval."""
        return self.end - self.begin

    @property
    def at_begin(self) -> Floats:
        """(J,), tokens in the fleet at the begin of a step, mean over the interval: half a token a request less."""
        return self.total - self.running / 2

    @property
    def is_busy(self) -> NDArray[np.bool_]:
        """(J,), whether anything runs."""
        return np.asarray(self.running > 0)

    def over_requests(self, values: Floats) -> Floats:
        """Return the sums of `values`, (J,), over the intervals of each attempt, (N,)."""
        sums = np.concatenate([np.zeros(1), np.cumsum(values)])
        return np.asarray(sums[self.last] - sums[self.first])


class Attempts:
    """Attempts with what is needed of them: times set to boundaries of steps, and tokens a second.

    `times` are the boundaries; attempt i runs from `first[i]` to `last[i]` among them. `clock` are the boundaries on
    the clock by which requests grow: seconds, or steps. `scatter` is the mean distance of times from the boundary they
    share with others, in steps. `counted` are a router's counts, as in `Course`.
    """

    def __init__(self, log: RouterLog) -> None:
        done = log.is_finished
        lasted = np.where(done, log.finish - log.start, np.nan)
        per_token = float(np.median(lasted[done] / np.maximum(log.output[done], 1)))
        # An attempt without an end ran for the tokens that are known, or up to the end of the log.
        guess = np.where(log.output > 0, log.start + log.output * per_token, log.span)
        finish = np.where(np.isnan(log.finish), np.minimum(guess, log.span), log.finish)
        times = np.concatenate([log.start, np.maximum(finish, log.start)])
        self.times, place = boundaries(times, _SAME_BOUNDARY * per_token)
        shared = np.bincount(place)[place] > 1
        self.scatter = float(np.abs(times - self.times[place])[shared].mean()) / per_token if shared.any() else 0.0
        N = len(log)
        self.first, self.last = place[:N], np.maximum(place[N:], place[:N])
        seconds = self.times[self.last] - self.times[self.first]
        known = done | (log.output > 0)
        self.tokens = np.where(known, log.output, seconds / per_token)
        self.prompt, self.worker = log.prompt.astype(np.float64), log.worker
        self.num_workers = len(log.workers)
        self.seconds_per_token = per_token
        self.clock = self.times
        moments = np.zeros((0, 2)) if log.counted is None else log.counted
        near = np.searchsorted((self.times[:-1] + self.times[1:]) / 2, moments[:, 0]).astype(np.float64)
        self.counted = np.array([near[:-1], near[1:], np.diff(moments[:, 1])])[:, np.diff(near) > 0]

    def by_steps(self, steps: Floats) -> Attempts:
        """Return the same attempts with requests that grow by steps; `steps`, (J,), are those of each interval."""
        other = copy(self)
        other.clock = np.concatenate([np.zeros(1), np.cumsum(steps)])
        return other

    def of_worker(self, g: int) -> tuple[Floats, Floats, Floats]:
        """Return, for each interval, (requests, tokens at 0, tokens a tick of the clock) of worker `g`, (J,) each."""
        mine = np.flatnonzero((self.worker == g) & (self.last > self.first))
        begin, end = self.clock[self.first[mine]], self.clock[self.last[mine]]
        rate = self.tokens[mine] / np.maximum(end - begin, 1e-12)
        level = self.prompt[mine] - rate * begin
        changes = np.zeros((3, self.times.size))
        for row, weight in enumerate((np.ones(mine.size), level, rate)):
            changes[row] += np.bincount(self.first[mine], weight, self.times.size)
            changes[row] -= np.bincount(self.last[mine], weight, self.times.size)
        running, at_zero, growth = np.cumsum(changes, axis=1)[:, :-1]
        idle = running < 0.5
        return np.round(running), np.where(idle, 0.0, at_zero), np.where(idle, 0.0, growth)


def boundaries(times: Floats, within: float) -> tuple[Floats, NDArray[np.int64]]:
    """Return the boundaries that times fall on, ascending, and the place of each time among them.

    Parameters
    ----------
    times
        (n,), seconds.
    within
        Times closer to the one before than this belong together, seconds; a boundary is the mean of its times.
    """
    order = np.argsort(times, kind="stable")
    new = np.concatenate([np.zeros(1, dtype=np.int64), np.diff(times[order]) > within]).astype(np.int64)
    group = np.cumsum(new)
    place = np.empty(times.size, dtype=np.int64)
    place[order] = group
    return np.bincount(group, times[order]) / np.bincount(group), place


def course_of(attempts: Attempts, scale: Floats | None = None) -> Course:
    """Return the course of the fleet.

    Parameters
    ----------
    scale
        (G,), what a token counts on each worker; None = the same on all.
    """
    begin, end = attempts.clock[:-1], attempts.clock[1:]
    J, G = begin.size, attempts.num_workers
    running, total, growth, work = np.zeros((4, J))
    heaviest, in_the_middle = np.zeros(J), np.full(J, -1.0)
    who = np.zeros(J, dtype=np.int64)
    left, right = np.zeros((2, J))
    requests, tokens = np.zeros((2, G))
    seconds, most = np.diff(attempts.times), 0
    whole = max(float(seconds.sum()), 1e-12)
    for g, (count, at_zero, slope) in enumerate(_workers(attempts)):
        factor = 1.0 if scale is None else float(scale[g])
        at_begin, at_end = at_zero + slope * begin, at_zero + slope * end
        running += count
        growth += slope
        total += (at_begin + at_end) / 2
        work += factor * ((at_begin + at_end) / 2 - count / 2)
        # A step takes the time of the loads at its begin: half a token a request less than those in its middle.
        np.maximum(left, factor * (at_begin - count / 2), out=left)
        np.maximum(right, factor * (at_end - count / 2), out=right)
        middle = factor * (at_begin + at_end) / 2
        better = middle > in_the_middle
        who[better] = g
        in_the_middle[better] = middle[better]
        requests[g], tokens[g] = (count @ seconds) / whole, ((at_begin + at_end) / 2) @ seconds / whole
        most = max(most, int(count.max(initial=0)))
    heaviest = (left + right) / 2
    rate = np.where(running > 0, growth / np.maximum(running, 1), 0.0)
    return Course(
        begin=attempts.times[:-1],
        end=attempts.times[1:],
        first=attempts.first,
        last=attempts.last,
        running=running,
        total=total,
        work=total - running / 2 if scale is None else work,
        heaviest=heaviest,
        heaviest_worker=who,
        rate=rate,
        requests=requests,
        tokens=tokens,
        most_running=most,
        scatter=attempts.scatter,
        counted=attempts.counted,
    )


def own_loads(attempts: Attempts, weight: Floats) -> Floats:
    """Return for each attempt the sum of its own worker's load over its intervals, (N,).

    Parameters
    ----------
    weight
        (J,), what each interval counts.
    """
    begin, end = attempts.clock[:-1], attempts.clock[1:]
    found = np.zeros(attempts.first.size)
    for g, (count, at_zero, slope) in enumerate(_workers(attempts)):
        load = at_zero + slope * (begin + end) / 2 - count / 2
        sums = np.concatenate([np.zeros(1), np.cumsum(weight * load)])
        mine = attempts.worker == g
        found[mine] = sums[attempts.last[mine]] - sums[attempts.first[mine]]
    return found


def _workers(attempts: Attempts) -> Iterator[tuple[Floats, Floats, Floats]]:
    for g in range(attempts.num_workers):
        yield attempts.of_worker(g)
