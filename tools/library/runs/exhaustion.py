"""Small whole runs, by exhaustion: the least that a router who knows every length can pay.

Requests are all there from the beginning, workers are interchangeable, nothing moves or pauses. A step costs `fixed`
plus the largest load, in tokens; steps in which nothing runs are left out, as they only cost. Any start and any
admission is tried by A* over decisions: the request at the pointer starts now on some worker or waits; after the last
one the step is taken. A state is one pair of whole numbers, a byte a request: 0 waits, 255 has ended, else worker, age
and 1. Workers are numbered by their first request, so that states which differ by names of workers are one. Of equal
requests the earlier one starts first.

The bounds, each by one line: no step is below the largest load of what runs already, nor the sum of all loads below
their share of G workers; a worker that takes the largest waiting request shows all of it and all that it has left;
steps are no fewer than the longest rest and than all rests over G B slots.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

_BYTES = 7  # requests in one of the two numbers of a state
_ENDED = 255


@kernel
def _read(low: int, high: int, field: Ints) -> int:
    """Unpack a state into a byte a request; return the pointer."""
    N = field.size
    for i in range(N):
        if i < _BYTES:
            field[i] = (low >> (8 * i)) & 255
        else:
            field[i] = (high >> (8 * (i - _BYTES))) & 255
    return low >> (8 * _BYTES)


@kernel
def _packed(field: Ints, pointer: int, renamed: Ints) -> tuple[int, int]:
    """Pack a state; workers are numbered by their first request."""
    renamed[:] = -1
    low, high, known = pointer << (8 * _BYTES), 0, 0
    for i in range(field.size):
        value = field[i]
        if value != 0 and value != _ENDED:
            g = (value - 1) >> 6
            if renamed[g] < 0:
                renamed[g] = known
                known += 1
            value = ((renamed[g] << 6) | ((value - 1) & 63)) + 1
        if i < _BYTES:
            low |= value << (8 * i)
        else:
            high |= value << (8 * (i - _BYTES))
    return low, high


@kernel
def _to_come(field: Ints, prompt: Ints, output: Ints, G: int, B: int, fixed: int, loads: Ints, rest: Ints) -> int:
    """Return what the steps to come cost at least, the present one included.

    Parameters
    ----------
    field, prompt, output
        int64, (N,): the state and the requests.
    G, B, fixed
        Workers, slots of a worker, cost of a step in tokens.
    loads, rest
        int64, (K, G) and (G,), changed in place: loads that are sure, and their sums.
    """
    rest[:] = 0
    total, steps, longest, largest = 0, 0, 0, 0
    for i in range(field.size):
        value = field[i]
        if value == _ENDED:
            continue
        age = 0 if value == 0 else (value - 1) & 63
        runs = output[i] - age
        work = (prompt[i] + age) * runs + runs * (runs - 1) // 2
        total += work
        steps += runs
        longest = max(longest, runs)
        if value == 0:
            largest = max(largest, work)
        else:
            rest[(value - 1) >> 6] += work
    loads[:longest] = 0
    for i in range(field.size):
        value = field[i]
        if value != 0 and value != _ENDED:
            g, age = (value - 1) >> 6, (value - 1) & 63
            for j in range(output[i] - age):
                loads[j, g] += prompt[i] + age + j
    sure = 0
    for j in range(longest):
        most = 0
        for g in range(G):
            most = max(most, loads[j, g])
        sure += most
    barriers = max(sure, (total + G - 1) // G)
    if largest > 0:
        barriers = max(barriers, rest.min() + largest)
    return fixed * max(longest, (steps + G * B - 1) // (G * B)) + barriers


@kernel
def _advance(field: Ints, prompt: Ints, output: Ints, rest: Ints) -> int:
    """Run one step; return its largest load, -1 where nothing ran.

    Parameters
    ----------
    field
        int64, (N,): the state, changed in place.
    prompt, output
        int64, (N,): tokens and steps of the requests.
    rest
        int64, (G,), changed in place: the loads.
    """
    rest[:] = 0
    ran = False
    for i in range(field.size):
        if field[i] != 0 and field[i] != _ENDED:
            ran = True
            age = (field[i] - 1) & 63
            rest[(field[i] - 1) >> 6] += prompt[i] + age
            field[i] = _ENDED if age + 1 == output[i] else field[i] + 1
    return rest.max() if ran else -1


@kernel
def least_any(prompt: Ints, output: Ints, G: int, B: int, fixed: int, most: int, effort: int) -> tuple[int, bool, Ints]:
    """Return the least cost with any starts, whether it is proved, and the start of each request (-1: see `most`).

    Parameters
    ----------
    prompt, output
        int64, (N,): tokens and steps of the requests, equal ones beside each other; N <= 14, steps <= 62.
    G, B
        Workers, at most 4, and slots of a worker.
    fixed
        Tokens that a step costs beside its largest load.
    most
        A cost that is known to be reached: only less is looked for, and starts are given only where there is less.
    effort
        States looked at before the search gives up.
    """
    N = prompt.size
    field, renamed = np.zeros(N, np.int64), np.zeros(G, np.int64)
    rest, left = np.zeros(G, np.int64), np.zeros(G, np.int64)
    loads = np.zeros((output.max(), G), np.int64)
    start = np.full(N, -1, np.int64)
    best, before = {(0, 0): 0}, {(0, 0): (0, 0)}
    heap = [(_to_come(field, prompt, output, G, B, fixed, loads, rest), 0, 0, 0, 0)]
    for _ in range(effort):
        if len(heap) == 0 or heap[0][0] >= most:
            return most, True, start
        _, _, cost, low, high = heappop(heap)
        if cost > best[(low, high)]:
            continue
        pointer = _read(low, high, field)
        while pointer < N and field[pointer] != 0:
            pointer += 1
        first, last = -1, G  # decisions about the request at the pointer: it waits, or runs on worker 0, 1, ...
        if pointer == N:
            last = 0
            heaviest = _advance(field, prompt, output, rest)
            if heaviest < 0:
                continue  # a step without requests only costs
            cost += fixed + heaviest
        else:
            left[:] = B
            for i in range(N):
                if field[i] != 0 and field[i] != _ENDED:
                    left[(field[i] - 1) >> 6] -= 1
            same = pointer > 0 and prompt[pointer - 1] == prompt[pointer] and output[pointer - 1] == output[pointer]
            if same and field[pointer - 1] == 0:
                last = 0  # of equal requests the earlier one starts first
        tried_empty = False
        for g in range(first, last):
            if g >= 0:
                if left[g] == 0 or (left[g] == B and tried_empty):
                    continue
                tried_empty = tried_empty or left[g] == B
                field[pointer] = (g << 6) + 1
            key = _packed(field, 0 if pointer == N else pointer + 1, renamed)
            if key in best and best[key] <= cost:
                continue
            ahead = cost + _to_come(field, prompt, output, G, B, fixed, loads, rest)
            if ahead >= most:
                continue
            best[key], before[key] = cost, (low, high)
            if ahead == cost and (field == _ENDED).all():
                most = cost
                _starts(key, before, field, start)
            else:
                heappush(heap, (ahead, -cost, cost, key[0], key[1]))
    return most, False, start


@kernel
def _starts(key: tuple[int, int], before: dict[tuple[int, int], tuple[int, int]], field: Ints, start: Ints) -> None:
    """Write the step in which each request starts on the way to the state `key`; `field` is scratch.

    Parameters
    ----------
    key, before
        The last state, and of each state the one it was reached from.
    field, start
        int64, (N,), changed in place.
    """
    way = [key]
    while way[-1] != (0, 0):
        way.append(before[way[-1]])
    step = 0
    for i in range(len(way) - 2, -1, -1):
        pointer = _read(way[i][0], way[i][1], field)
        if pointer == 0:
            step += 1
        elif field[pointer - 1] != 0:
            start[pointer - 1] = step
