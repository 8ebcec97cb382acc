"""Which workers of a log share a barrier, by whether the boundaries of their steps agree.

Starts and ends of requests fall on boundaries of steps. On workers of one barrier the boundaries are the same, so an
event of one worker coincides with an event of another as often as both have one at a boundary. On workers of two
barriers they coincide by chance. Let C be the pairs of events of two workers within a window w of each other, and M the
pairs that chance would put there, from the pairs that lie one to seven steps apart. With steps of T seconds a shared
barrier gives C = M T / w, and two barriers give C = M, so that the *agreement*

    R = (C - M) / (M (T / w - 1))

is 1 and 0. Times that are written late lower both; so the agreement between two sets of workers is held against half of
that within the sets. Two single workers, which have no such pair, can agree and are never split. The error of R is that
of sums over blocks of time.

Sets are found by joining those with the largest agreement. The cut that is left last was chosen among 2^(G - 1), so it
is believed beyond sqrt(2 ((G - 1) ln 2 + ln 1000)) standard errors: by the union bound, and for normal errors, one
barrier is then split in less than one of 1,000 logs. Within that margin the log does not decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.router_log import RouterLog
from lbopt.studies.audit.course import Floats

#: Window of a coincidence, and distances of pairs that meet by chance, in steps.
_WINDOW, _APART = 0.2, (1.0, 7.0)
#: A clock whose ticks are longer than this share of a step does not show boundaries.
_COARSE = 0.67
#: Events that are looked at; the first ones of longer logs.
_MOST_EVENTS = 20_000
_BLOCKS = 20
#: Coincidences that a shared barrier must let expect of a worker; others follow the workers they agree with most.
_FEWEST = 10.0
#: Agreement within sets below which times do not show boundaries.
_LEAST_AGREEMENT = 0.1
#: Standard errors beyond which two workers agree: less than 1 in 1,000 of a normal error.
_FEW_ERRORS = 3.3
#: A set of workers is split wrongly in one of so many logs.
_LOGS = 1000.0
_TICKS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)

Verdict = str
"""Of two sets of workers: "one" barrier, "two", or "open" where the log does not decide."""


@dataclass(frozen=True, slots=True, eq=False)
class Coincidences:
    """Events of pairs of workers that coincide.

    Parameters
    ----------
    seen, chance
        (K, G, G), pairs within the window in each block of time, and those expected by chance.
    gain
        How many times as many as by chance a shared barrier gives, T / w.
    """

    seen: Floats
    chance: Floats
    gain: float

    def agreement(self, pairs: NDArray[np.bool_]) -> tuple[float, Floats]:
        """Return R over pairs of workers, and by how much each block is off it, as a share of all."""
        seen, chance = self.seen[:, pairs].sum(axis=1), self.chance[:, pairs].sum(axis=1)
        expected = chance * (self.gain - 1)
        whole = max(float(expected.sum()), 1e-12)
        R = float((seen - chance).sum()) / whole
        return R, (seen - chance - R * expected) / whole

    def compare(self, one: Sequence[int], other: Sequence[int], errors: float) -> Verdict:
        """Say whether two sets of workers share a barrier.

        Parameters
        ----------
        errors
            Standard errors beyond which the log decides.
        """
        between, within = np.zeros((2, *self.seen.shape[1:]), dtype=np.bool_)
        between[np.ix_(one, other)] = True
        for members in (one, other):
            within[np.ix_(members, members)] = True
        np.fill_diagonal(within, False)
        if self.gain < 1 / _COARSE:
            return "open"
        alone = not within.any()  # two single workers: nothing says how late their times are written
        R, off = self.agreement(between)
        inside, off_inside = (0.0, 0 * off) if alone else self.agreement(within)
        # No block is quieter than counts are: few events are not certain ones.
        counted = float(self.chance[:, between].sum()) + 1
        floor = math.sqrt(counted * (1 + max(R, inside, 0) * (self.gain - 1))) / (counted * (self.gain - 1))
        if not alone and inside < max(_LEAST_AGREEMENT, 3.3 * math.sqrt(float(off_inside @ off_inside))):
            return "open"
        miss = off - off_inside / 2
        margin = errors * max(math.sqrt(float(miss @ miss)), floor)
        more = R - inside / 2
        return "one" if more > margin else "two" if more < -margin and not alone else "open"


def tick_of(log: RouterLog) -> float:
    """Return the resolution of the log's starts and ends in seconds, 0 where it is finer than 10 us."""
    times = np.concatenate([log.start, log.finish[np.isfinite(log.finish)]])
    times = times - log.start[0]
    for tick in _TICKS:
        if np.abs(times / tick - np.rint(times / tick)).max() * tick < 2e-6:
            return tick
    return 0.0


