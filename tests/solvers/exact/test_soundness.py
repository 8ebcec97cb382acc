"""The exact search against engines that share no code with it, on problems small enough for all of them.

Five of them: `solve` as a user calls it (lbopt's own search where it answers, else what "auto" takes), exhaustion by
class counts (`brute-force`), the verifier's dynamic program over sorted states (`recount.exhaust`), and CP-SAT and
HiGHS inside ranges in which their claims hold. None may contradict another: no bound above a known value, no
"optimal" with another value, no proof that the verifier does not accept.
"""

import random
from collections import Counter

import numpy as np
import pytest
from solvers.small_problems import random_problem

from lbopt import StepProblem, solve, verify
from lbopt.kernels.search.state import OPEN, PROVED
from lbopt.model import check_assignment, objective
from lbopt.model.formulation import formulate
from lbopt.model.paced_numbers import paced_numbers
from lbopt.solvers import BACKENDS, is_available, recount
from lbopt.solvers.backend import Task, load, placement, rounded_up
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.workspace import what_is_known
from lbopt.solvers.exhaustion import exhausted

pytestmark = pytest.mark.jit

#: Largest size of a request -> problems of the long run. Sums cross 2**31 from 10**9 on, and 2**53 at 2**53.
COUNTS = {10**2: 2000, 10**4: 2000, 10**6: 2000, 10**9: 2000, 2**31: 1000, 2**53: 1250}

#: One block of the long run.
BLOCK = 250

#: Largest `Program.total` at which HiGHS 1.13.1 is asked. It calls wrong values optimal from 30,003 on, which is below
#: what `solve` uses of it: sizes that are alike, two workers that are equal (`test_highs_on_sizes_that_are_alike`).
HIGHS_HOLDS = 2**14

#: Seconds for a problem of a handful of requests: a search that needs more of them is weak, not wrong.
LIMIT = 5.0


def equal_workers(rng: random.Random, top: int) -> StepProblem:
    workers = rng.randint(2, 4)
    sizes = [rng.randint(0, top) for _ in range(rng.randint(1, 7))]
    return StepProblem.now([rng.randint(0, top)] * workers, [rng.randint(1, 2)] * workers, sizes)


def equal_sizes(rng: random.Random, top: int) -> StepProblem:
    loads, size = [rng.randint(0, top) for _ in range(rng.randint(1, 4))], rng.randint(0, top)
    slots = [rng.randint(0, 3) for _ in loads]
    return StepProblem.now(loads, slots, [size] * rng.randint(1, 7))


