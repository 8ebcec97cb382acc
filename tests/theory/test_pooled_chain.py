"""The chain of two rules on the same arrivals beside one written with lists, and who arrives in an overloaded pool."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.theory.chains.batch_means import burn_in_steps
from lbopt.theory.chains.pooled_chain import BURST_STEPS, best_placement, first_come, run_pooled
from lbopt.theory.laws.slot_law import PromptLaw

LAW = PromptLaw.uniform(3)


def naive_run(G, B, p, steps, arrivals, seed):
    """First come, first served: imbalance of each step, mean prompt admitted and longest wait."""
    ends, sizes = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2))
    shares = LAW.probabilities()

    def arrive(count):
        return sizes.choice(shares.size, count, p=shares).tolist()

    flat = arrive(G * B)
    slots = [flat[g * B : (g + 1) * B] for g in range(G)]
    pool, admitted, waits, imbalance = [], [], [0], []
    burn_in = burn_in_steps(G, B, p)
    for k in range(1, burn_in + steps + 1):
        gone = ends.random((G, B)) < p
        free = int(gone.sum())
        while (short := free - len(pool) + max(Counter(size for size, _ in pool).values(), default=0)) > 0:
            burst = round(BURST_STEPS * p * G * B)
            pool += [(size, k) for size in arrive(short if arrivals == "minimal" else max(short, burst))]
        for g in range(G):
            for b in range(B):
                slots[g][b] += 1
                if gone[g, b]:
                    size, since = pool.pop(0)
                    slots[g][b] = size
                    waits.append(k - since)
                    if k > burn_in:
                        admitted.append(size)
        if k > burn_in:
            loads = [sum(row) for row in slots]
            imbalance.append(G * max(loads) - sum(loads))
    waits += [burn_in + steps - since for _, since in pool]
    return imbalance, sum(admitted) / max(1, len(admitted)), max(waits)


@pytest.mark.parametrize("arrivals", ["minimal", "bursty"])
@pytest.mark.parametrize(("G", "B", "p"), [(2, 3, 0.3), (3, 2, 0.5)])
def test_first_come_is_the_chain_written_with_lists(G, B, p, arrivals):
    run = run_pooled(first_come, G, B, p, LAW, 40, arrivals, 7)
    imbalance, admitted, longest = naive_run(G, B, p, 40, arrivals, 7)
    assert run.imbalance.tolist() == imbalance
    assert run.admitted_prompt == pytest.approx(admitted)
    assert (run.longest_wait, run.undecided) == (longest, 0)


def test_steps_without_a_proof_are_counted_with_the_burn_in():
    calls = []

    def unproved(load, free, pool):
        calls.append(len(calls))
        return first_come(load, free, pool)[0], len(calls) % 3 > 0

    run = run_pooled(unproved, 2, 3, 0.3, LAW, 20, "minimal", 1)
    assert len(calls) == burn_in_steps(2, 3, 0.3) + 20
    assert run.undecided == len(calls) // 3


def test_the_best_placement_is_optimal_and_proved():
    worker, proved = best_placement(np.array([9, 4, 3]), np.array([0, 1, 2]), np.array([5, 1, 3, 3]))
    assert proved
    assert worker.tolist() == [1, -1, 2, 2]  # 9, 9 and 9


def test_an_unknown_kind_of_arrivals_is_refused():
    with pytest.raises(InputError, match="arrivals are 'daily'; expected one of minimal, bursty"):
        run_pooled(first_come, 2, 2, 0.5, LAW, 5, "daily", 1)
