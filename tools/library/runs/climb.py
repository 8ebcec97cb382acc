"""The worst small run for a rule, by hill climbing from random starts, and then the smallest one that is as bad.

A climb changes one thing at a time: a prompt or an output is drawn afresh or shifted, a request comes, goes or moves,
or every m-th request gets the lengths of one of them, because a rule that counts is fooled by what comes in turn. What
does not lower the ratio is kept; after many changes in vain the climb starts afresh, at random. A run
whose optimum is not proved within the effort has no ratio.

Shrinking drops requests, then makes numbers smaller, as long as the ratio does not fall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from tools.library.runs.small_run import MOST_REQUESTS, SmallRun

#: Changes in vain after which a climb starts afresh.
PATIENCE = 150

#: Up to here shrinking goes down one by one.
_SMALL = 64


@dataclass(frozen=True, slots=True)
class Bad:
    """A run with what a rule paid for it and what it could have been, in tokens.

    Parameters
    ----------
    run
        The requests and the fleet.
    reached, least
        Cost under the rule, and the optimum, which is proved.
    """

    run: SmallRun
    reached: int
    least: int

    @property
    def ratio(self) -> Fraction:
        """How many times the optimum the rule pays."""
        return Fraction(self.reached, self.least)


#: What judges a run: None where its optimum is not proved or is 0.
Judge = Callable[[SmallRun], Bad | None]


@dataclass(frozen=True, slots=True)
class Room:
    """The runs that a search looks among.

    Parameters
    ----------
    num_workers, slots_per_worker
        G and B.
    most_requests, largest_prompt, longest_output
        Bounds of what it writes.
    """

    num_workers: int
    slots_per_worker: int
    most_requests: int = MOST_REQUESTS
    largest_prompt: int = 40
    longest_output: int = 12


def climb(
    judge: Judge, room: Room, rng: np.random.Generator, trials: int, starts: Sequence[SmallRun] = ()
) -> Bad | None:
    """Return the worst run found, not shrunk; the same arguments give the same run.

    Parameters
    ----------
    judge
        Says how bad a run is.
    room
        The runs to look among.
    rng
        What decides about changes.
    trials
        Runs that are judged beside `starts`.
    starts
        Runs of which the worst is begun with; later climbs begin at random.
    """
    here = max(filter(None, map(judge, starts)), key=lambda bad: bad.ratio, default=None)
    best, in_vain = here, 0
    for _ in range(trials):
        judged = judge(drawn(room, rng) if here is None else changed(here.run, room, rng))
        if judged is not None and (here is None or judged.ratio >= here.ratio):
            in_vain = 0 if here is None or judged.ratio > here.ratio else in_vain + 1
            here = judged
        else:
            in_vain += 1
        if here is not None and (best is None or here.ratio > best.ratio):
            best = here
        if in_vain > PATIENCE:
            here, in_vain = None, 0
    return best


def shrunk(judge: Judge, bad: Bad) -> Bad:
    """Return a run that is as bad, where neither a request less is nor smaller numbers; its ratio may be higher."""
    while True:
        smaller = _smaller_numbers(judge, _smaller_together(judge, _fewer(judge, bad)))
        if smaller is bad:
            return bad
        bad = smaller


def _fewer(judge: Judge, bad: Bad) -> Bad:
    for i in reversed(range(len(bad.run.prompt))):
        rows = _rows(bad.run)
        if len(rows) > 1:
            bad = _if_as_bad(judge, bad, rows[:i] + rows[i + 1 :])
    return bad


def _smaller_together(judge: Judge, bad: Bad) -> Bad:
    """Lower all prompts, or all outputs, of one value together: requests that are alike stay alike."""
    for which in (1, 0):
        for number in sorted({row[which] for row in _rows(bad.run)}, reverse=True):
            for less in _below(number, 1):
                rows = [_with_number(row, which, less) if row[which] == number else row for row in _rows(bad.run)]
                smaller = _if_as_bad(judge, bad, rows)
                if smaller is not bad:
                    bad = smaller
                    break
    return bad


def _smaller_numbers(judge: Judge, bad: Bad) -> Bad:
    for i, which in product(range(len(bad.run.prompt)), (1, 0)):
        for less in _below(_rows(bad.run)[i][which], 1):
            rows = _rows(bad.run)
            rows[i] = _with_number(rows[i], which, less)
            smaller = _if_as_bad(judge, bad, rows)
            if smaller is not bad:
                bad = smaller
                break
    return bad


def _with_number(row: tuple[int, int], which: int, number: int) -> tuple[int, int]:
    return (row[0], number) if which else (number, row[1])


def _if_as_bad(judge: Judge, bad: Bad, rows: Sequence[tuple[int, int]]) -> Bad:
    """Judge the run of these rows; return it where it is as bad, else `bad`."""
    judged = judge(_with(bad.run, rows))
    return bad if judged is None or judged.ratio < bad.ratio else judged


def _below(number: int, floor: int) -> Iterable[int]:
    """Give smaller numbers to try; one less only where there are few, so that shrinking ends soon."""
    less = number - 1 if number <= _SMALL else number - (number - floor) // 8
    return dict.fromkeys(one for one in (floor, (number + floor) // 2, less) if floor <= one < number)


def drawn(room: Room, rng: np.random.Generator) -> SmallRun:
    """Return a random run: two kinds of requests, or any lengths."""
    count = int(rng.integers(2, room.most_requests + 1))
    kinds = [_row(room, rng) for _ in range(int(rng.integers(1, 4)))]
    rows = [kinds[rng.integers(len(kinds))] if rng.random() < 0.7 else _row(room, rng) for _ in range(count)]
    return SmallRun(room.num_workers, room.slots_per_worker, *_columns(rows))


def changed(run: SmallRun, room: Room, rng: np.random.Generator) -> SmallRun:
    """Return the run with one thing changed, sometimes two or three."""
    rows = _rows(run)
    for _ in range(1 + int(rng.geometric(0.6) - 1) % 3):
        rows = _one_change(rows, room, rng)
    return SmallRun(room.num_workers, room.slots_per_worker, *_columns(rows))


def _one_change(rows: list[tuple[int, int]], room: Room, rng: np.random.Generator) -> list[tuple[int, int]]:
    rows = list(rows)
    which, kind = int(rng.integers(len(rows))), rng.random()
    prompt, output = rows[which]
    if kind < 0.2:
        rows[which] = (_length(room.largest_prompt, rng), output)
    elif kind < 0.4:
        rows[which] = (prompt, _length(room.longest_output, rng))
    elif kind < 0.5:
        shift = int(rng.integers(-2, 3))
        rows[which] = (min(max(1, prompt + shift), room.largest_prompt), output)
    elif kind < 0.6:
        rows[which] = rows[int(rng.integers(len(rows)))]
    elif kind < 0.7:
        moved = rows.pop(which)
        rows.insert(int(rng.integers(len(rows) + 1)), moved)
    elif kind < 0.8:
        if len(rows) < room.most_requests:
            row = rows[int(rng.integers(len(rows)))] if rng.random() < 0.5 else _row(room, rng)
            rows.insert(int(rng.integers(len(rows) + 1)), row)
    elif kind < 0.9:
        if len(rows) > 1:
            rows.pop(which)
    else:
        every = int(rng.integers(2, room.num_workers + 2))
        rows[which % every :: every] = [rows[which]] * len(rows[which % every :: every])
    return rows


def _row(room: Room, rng: np.random.Generator) -> tuple[int, int]:
    return _length(room.largest_prompt, rng), _length(room.longest_output, rng)


def _length(largest: int, rng: np.random.Generator) -> int:
    """Draw 1, the largest, or anything between."""
    kind = rng.random()
    return 1 if kind < 0.3 else largest if kind < 0.5 else int(rng.integers(1, largest + 1))


def _rows(run: SmallRun) -> list[tuple[int, int]]:
    return list(zip(run.prompt, run.output, strict=True))


def _columns(rows: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(prompt for prompt, _ in rows), tuple(output for _, output in rows)


def _with(run: SmallRun, rows: Sequence[tuple[int, int]]) -> SmallRun:
    return SmallRun(run.num_workers, run.slots_per_worker, *_columns(rows))
