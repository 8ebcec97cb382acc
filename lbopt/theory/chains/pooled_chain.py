r"""BF-IO and FCFS on the same arrivals, with pools that lack sizes: what Theorem 2 speaks of, at proved optima.

The theorems are about every arrival instance of the overloaded family (definition 1): in every step, without the size
that is most frequent in the pool, there are still as many waiting requests as free slots. Two instances of it:

* **minimal**: after the ends of a step requests arrive one by one until that holds, and no more;
* **bursty**: no request arrives until it fails; then so many come at once as end in 20 steps on average.

Sizes are independent draws of the prompt law in order of arrival, and ends are drawn per slot and step, so both rules
meet the same arrivals as far as their pools need them, and the same ends. BF-IO's steps are solved by `lbopt.solve`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.solvers import Result, solve
from lbopt.theory.chains.batch_means import burn_in_steps
from lbopt.theory.laws.slot_law import PromptLaw

IntArray = NDArray[np.int64]

ARRIVALS = ("minimal", "bursty")

#: A burst lasts for so many steps, on average.
BURST_STEPS = 20

#: Seconds for a step; what is not proved by then counts as undecided.
_TIME_LIMIT = 5.0

#: Returns the worker of each waiting request, -1 where it keeps waiting, and whether that is proved to be the best.
Rule = Callable[[IntArray, IntArray, IntArray], tuple[IntArray, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRun:
    """What a chain showed after its burn-in.

    Parameters
    ----------
    imbalance
        float64 (steps,): tokens, after admission.
    undecided
        Steps whose optimum was not proved, burn-in included.
    admitted_prompt
        Mean prompt of admitted requests, tokens.
    longest_wait
        Steps that an admitted or still waiting request has waited at most.
    """

    imbalance: NDArray[np.float64]
    undecided: int
    admitted_prompt: float
    longest_wait: int


def first_come(load: IntArray, free: IntArray, pool: IntArray) -> tuple[IntArray, bool]:
    """Place by FCFS: the head of the pool on worker 0 until it is full, then on worker 1."""
    worker = np.full(pool.size, -1, np.int64)
    places = np.repeat(np.arange(free.size), free)
    worker[: places.size] = places[: pool.size]
    return worker, True


def best_placement(load: IntArray, free: IntArray, pool: IntArray) -> tuple[IntArray, bool]:
    """Place by BF-IO at H = 0, exactly."""
    level = _at_residues(load, free, pool)
    if level is not None:
        return level, True
    result = _solved(load, free, pool)
    if result.assignment is None:
        raise InputError(f"a step with {pool.size} waiting requests was not solved within {_TIME_LIMIT} s")
    return np.asarray(result.assignment, np.int64), result.proved


def _at_residues(load: IntArray, free: IntArray, pool: IntArray) -> IntArray | None:
    """Return a placement that leaves what the residues of the loads leave, which no placement is below; None if none
    is found, or if the sizes of the pool have no common divisor of their differences.

    With all sizes v modulo d, worker g can be at r_g modulo d alone (`lbopt.theory.laws.spacing`). Every load is raised
    to the residue of the best maximum; measured in d tokens, the step is then one whose least imbalance must be 0.
    """
    v = int(pool.min()) if pool.size else 0
    d = int(np.gcd.reduce(pool - v))
    if d <= 1:
        return None
    floor = load + v * free
    below = (floor[:, None] - floor[None, :]) % d  # of load h below a maximum in the class of load g
    raised = floor + below[below.sum(axis=1).argmin()]
    rungs = (raised - raised.min()) // d - free
    result = _solved(rungs - rungs.min(), free, (pool - v) // d + 1)
    return np.asarray(result.assignment, np.int64) if result.objective == 0 else None


def _solved(load: IntArray, free: IntArray, pool: IntArray) -> Result:
    return solve(StepProblem(base=load, slots=free, work=pool), solver="search", time_limit=_TIME_LIMIT)


def run_pooled(rule: Rule, G: int, B: int, p: float, law: PromptLaw, steps: int, arrivals: str, seed: int) -> PooledRun:
    """Run `rule` for `steps` steps after the burn-in; all slots are filled at once in step 0.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    steps
        Number of steps.
    """
    if arrivals not in ARRIVALS:
        raise InputError(f"arrivals are '{arrivals}'; expected one of {', '.join(ARRIVALS)}")
    ends, sizes = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2))
    shares = law.probabilities()

    def arrive(count: int) -> IntArray:
        return sizes.choice(shares.size, count, p=shares).astype(np.int64)

    slot = arrive(G * B).reshape(G, B)
    pool, since = np.empty(0, np.int64), np.empty(0, np.int64)
    burn_in = burn_in_steps(G, B, p)
    imbalance = np.empty(steps)
    undecided = longest = count = tokens = 0
    for k in range(1, burn_in + steps + 1):
        slot += 1
        ended = ends.random((G, B)) < p
        slot[ended] = 0
        free = ended.sum(axis=1)
        came = _overloaded(pool, int(free.sum()), law.largest, arrive, arrivals, round(BURST_STEPS * p * G * B))
        pool, since = np.concatenate((pool, came)), np.concatenate((since, np.full(came.size, k)))
        worker, proved = rule(slot.sum(axis=1), free, pool)
        undecided += not proved
        for g in range(G):
            slot[g, ended[g]] = pool[worker == g]
        taken = worker >= 0
        longest = max(longest, k - int(since[taken].min(initial=k)))
        if k > burn_in:
            load = slot.sum(axis=1)
            imbalance[k - burn_in - 1] = G * load.max() - load.sum()
            count, tokens = count + int(taken.sum()), tokens + int(pool[taken].sum())
        pool, since = pool[~taken], since[~taken]
    longest = max(longest, burn_in + steps - int(since.min(initial=burn_in + steps)))
    return PooledRun(
        imbalance=imbalance, undecided=undecided, admitted_prompt=tokens / max(1, count), longest_wait=longest
    )


def _overloaded(
    pool: IntArray, free: int, largest: int, arrive: Callable[[int], IntArray], arrivals: str, burst: int
) -> IntArray:
    """Return who arrives so that the pool less its most frequent size holds as many as there are free slots."""
    came = np.empty(0, np.int64)
    there = np.bincount(pool, minlength=largest + 1)
    while (short := free - int(there.sum() - there.max())) > 0:
        # `short` arrivals mend it only if none is of the most frequent size: never one too many
        more = arrive(short if arrivals == "minimal" else max(short, burst))
        there += np.bincount(more, minlength=largest + 1)
        came = np.concatenate((came, more))
    return came