def as_many_as_slots(rng: random.Random, top: int) -> StepProblem:
    """One request fewer than slots, as many, or one more; on workers of which some are closed."""
    loads = [rng.randint(0, 2 * top) for _ in range(rng.randint(2, 4))]
    slots = [rng.randint(0, 2) for _ in loads]
    slots[0] += 1
    sizes = [rng.randint(top // 2, top) for _ in range(sum(slots) + rng.choice([-1, 0, 0, 1]))]
    forced = rng.randint(0, min(len(sizes), sum(slots))) if rng.random() < 0.5 else 0
    return StepProblem.now(loads, slots, sizes, must_admit=[i < forced for i in range(len(sizes))])


def growing(rng: random.Random, top: int) -> StepProblem:
    """A window in which the running requests grow and leave, and the new ones outlive it or do not."""
    workers, horizon = rng.randint(1, 3), rng.randint(1, 3)
    running = [(g, rng.randint(1, horizon + 1), rng.randint(0, top)) for g in range(workers) for _ in range(2)]
    loads = [sum(size for g, _, size in running if g == worker) + rng.randint(0, top) for worker in range(workers)]
    sizes = [rng.randint(0, top) for _ in range(rng.randint(1, 6))]
    common = {
        "slots": [rng.randint(0, 2) for _ in range(workers)],
        "sizes": sizes,
        "horizon": horizon,
        "active": [rng.randint(2, 5) for _ in range(workers)],
        "departures": running,
    }
    if rng.random() < 0.5:
        return StepProblem.survives(loads, **common)
    return StepProblem.known_ends(loads, outputs=[rng.randint(1, horizon + 2) for _ in sizes], **common)


def anything(rng: random.Random, top: int) -> StepProblem:
    return random_problem(rng, top, requests=7, workers=4)


SHAPES = (anything, as_many_as_slots, equal_workers, anything, equal_sizes, growing, as_many_as_slots, anything)


def varied(seed: int, top: int) -> StepProblem:
    """The first problem of that seed in which somebody can be admitted."""
    rng = random.Random(f"{top}/{seed}")
    while True:
        problem = SHAPES[seed % len(SHAPES)](rng, top)
        if problem.num_admitted:
            return problem


def backend_optimum(problem: StepProblem, name: str, seed: int) -> int | None:
    """What a backend calls the optimum, value and bound agreeing; None outside the range in which it is believed."""
    program = formulate(problem)
    largest = BACKENDS[name].largest_safe_total
    if name == "highs":
        largest = min(HIGHS_HOLDS, largest)
    if not is_available(name) or (largest is not None and program.total > largest):
        return None
    if name == "brute-force":
        found, _ = exhausted(paced_numbers(problem), None)
        return found.rank[0]
    answer = load(name).minimise(Task(program=program, seed=seed % 7))
    assert answer.stop == "done", (name, answer)
    value = objective(problem, placement(program, answer.values))
    assert program.tokens(rounded_up(answer.bound)) == value, (name, answer)
    return value


def contradiction(problem: StepProblem, seed: int, seen: Counter) -> str | None:
    """Ask all engines; return what does not fit together, None where everything does."""
    counted = recount.exhaust(recount.Numbers.of(problem), 10**7)
    assert counted is not None, "the problems of this file are small"
    optimum = counted[()][0]
    seen["engine: dynamic program"] += 1
    for name in ("brute-force", "cp-sat", "highs"):
        other = backend_optimum(problem, name, seed)
        if other is not None:
            seen[f"engine: {name}"] += 1
            if other != optimum:
                return f"{name} says {other}, the dynamic program {optimum}"
    result = solve(problem, "search", time_limit=LIMIT)
    check_assignment(problem, result.assignment)
    value = objective(problem, result.assignment)
    seen[f"engine: solve -> {result.solver}"] += 1
    seen[f"solve: {result.status}, {result.stop_reason}, {result.proof}"] += 1
    if result.objective != value:
        return f"its objective is {result.objective}, its assignment is worth {value}"
    if not result.bound <= optimum <= value:
        return f"the optimum {optimum} is not in {result.bound}..{value}"
    if (result.proved or result.status == "optimal") and value != optimum:
        return f"{value} is called optimal, the optimum is {optimum}"
    report = verify(problem, result, exhaust_limit=0)
    seen["verified without exhausting"] += report.bound_established
    return None


def run(top: int, seeds: range) -> Counter:
    seen: Counter = Counter()
    for seed in seeds:
        problem = varied(seed, top)
        seen["problems"] += 1
        seen["windows"] += problem.horizon > 0
        seen["must admit"] += bool(problem.must_admit.any())
        seen["closed workers"] += bool((problem.slots == 0).any())
        more = (problem.num_requests > problem.num_free_slots) - (problem.num_requests < problem.num_free_slots)
        seen[("fewer requests than slots", "as many", "more")[more + 1]] += 1
        largest = int(problem.base.sum(axis=0).max() + problem.work.sum(axis=0).max())
        seen["sums beyond 2**31"] += largest > 2**31
        seen["sums beyond 2**53"] += largest > 2**53
        wrong = contradiction(problem, seed, seen)
        assert wrong is None, (top, seed, wrong, problem.to_json())
    undecided = sum(count for what, count in seen.items() if what.startswith("solve: feasible"))
    assert undecided <= 1 + len(seeds) // 50
    return seen


@pytest.mark.some(2)
@pytest.mark.parametrize("top", COUNTS)
def test_no_engine_contradicts_another(top):
    seen = run(top, range(10**6, 10**6 + 48))
    assert seen["engine: solve -> exact"] > 15
    assert min(seen["windows"], seen["must admit"], seen["closed workers"]) > 3
    assert min(seen["fewer requests than slots"], seen["as many"], seen["more"]) > 3


BLOCKS = [(top, first) for top, count in COUNTS.items() for first in range(0, count, BLOCK)]


@pytest.mark.slow
@pytest.mark.parametrize(("top", "first"), BLOCKS)
def test_ten_thousand_problems(top, first):
    """`-s` shows what ran; the blocks together are 10,250 problems."""
    seen = run(top, range(first, first + BLOCK))
    print(f"\n{top} {first}", dict(seen))
    if top >= 10**9:
        assert seen["sums beyond 2**31"] > BLOCK // 2
    if top == 2**53:
        assert seen["sums beyond 2**53"] > BLOCK // 2


#: Smallest of the decisions that HiGHS 1.13.1 gets wrong under some seed, by total: 30,003 (a bound of 11, true 10),
#: 35,880, 36,104, 39,884 and 79,972 (with a value that is not optimal either).
ALIKE = [
    ([4951, 4966, 4967], [2, 2, 2], [4985, 4969, 4957, 4990, 4993, 4985, 4992], []),
    ([2960, 2960, 2967, 2992], [3, 3, 0, 2], [2979, 2986, 2980, 2953, 2988, 2996, 2953], []),
    ([2970, 2970, 2996, 2964], [3, 3, 3, 3], [2997, 2998, 2999, 2959, 2960, 2990], []),
    ([4990, 4990, 4993, 4982], [2, 2, 1, 2], [4996, 4962, 4962, 4967, 4966, 4950], []),
    ([9999, 9999, 9989, 9987], [2, 2, 2, 0], [9981, 10000, 9980, 9951, 9974], [2, 3]),
]


def test_highs_on_sizes_that_are_alike():
    wrong = []
    for loads, slots, sizes, forced in ALIKE:
        problem = StepProblem.now(loads, slots, sizes, must_admit=[i in forced for i in range(len(sizes))])
        optimum = recount.exhaust(recount.Numbers.of(problem), 10**7)[()][0]
        for seed in range(7):
            result = solve(problem, "highs", seed=seed)
            if not result.bound <= optimum <= result.objective or (result.status == "optimal") > (
                result.objective == optimum
            ):
                wrong.append((problem.to_json(), seed, optimum, result.summary()))
    assert wrong == []


def test_an_idle_fleet_with_more_slots_than_requests():
    """What the search takes for an assignment has to be one, also at an envelope of 0, where penalties could vanish."""
    problem = StepProblem.now([0, 0], [4, 4], [7056899, 258260586, 64861490, 92246016])
    decision = Decision(problem)
    search = decision.start(decision.first_assignment()[1])
    for _ in range(100):
        before = int(search.known.cost)
        state = decision.advance(search, 5_000)
        if search.known.cost < before:
            answer = search.answer[:2, :4]
            assert answer.min() >= 0
            assert (np.bincount(answer.ravel(), minlength=decision.step.n.size) == decision.step.n).all()
        if state != OPEN:
            break


@pytest.mark.parametrize("seed", [8, 12, 18])
def test_a_search_that_is_cut_off_never_bounds_the_optimum_from_above(seed):
    """Whatever the slice in which it ends: bounds of the range that was worked on were reported once, of the whole."""
    draw = random.Random(seed)
    sizes = [round(draw.lognormvariate(6.5, 0.6)) + 1 for _ in range(500)]
    sizes += [round(draw.lognormvariate(11.5, 0.5)) for _ in range(14)]
    loads = [draw.randrange(150_000, 300_000) for _ in range(16)]
    slots = [draw.randrange(0, 5) for _ in range(16)]
    decision = Decision(StepProblem.now(loads, slots, sizes))
    search, state, bounds = decision.start(decision.first_assignment()[1]), OPEN, []
    while state == OPEN and len(bounds) < 20_000:
        state = decision.advance(search, 50)
        bounds.append(what_is_known(search).bound)
    assert state == PROVED
    assert bounds == sorted(bounds)
    assert bounds[-1] == what_is_known(search).cost