def coincidences(log: RouterLog) -> Coincidences:
    """Count the events of pairs of workers that coincide.

    Parameters
    ----------
    log
        A log with at least some requests that ran to their end.
    """
    G, done = len(log.workers), log.is_finished
    step = float(np.median((log.finish - log.start)[done] / np.maximum(log.output[done], 1)))
    tick = tick_of(log)
    unit, window = (tick, tick) if tick > _WINDOW / 2 * step else (_WINDOW * step / 2, _WINDOW * step)
    ended = np.isfinite(log.finish)
    times = np.concatenate([log.start, log.finish[ended]]) - log.start[0]
    worker = np.concatenate([log.worker, log.worker[ended]])
    order = np.lexsort((times, worker))
    times, worker = times[order], worker[order]
    # Several events of one worker at a boundary count once.
    fresh = np.concatenate([[True], (np.diff(worker) != 0) | (np.diff(times) > unit / 2)])
    order = np.argsort(times[fresh], kind="stable")[:_MOST_EVENTS]
    times, worker = times[fresh][order], worker[fresh][order]
    block = np.arange(times.size) * _BLOCKS // max(times.size, 1)
    shape = (_BLOCKS, G, G)

    def pairs(low: float, high: float) -> Floats:
        """Return the pairs of which the later event follows the other by `low` to `high` seconds, (K, G, G)."""
        first = np.searchsorted(times, times + low, side="left")
        first = np.maximum(first, np.arange(times.size) + 1)
        count = np.maximum(np.searchsorted(times, times + high, side="right") - first, 0)
        left = np.repeat(np.arange(times.size), count)
        right = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(int(count.sum()))
        place = (block[left] * G + worker[left]) * G + worker[right]
        found = np.bincount(place, minlength=math.prod(shape)).reshape(shape).astype(np.float64)
        return np.asarray(found + found.transpose(0, 2, 1))

    if tick == unit:
        near, far = (max(1, round(share * step / tick)) for share in _APART)
        lags = 2 * max(far - near, 1)
        seen = pairs(0.0, tick / 2)
        chance = pairs((near - 0.5) * tick, (near + lags / 2 - 0.5) * tick) / lags
    else:
        low, high = (share * step for share in _APART)
        seen, chance = pairs(0.0, unit), pairs(low, high) * window / (2 * (high - low))
    return Coincidences(seen, chance, step / window)


def barrier_groups(found: Coincidences, members: Sequence[int]) -> tuple[list[list[int]], bool]:
    """Return the sets of workers that share a barrier, and whether the log decides that.

    Parameters
    ----------
    members
        The workers to look at.
    """
    chance = found.chance.sum(axis=0)[np.ix_(members, members)].sum(axis=1) * (found.gain - 1)
    telling = [worker for worker, expected in zip(members, chance, strict=True) if expected >= _FEWEST]
    if len(telling) < 3:
        agree = len(members) == len(telling) == 2 and found.compare(telling[:1], telling[1:], _FEW_ERRORS) == "one"
        return [list(members)], agree or len(members) < 2
    groups, decided = _divide(found, telling)
    excess = (found.seen - found.chance).sum(axis=0)
    for worker in members:
        if worker not in telling:
            max(groups, key=lambda group: float(excess[worker, group].mean())).append(worker)
    return sorted(sorted(group) for group in groups), decided


def _divide(found: Coincidences, members: list[int]) -> tuple[list[list[int]], bool]:
    if len(members) < 3:
        return [members], True
    one, other = _last_cut(found, members)
    verdict = found.compare(one, other, math.sqrt(2 * ((len(members) - 1) * math.log(2) + math.log(_LOGS))))
    if verdict != "two":
        return [members], verdict == "one"
    parts = [_divide(found, part) for part in (one, other)]
    return [group for groups, _ in parts for group in groups], all(decided for _, decided in parts)


def _last_cut(found: Coincidences, members: list[int]) -> tuple[list[int], list[int]]:
    """Join the sets of workers that agree most until two are left."""
    index = np.ix_(members, members)
    chance = found.chance.sum(axis=0)[index] * (found.gain - 1)
    excess = (found.seen - found.chance).sum(axis=0)[index]
    sets = [[worker] for worker in members]
    while len(sets) > 2:
        agreement = excess / (chance + 1)
        np.fill_diagonal(agreement, -np.inf)
        i, j = sorted(divmod(int(np.argmax(agreement)), len(sets)))
        sets[i] += sets.pop(j)
        for table in (excess, chance):
            table[i] += table[j]
            table[:, i] += table[:, j]
        excess, chance = (np.delete(np.delete(table, j, 0), j, 1) for table in (excess, chance))
    return sets[0], sets[1]
