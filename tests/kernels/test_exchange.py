"""Assignments made without prices, and what becomes of their slack: always possible, never fewer tokens."""

import numpy as np
import pytest

from lbopt.kernels.search.exchange import exchange, with_few_slots
from lbopt.kernels.search.fill import fill_evenly, pack, try_even_start
from lbopt.kernels.search.range_prices import price_few
from lbopt.kernels.search.state import NONE, Search, Step
from lbopt.model import StepProblem, objective
from lbopt.solvers import solve
from lbopt.solvers.budget import Budget
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.packing import Packing

pytestmark = [pytest.mark.jit, pytest.mark.more]


def flexible(seed: int, factor: int = 1) -> StepProblem:
    """Most workers have three slots and more, and a few requests more wait than can start."""
    rng = np.random.default_rng(seed)
    workers = int(rng.integers(3, 9))
    slots = rng.integers(1, 6, workers)
    sizes = factor * rng.integers(1, 200, int(slots.sum()) + int(rng.integers(1, 12)))
    return StepProblem.now(factor * rng.integers(0, 400, workers), slots, sizes)


def begun(problem: StepProblem) -> tuple[Decision, Search, Step]:
    decision = Decision(problem)
    return decision, decision.start(decision.first_assignment()[1]), decision.step


def check(step: Step, M: int, pattern: np.ndarray) -> int:
    """The tokens of an assignment that is one: no request twice, no load above M."""
    used = np.zeros_like(step.n)
    tokens = 0
    for w, c in enumerate(step.slots.tolist()):
        taken = pattern[w, :c]
        assert (taken >= 0).all()
        assert step.load[w] + step.v[taken].sum() <= M
        np.add.at(used, taken, 1)
        tokens += int(step.v[taken].sum())
    assert (used <= step.n).all()
    return tokens


@pytest.mark.parametrize("factor", [1, 5000])
def test_slack_is_used_up_and_nothing_is_lost(factor):
    filled = gained = reached = 0
    for seed in range(150):
        _, search, step = begun(flexible(seed, factor))
        least = int((step.load + step.sums[step.slots]).max())
        for M in (max(step.heaviest, least), step.heaviest + 300 * factor):
            tokens = fill_evenly(step, search, M, 0, search.kept)
            if tokens < 0:
                continue
            filled += 1
            assert check(step, M, search.kept) == tokens
            target = min(step.most, int((M - step.load).sum()))
            for rounds in (0, 1, 40, 400):
                before, tokens = (
                    tokens,
                    exchange(step, search.exchanging, search.known, M, target, rounds, 0, search.kept),
                )
                assert check(step, M, search.kept) == tokens >= before
                assert rounds > 0 or tokens == before
                gained += tokens > before
            reached += tokens >= target
    assert filled > 100
    assert gained > 100
    assert reached > 20


@pytest.mark.parametrize("factor", [1, 5000])
def test_even_starts_are_assignments(factor):
    better = reached = 0
    for seed in range(150):
        decision, search, step = begun(flexible(seed, factor))
        first = search.known.cost
        M = max(step.heaviest, int((step.load + step.sums[step.slots]).max()))
        this = search.ranges[0]
        this.first = this.last = M
        this.bound = max(0, step.workers * M - step.total - step.most)
        ended = try_even_start(step, search, 0)
        cost = search.known.cost
        assert cost <= first
        if cost < first:
            better += 1
            taken = [step.load[w] + step.v[search.answer[w, :c]].sum() for w, c in enumerate(step.slots.tolist())]
            top = max(step.heaviest, *(int(load) for load in taken))
            tokens = check(step, top, search.answer)
            assert cost == step.workers * top - step.total - tokens
            assert objective(flexible(seed, factor), decision.handed_out(search)) == cost
        if ended:
            reached += 1
            assert cost <= this.bound
    assert better > 20
    assert reached > 0


def test_only_those_from_the_first_on_change():
    for seed in range(40):
        _, search, step = begun(flexible(seed))
        M = step.heaviest + 200
        if fill_evenly(step, search, M, 0, search.kept) < 0:
            continue
        before = search.kept[:2].copy()
        exchange(step, search.exchanging, search.known, M, step.most, 300, 2, search.kept)
        assert (search.kept[:2] == before).all()
        assert check(step, M, search.kept) == fill_evenly(step, search, M, step.load.size, search.kept)


def test_prices_of_few_bound_all():
    """No assignment under the envelope admits more than the bound says, and what is offered costs what is said."""
    tight = 0
    for seed in range(60):
        problem = flexible(seed)
        decision, search, step = begun(problem)
        few = with_few_slots(step)
        if few < 0:
            continue
        optimum = solve(problem, "search")
        assert optimum.proved
        largest = int(optimum.loads.max())
        admitted = int(problem.work[optimum.assignment >= 0].sum())
        scaled = price_few(step, search, decision.masters, largest, few)
        assert scaled != NONE
        assert scaled // step.scale >= admitted
        tight += scaled // step.scale == admitted
        first = decision.first_assignment()[1]
        assert optimum.objective <= search.known.cost <= first
        if search.known.cost < first:
            assert objective(problem, decision.handed_out(search)) == search.known.cost
    assert tight > 10


def naive_pack(load: list[int], slots: list[int], sizes: list[int], M: int) -> list[list[int]]:
    """Largest first, each on the worker with most room where it fits; the first of equals."""
    held: list[list[int]] = [[] for _ in load]
    for size in sorted(sizes, reverse=True):
        rooms = [(M - load[w] - sum(held[w]), -w) for w in range(len(load)) if len(held[w]) < slots[w]]
        if rooms and max(rooms)[0] >= size:
            held[-max(rooms)[1]].append(size)
    return held


def test_all_are_packed():
    """What is packed is what a twin packs, and what comes of it is mostly the least largest load, and never less."""
    better = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        workers = int(rng.integers(2, 8))
        slots = rng.integers(1, 6, workers)
        sizes = rng.integers(0, 300, int(rng.integers(1, slots.sum() + 1)))
        base = rng.integers(0, 200, workers)
        packing = Packing(base, slots, sizes, Budget(None, 0).limits)
        step, scratch = packing._step, packing._scratch
        M = int(base.max()) + int(rng.integers(0, 400))
        tokens = pack(step, M, scratch.slack, scratch.number, packing._pattern)
        order = [(int(c), int(b)) for b, c in zip(step.load, step.slots, strict=True)]
        twin = naive_pack([b for _, b in order], [c for c, _ in order], [s for s in sizes.tolist() if s], M)
        assert tokens == sum(map(sum, twin))
        for w, held in enumerate(twin):
            assert sorted(step.v[packing._pattern[w, : order[w][0]]].tolist(), reverse=True)[: len(held)] == held
        greedy = int(base.max() + sizes.sum())
        for _ in packing.improve(int(base.max()), greedy, 0):
            pass
        placed = packing.assignment
        if placed is None:
            continue
        loads = base.copy()
        np.add.at(loads, placed, sizes)
        assert (np.bincount(placed, minlength=workers) <= slots).all()
        optimum = solve(StepProblem.now(base, slots, sizes), "search")
        assert optimum.proved
        assert loads.max() >= optimum.loads.max()
        better += loads.max() == optimum.loads.max()
    assert better > 60


def test_who_has_few_slots():
    def few(*slots: int) -> int:
        return with_few_slots(Decision(StepProblem.now([0] * len(slots), slots, range(1, 40))).step)

    assert few(1, 2, 3) == 2
    assert few(3, 5) == 0
    assert few(1, 1, 2, 2) == -1
    assert few(1, 1, 1, 7) == -1
