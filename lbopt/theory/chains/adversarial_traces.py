"""Traces on which counting requests fails: all heavy ones end up on one worker (BF-IO, appendix A.1.1).

The *burst*: n blocks of one heavy request and G - 1 short ones, all there at once. Round-robin deals the heavy ones to
one worker; so does the shortest queue with a fixed order of ties, because every block leaves all counts equal. The
*strict* trace needs no ties for heavy ones: each finds its worker with strictly fewest requests. After each step the
short ones on that worker have ended, while those elsewhere last until all heavy ones have come; whoever lays the trace
out must know where the rule puts them, as an adversary of a deterministic rule does.

Heavy requests have equal sizes at every step (who comes a step later is a token longer), so loads that are left when
the short ones have ended are whole multiples of one size, and ratios are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count as counting

import numpy as np
from numpy.typing import NDArray

from lbopt.model import Trace
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
    G
        Number of workers.
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
    G
        Number of workers.
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
