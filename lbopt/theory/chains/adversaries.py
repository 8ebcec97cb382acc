"""Traces that are bad for a rule: counting requests fails, or the future is not what the rule hoped for.

Traces on which counting requests fails: all heavy ones end up on one worker (BF-IO, appendix A.1.1).

The *burst*: n blocks of one heavy request and G - 1 short ones, all there at once. Round-robin deals the heavy ones to
one worker; so does the shortest queue with a fixed order of ties, because every block leaves all counts equal. The
*strict* trace needs no ties for heavy ones: each finds its worker with strictly fewest requests. After each step the
short ones on that worker have ended, while those elsewhere last until all heavy ones have come; the author of the trace
must know where the rule puts them, as an adversary of a deterministic rule does.

Heavy requests have equal sizes at every step (who comes a step later is a token longer), so loads that are left when
the short ones have ended are whole multiples of one size, and ratios are exact.

Adversaries of rules that do not see the future: requests alike at first sight, lengths that are bad for the rule.

All requests have the same prompt, so a deterministic rule that does not know lengths does the same until the first
request ends whose length differs. Each adversary lets the rule run with the lengths it has chosen so far, looks at
which requests the rule started together, last, or bound to one worker, and gives lengths to those that have just
started. Beside the trace each gives a timetable of its own, which a router who knows the lengths could have run: an
upper bound on the optimum, so that the ratio to it is never above the ratio to the optimum.

The theorems with their proofs are the manual's page *What no rule that does not see the future can do*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count as counting
from math import comb

import numpy as np
from numpy.typing import NDArray

from lbopt.hindsight.timetable import Timetable
from lbopt.model import Trace
from lbopt.model.integers import IntArray
from lbopt.policies import Observation, Policy, make_policy
from lbopt.policies.python_file import CallablePolicy

Ints = NDArray[np.int64]
TIES = ("lowest", "highest", "random")


@dataclass(frozen=True, slots=True)
class Layout:
    """A trace with what it needs: requests revealed a step, slots a worker, the first step of heavy requests alone."""

    trace: Trace
    at_once: int
    slots: int
    alone_from: int
    not_strict: int = 0


def burst(G: int, n: int, s_H: int, steps: int) -> Layout:
    """Return n blocks of a heavy request (s_H tokens, `steps` + 1 long) and G - 1 short ones (1 token, 1 step).

    Parameters
    ----------
    n
        Number of blocks.
    s_H
        Size of a heavy request, tokens.
    steps
        Number of steps.
    """
    heavy = np.arange(n * G) % G == 0
    trace = Trace(prompt=np.where(heavy, s_H, 1), output=np.where(heavy, steps + 1, 1), name="burst")
    return Layout(trace, n * G, n, 1)


def strict(G: int, n: int, s_H: int, steps: int, ties: str, lasting: int | None = None) -> Layout:
    """Return the strict trace, G + 1 requests a step; `not_strict` heavy ones do not find their worker the emptiest.

    Every step's last G requests, short ones, raise all workers to a new common level; what lands on the worker of the
    heavy ones ends with the step, so that it is the emptiest again, by one. Those elsewhere run `lasting` steps, by
    default n + 1, when all heavy ones have come: to outlive the next step only would not do, because beside m heavy
    requests on one worker all others must hold m + 1 requests each.

    Parameters
    ----------
    n
        Number of blocks.
    s_H
        Size of a heavy request, tokens.
    steps
        Number of steps.
    ties
        Which of equally loaded workers the rule takes.
    lasting
        Steps that requests elsewhere run; None is n + 1.
    """
    last = n + 1 if lasting is None else lasting
    count = np.zeros(G, dtype=np.int64)
    ending = np.zeros((n + 1 + last, G), dtype=np.int64)  # who is gone by each step
    target, not_strict = -1, 0
    prompt, output = [], []
    for step in range(n + 1):
        count -= ending[step]
        for place in range(G + 1):
            worker = fewest(count, ties)
            if target < 0:
                target = worker
            is_heavy = step > 0 and place == 0
            if is_heavy:
                not_strict += worker != target or int((count == count[worker]).sum()) > 1
            runs = 2 * n + steps if is_heavy else 1 if worker == target else last
            prompt.append(s_H + step if is_heavy else 1)
            output.append(runs)
            count[worker] += 1
            if not is_heavy:
                ending[step + runs, worker] += 1
    trace = Trace(prompt=np.array(prompt), output=np.array(output), name="strict")
    return Layout(trace, G + 1, 2 * n + 4, 2 * n + 1, not_strict)


def fewest(count: Ints, ties: str) -> int:
    """Return the worker with the fewest requests, the lowest or the highest number of several."""
    return int(np.argmin(count)) if ties == "lowest" else count.size - 1 - int(np.argmin(count[::-1]))


def shortest_queue(ties: str, seed: int) -> Policy:
    """Return the rule `jsq`, or the same with other ties."""
    if ties == "lowest":
        return make_policy("jsq")
    drawn = np.random.default_rng(seed)

    def choose(observation: Observation) -> list[int]:
        count = observation.running + observation.queued
        if ties == "highest":
            return [fewest(count, ties)]
        return [int(drawn.choice(np.flatnonzero(count == count.min())))]

    return CallablePolicy(f"jsq, ties {ties}", choose, "immediate")


def level_rule(G: int, s_H: int) -> Policy:
    """Return the balanced assignment: heavy requests in turn, short ones to the worker with the fewest requests."""
    turn = counting()

    def choose(observation: Observation) -> list[int]:
        if observation.sizes[0] >= s_H:
            return [next(turn) % G]
        return [fewest(observation.running + observation.queued, "lowest")]

    return CallablePolicy("balanced", choose, "immediate")


#: Runs a rule over a trace whose requests all wait from the beginning; returns start and worker of each request.
Play = Callable[[Trace], tuple[IntArray, IntArray]]


@dataclass(frozen=True, slots=True)
class Duel:
    """A trace, what a rule made of it, and what a router who knows the lengths could have made of it.

    Parameters
    ----------
    num_workers, slots_per_worker
        G and B.
    trace
        The requests.
    rule, other
        Start and worker of each request, int64 (N,), under the rule and in the adversary's own timetable.
    """

    num_workers: int
    slots_per_worker: int
    trace: Trace
    rule: tuple[IntArray, IntArray]
    other: tuple[IntArray, IntArray]

    def barriers(self) -> tuple[int, int]:
        """Return the sum of the largest loads under the rule, and in the other timetable."""
        return self._barriers(*self.rule), self._barriers(*self.other)

    def steps(self) -> tuple[int, int]:
        """Return the number of steps under the rule, and in the other timetable."""
        return int((self.rule[0] + self.trace.output).max()), int((self.other[0] + self.trace.output).max())

    def _barriers(self, start: IntArray, worker: IntArray) -> int:
        order = np.argsort(start, kind="stable")
        prompt, output = self.trace.prompt[order], self.trace.output[order]
        return Timetable(self.num_workers, self.slots_per_worker, start[order], prompt, output).barriers(worker[order])


def alike(prompt: int, output: IntArray) -> Trace:
    """Return requests of one prompt with these outputs."""
    return Trace(prompt=np.full(output.size, prompt, dtype=np.int64), output=output, name="alike")


def on_one_worker(play: Play, G: int, B: int, prompt: int, lasting: int, refill: bool = False) -> Duel:
    """Fill all slots; of the requests on worker 0 the first min(B, G) last, all others end after a step.

    The other timetable starts every request when the rule does, and gives each worker one that lasts.

    Parameters
    ----------
    play
        Runs the rule, which fills slots.
    prompt, lasting
        Tokens of every request, and steps of those that last.
    refill
        Whether slots that become free are taken by further requests of one step, until those that last have ended.
        Only rules with a pool do that.
    """
    q = min(B, G)
    output = np.ones(G * B + refill * (G * B - q) * (lasting - 1), dtype=np.int64)
    start, worker = play(alike(prompt, output))
    long = np.flatnonzero((start == 0) & (worker == 0))[:q]
    output[long] = lasting
    trace = alike(prompt, output)
    start, worker = play(trace)
    other = np.empty_like(worker)
    other[long] = np.arange(q)
    free = np.repeat(np.arange(G), B - np.bincount(other[long], minlength=G))
    short = np.setdiff1d(np.arange(output.size), long)
    for step in np.unique(start[short]):
        now = short[start[short] == step]
        other[now] = free[: now.size]
    return Duel(G, B, trace, (start, worker), (start, other))


def one_after_the_other(play: Play, G: int, B: int, prompt: int, lasting: int, rounds: int) -> Duel:
    """Let G `rounds` requests last, each the first to start once the one before it has ended, all others one step.

    The other timetable runs the short ones first, in all slots, and then those that last, one a worker at a time.

    Parameters
    ----------
    play
        Runs the rule.
    prompt, lasting
        Tokens of every request, and steps of those that last.
    """
    output = np.ones(rounds * G * (1 + (G * B - 1) * lasting), dtype=np.int64)
    begin = 0
    for _ in range(rounds * G):
        start, _ = play(alike(prompt, output))
        later = np.flatnonzero(start >= begin)
        chosen = later[np.argmin(start[later])]
        output[chosen] = lasting
        begin = int(start[chosen]) + lasting
    trace = alike(prompt, output)
    return Duel(G, B, trace, play(trace), short_first(output, G, B))


def short_first(output: IntArray, G: int, B: int) -> tuple[IntArray, IntArray]:
    """Return start and worker: requests of one step first, in all slots, then the others, one a worker at a time.

    Parameters
    ----------
    output
        int64, (N,): steps; those above 1 are all equal.
    """
    start, worker = np.empty_like(output), np.empty_like(output)
    short, long = np.flatnonzero(output == 1), np.flatnonzero(output > 1)
    start[short], worker[short] = np.arange(short.size) // (G * B), np.arange(short.size) % G
    begin = -(-short.size // (G * B))
    lasting = int(output.max())
    start[long], worker[long] = begin + np.arange(long.size) // G * lasting, np.arange(long.size) % G
    return start, worker


def last_is_long(play: Play, G: int, B: int, prompt: int) -> Duel:
    """Give m (m - 1) + 1 requests, m = G B, of which the last to start takes m steps and all others one.

    The other timetable starts the long one first. It needs m steps, the rule 2 m - 1.

    Parameters
    ----------
    play
        Runs the rule.
    prompt
        Tokens of every request.
    """
    m = G * B
    output = np.ones(m * (m - 1) + 1, dtype=np.int64)
    start, _ = play(alike(prompt, output))
    last = int(np.flatnonzero(start == start.max())[-1])
    output[last] = m
    trace = alike(prompt, output)
    other = np.zeros(output.size, dtype=np.int64), np.zeros(output.size, dtype=np.int64)
    rest = np.setdiff1d(np.arange(output.size), [last])
    other[0][rest] = np.arange(rest.size) // (m - 1)
    other[1][rest] = (np.arange(rest.size) % (m - 1) + 1) // B
    return Duel(G, B, trace, play(trace), other)


def bound_to_one(play: Play, G: int, B: int, prompt: int, lasting: int, blocks: int) -> Duel:
    """Let those last that the rule has bound to one worker before anything ended, the last one of them longest.

    With q = `blocks` B and a = (G B - 1) q + 1: of G a requests some worker is given a or more. Its last one takes
    q `lasting` steps, the a - 1 before it `lasting`, and all others one. The other timetable runs short ones first,
    then the longest in one slot and q of the others, one after the other, in each of the G B - 1 other slots.

    Parameters
    ----------
    play
        Runs a rule that binds every request on arrival; its workers start what they queue in the order of arrival.
    prompt, lasting, blocks
        Tokens of every request, steps of those that last, and the number of blocks.
    """
    q = blocks * B
    a = (G * B - 1) * q + 1
    output = np.ones(G * a, dtype=np.int64)
    start, worker = play(alike(prompt, output))
    most = int(np.argmax(np.bincount(worker, minlength=G)))
    there = np.flatnonzero(worker == most)
    there = there[np.argsort(start[there], kind="stable")][-a:]
    output[there[:-1]], output[there[-1]] = lasting, q * lasting
    trace = alike(prompt, output)
    short = np.flatnonzero(output == 1)
    other = np.zeros_like(output), np.zeros_like(output)
    other[0][short], other[1][short] = np.arange(short.size) // (G * B), np.arange(short.size) % (G * B) // B
    begin = -(-short.size // (G * B))
    row = np.arange(a - 1)
    other[0][there[:-1]], other[1][there[:-1]] = begin + row % q * lasting, (row // q + 1) // B
    other[0][there[-1]] = begin
    return Duel(G, B, trace, play(trace), other)


def drawn_apart(play: Play, G: int, B: int, prompt: int, lasting: int, apart: int, seed: int) -> Duel:
    """Give `lasting` steps to G requests drawn at random, of so many that two seldom run together under any rule.

    Parameters
    ----------
    play
        Runs the rule.
    prompt, lasting, apart
        Tokens of every request, steps of those that last, and K: the chance that two of them overlap is at most 1 / K.
    """
    output = np.ones(requests_apart(G, B, lasting, apart), dtype=np.int64)
    output[np.random.default_rng(seed).choice(output.size, G, replace=False)] = lasting
    trace = alike(prompt, output)
    return Duel(G, B, trace, play(trace), short_first(output, G, B))


def requests_apart(G: int, B: int, lasting: int, apart: int) -> int:
    """Return N, so that two of G requests drawn from N overlap with a chance of at most 1 / `apart`, under any rule.

    Parameters
    ----------
    lasting, apart
        Steps of those that last, and the inverse of the chance.
    """
    return 1 + apart * G * (G - 1) * G * B * lasting


def apart_at_least(gap: IntArray, G: int, B: int, prompt: int, lasting: int) -> IntArray:
    """Return what the later of two neighbours that last adds to the sum of barriers at least, int64.

    A request of which `gap` starts after the one before it starts tau = ceil(gap / (G B - 1)) - 1 steps later or more,
    since at most G B - 1 others start in a step in which that one runs. So it runs alone, or is the last of both, in
    its last min(tau, T) steps, where it is largest.

    Parameters
    ----------
    gap
        int64, differences of positions in the order of starts, 1 or more.
    prompt, lasting
        Tokens of every request, and steps T of those that last.
    """
    alone = np.minimum(lasting, -(-gap // (G * B - 1)) - 1)
    added: IntArray = alone * (prompt + lasting - 1) - alone * (alone - 1) // 2
    return added


def expected_apart(N: int, G: int, B: int, prompt: int, lasting: int) -> float:
    """Return the mean of `apart_at_least` between neighbours of G positions drawn from N, computed exactly.

    Each difference of neighbours of a random subset has the same law, P(d) = C(N - d, G - 1) / C(N, G).

    Parameters
    ----------
    prompt, lasting
        Tokens of every request, and steps of those that last.
    """
    gap = np.arange(1, N - G + 2, dtype=np.int64)
    chance = np.full(gap.size, G / (N - G + 1))
    for j in range(G - 1):
        chance *= (N - gap - j) / (N - j)
    return float(chance @ apart_at_least(gap, G, B, prompt, lasting))


def work_of(prompt: int, output: int) -> int:
    """Return w, the sum of the sizes that a request shows."""
    return prompt * output + output * (output - 1) // 2


def expected_together(G: int, B: int) -> float:
    """Return E max of G of the G B slots, drawn without replacement: how many the fullest worker has.

    By the number of draws that leave no worker above m, for each m: the coefficient of x^G in (sum_j C(B, j) x^j)^G.
    """
    total = comb(G * B, G)
    below = 0
    for m in range(min(B, G)):
        ways = [1] + [0] * G
        for _ in range(G):
            ways = [sum(ways[n - j] * comb(B, j) for j in range(min(m, n) + 1)) for n in range(G + 1)]
        below += ways[G]
    return min(B, G) - below / total
