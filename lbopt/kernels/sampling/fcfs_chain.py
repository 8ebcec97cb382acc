"""FCFS under overload, sampled by events: slot by slot, from end to end, instead of step by step.

A request that came in step x with prompt s has size s + D(k) - D(x) in step k, where D(k) is the growth of all up to
step k. So a worker's load is B D(k) plus the sum over its slots of the offsets s - D(x), which change only when a
request ends; the common growth cancels in the imbalance. A chunk of K steps costs each slot two random numbers and one
addition per end, and each worker one running sum: p B + 1 operations a worker and step instead of B.

Order of events as in the theory section of BF-IO: growth, ends, admission, reading.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.sampling.draw import Words, column, height, lifetime, prompt, word


class Slots(NamedTuple):
    """G B slots."""

    stream: Words  # uint64 (G, B), where the stream of each slot begins
    next_end: Ints  # int64 (G, B), step in which its request ends
    offset: Ints  # int64 (G, B), its offset in 1/unit tokens
    ends: Ints  # int64 (G, B), lifetimes drawn so far


class Draws(NamedTuple):
    """What is drawn: lives and prompts."""

    log_keep: float  # log(1 - p), p the probability that a slot ends in a step
    value: Ints  # int64 (n,), the prompt law's table of aliases, in tokens; as the next two
    threshold: Ints
    other: Ints


@kernel
def begin_slots(slots: Slots, draws: Draws, unit: int) -> None:
    """Fill all slots in step 0; `unit`: parts of a token in which offsets count."""
    stream, next_end, offset, ends = slots
    log_keep, value, threshold, other = draws
    G, B = next_end.shape
    for g in range(G):
        for b in range(B):
            next_end[g, b] = lifetime(word(stream[g, b], 0), log_keep)
            offset[g, b] = unit * prompt(word(stream[g, b], 1), value, threshold, other)
            ends[g, b] = 1


@kernel
def run_slots(slots: Slots, draws: Draws, unit: int, growth: Ints, first: int, peak: Ints, total: Ints) -> None:
    """Go through steps `first` .. `first` + K - 1.

    The imbalance in 1/`unit` tokens is G peak - total.

    Parameters
    ----------
    slots
        Changed in place.
    unit
        Parts of a token in which offsets count.
    growth
        int64 (K,), D at these steps, in 1/`unit` tokens.
    peak, total
        int64 (K,), written: largest and sum over workers of the offsets, after admission, in 1/`unit` tokens.
    """
    stream, next_end, offset, ends = slots
    log_keep, value, threshold, other = draws
    G, B = next_end.shape
    K = growth.size
    columns = value.size
    change = np.zeros(K, np.int64)
    last = first + K
    for g in range(G):
        change[:] = 0
        running = 0
        for b in range(B):
            running += offset[g, b]
            k = next_end[g, b]
            if k >= last:
                continue
            before, n, start = offset[g, b], ends[g, b], stream[g, b]
            while k < last:
                drawn = word(start, 2 * n + 1)  # `prompt` written out, for speed
                i = column(drawn, columns)
                if height(drawn) >= threshold[i]:
                    i = other[i]
                now = unit * value[i] - growth[k - first]
                change[k - first] += now - before
                before = now
                k += lifetime(word(start, 2 * n), log_keep)
                n += 1
            next_end[g, b], offset[g, b], ends[g, b] = k, before, n
        if g == 0:
            for k in range(K):
                running += change[k]
                peak[k] = running
                total[k] = running
        else:
            for k in range(K):
                running += change[k]
                if running > peak[k]:
                    peak[k] = running
                total[k] += running


@kernel
def slot_ages(stream: Words, draws: Draws, step: int, age: Ints, came: Ints) -> None:
    """Follow each slot to step `step` and write the age of its request and the prompt it came with, each (n,).

    Parameters
    ----------
    stream
        uint64 (n,), where the stream of each slot begins.
    age, came
        int64 (n,), written: steps since the request came, and its prompt, tokens.
    """
    log_keep, value, threshold, other = draws
    for i in range(stream.size):
        k = lifetime(word(stream[i], 0), log_keep)
        since = 0
        n = 1
        while k <= step:
            since = k
            k += lifetime(word(stream[i], 2 * n), log_keep)
            n += 1
        age[i] = step - since
        came[i] = prompt(word(stream[i], 2 * n - 1), value, threshold, other)
