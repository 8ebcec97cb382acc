"""Gates on random states, beside their twins."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from kernels.rules import many
from lengths import quick_and_long
from naive.gates import GATES, Rank
from simulator.random_fleets import naive_gate, random_gate

from lbopt.kernels.arrays import Records, record, records
from lbopt.kernels.gating import GATE, RANK, SBS, Gate, decide_gate, end_gated_step
from lbopt.simulator.gates import read_gate

BUDGET = 64
PASSES = 25


def random_rank(rng: random.Random) -> Rank:
    """Return a rank of few requests: about half of them have a prompt."""
    begun, waiting = rng.choice([0, 0, 0, 1, 2]), rng.choice([0, 0, 1, 2, 5])
    return Rank(
        present=rng.random() < 0.95,
        decoding=rng.choice([0, 1, 3, 3, 6, 6, 8]),
        begun=begun,
        can_begin=waiting > 0 and rng.random() < 0.8,
        waiting=waiting,
        pending=rng.randint(1, BUDGET) if begun + waiting else 0,
        most=rng.randint(0, 3),
        left_over=rng.random() < 0.3,
        usage=rng.choice([math.nan] * 9 + [0.5] * 9 + [0.125, 0.875, 0.95]),
        age=rng.choice([0.0] * 19 + [0.05]),
    )


def filled(ranks: list[Rank]) -> Records:
    """Return the ranks as the kernel takes them, with `BUDGET` tokens of room each."""
    rows = records(len(ranks), RANK)
    for row, rank in zip(rows, ranks, strict=True):
        for name in ("present", "decoding", "begun", "can_begin", "waiting", "pending", "most", "usage", "age"):
            setattr(row, name, getattr(rank, name))
        row.bound, row.room = rank.left_over, BUDGET
    return rows


@pytest.mark.parametrize("states", quick_and_long(many(1000, 500), 10_000))
@pytest.mark.parametrize("name", sorted(GATES))
def test_gates_decide_as_their_twins(name: str, states: int) -> None:
    rng, draws, held = random.Random(name), np.random.default_rng(7), 0
    for case in range(states // PASSES):
        text = random_gate(draws, name)
        chosen, slots, count = read_gate(text), rng.choice([6, 8, 9]), rng.randint(1, 4)
        twin = naive_gate(text)
        terms = record(GATE)
        terms.code, terms.budget, terms.is_first, terms.pending, terms.since = chosen.code, BUDGET, 1, -1, -math.inf
        seconds, clock = np.zeros(int(chosen.knobs.window) if chosen.code == SBS else 0), 0.0
        pool = [random_rank(rng) for _ in range(count)]
        for number in range(PASSES):
            ranks = [rank if rng.random() < 0.6 else random_rank(rng) for rank in pool]
            pool, idle = ranks, rng.random() < 0.05
            gate = Gate(terms=terms, knobs=chosen.knobs, ranks=filled(ranks), seconds=seconds)
            decide_gate(clock, idle, slots, gate)
            found = [(int(row.room), int(row.stops)) for row in gate.ranks]
            expected = [
                (BUDGET if begins else 0, int(not goes_on))
                for begins, goes_on in twin.judge(ranks, clock, idle, slots, BUDGET)
            ]
            assert found == expected, f"{text}, case {case}, pass {number}: {ranks}"
            held += any(room == 0 for room, _ in found)
            computed, took = rng.choice([0, 5]), rng.choice([0.0078125, 0.03125, 0.25])
            end_gated_step(computed, took, False, gate)
            twin.step(computed, took)
            clock += took
    assert states / 20 < held < states
