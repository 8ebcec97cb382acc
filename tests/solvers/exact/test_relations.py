"""What must hold between the optima of related decisions, beyond the size that enumeration reaches.

Each relation has its proof in its docstring. It is asserted of the intervals [bound, objective] that the two solves
return, so that a search that was cut off is tested as well: where both are proved the assertion is the relation itself.
"""

import random
from collections import Counter

import pytest

from lbopt import StepProblem, solve

pytestmark = pytest.mark.jit

LIMIT = 1.0


def busy(rng: random.Random) -> StepProblem:
    """A fleet that has been busy for a while: up to 12 workers, few free slots, up to 60 waiting requests.

    Sizes have a heavy tail, as prompts do; the pool is below, at or above the number of free slots.
    """
    workers, top = rng.randint(2, 12), rng.choice([40, 1000, 8000, 10**6])

    def size() -> int:
        return min(top, 1 + int(rng.lognormvariate(0, 1.2) * top / 12))

    few = [size() for _ in range(4)]
    draw = rng.choice([size, size, size, lambda: rng.choice(few)])
    slots = [rng.choice([0, 1, 1, 2, 3]) for _ in range(workers)]
    slots[rng.randrange(workers)] += 1
    loads = [sum(draw() for _ in range(rng.randint(4, 8))) for _ in range(workers)]
    free = sum(slots)
    waiting = rng.choice([rng.randint(1, free), free, free + 1, min(60, 2 * free), 60])
    admitted = min(waiting, free)
    forced = set(rng.sample(range(waiting), rng.randint(1, admitted))) if rng.random() < 0.3 else set()
    return StepProblem.now(
        loads, slots, [draw() for _ in range(waiting)], must_admit=[i in forced for i in range(waiting)]
    )


def parts(problem: StepProblem) -> tuple[list[int], list[int], list[int], list[bool]]:
    return (
        problem.base[:, 0].tolist(),
        problem.slots.tolist(),
        problem.work[:, 0].tolist(),
        problem.must_admit.tolist(),
    )


def in_other_order(problem, rng):
    """Requests and workers have no order in the problem: a permutation is a bijection of the assignments."""
    loads, slots, sizes, must = parts(problem)
    workers, requests = list(range(len(loads))), list(range(len(sizes)))
    rng.shuffle(workers)
    rng.shuffle(requests)
    other = StepProblem.now(
        [loads[g] for g in workers],
        [slots[g] for g in workers],
        [sizes[i] for i in requests],
        must_admit=[must[i] for i in requests],
    )
    return other, "=", 1


def times_a_number(problem, rng):
    """G max L - sum L is linear in the loads, and the same assignments are feasible."""
    loads, slots, sizes, must = parts(problem)
    k = rng.choice([2, 3, 7, 64, 1000, 2**20 + 1])
    return StepProblem.now([k * a for a in loads], slots, [k * s for s in sizes], must_admit=must), "=", k


def all_loads_shifted(problem, rng):
    """With d more on every worker, G max L and sum L both rise by G d."""
    loads, slots, sizes, must = parts(problem)
    d = rng.choice([1, 17, 10**5, 10**9]) if rng.random() < 0.7 else -min(loads)
    return StepProblem.now([a + d for a in loads], slots, sizes, must_admit=must), "=", 1


def one_more_request(problem, rng):
    """N >= S: U = S stays, so every assignment remains feasible at its cost, the new request waiting: not worse.

    Not so where N < S: U rises. Loads (1, 1), a slot on each, nobody waiting: 0; with a request of 1 it costs 1.
    Not so where the new one is forced: loads (0, 0), a slot on each, sizes 1, 1: 0; with a forced 5 it costs 4.
    Flags of the old requests change nothing, as they go on to be admitted in what is extended.
    """
    loads, slots, sizes, must = parts(problem)
    if len(sizes) < sum(slots):
        return None
    new = rng.choice([0, 1, rng.choice(sizes), rng.randint(0, 2 * max(sizes))])
    return StepProblem.now(loads, slots, [*sizes, new], must_admit=[*must, False]), ">=", 1


def one_more_slot(problem, rng):
    """S >= N: U = N stays, and a worker that may take more may as well not: every assignment remains feasible.

    Not so where S < N, as U rises: loads (0, 0), a slot on each, sizes 3, 3, 5: 0; with a second slot on one all three
    are placed, and 3 + 3 against 5 costs 1. Flags change nothing: where S >= N everybody is admitted anyway.
    """
    loads, slots, sizes, must = parts(problem)
    if sum(slots) < len(sizes):
        return None
    slots[rng.randrange(len(slots))] += rng.choice([1, 1, 3])
    return StepProblem.now(loads, slots, sizes, must_admit=must), ">=", 1


def nobody_forced(problem, rng):
    """Without `must_admit` the same assignments are feasible, and perhaps more."""
    loads, slots, sizes, must = parts(problem)
    return (StepProblem.now(loads, slots, sizes), ">=", 1) if any(must) else None


def one_empty_request(problem, rng):
    """N < S: everybody is admitted before and after; a request of size 0 changes no load and finds a free slot."""
    loads, slots, sizes, must = parts(problem)
    if len(sizes) >= sum(slots):
        return None
    return StepProblem.now(loads, slots, [*sizes, 0], must_admit=[*must, rng.random() < 0.5]), "=", 1


def one_request_fixed(problem, rng):
    """What an optimal assignment does with one request is fixed: its rest stays feasible, and no rest can be better.

    A rest together with the fixed request is an assignment of the whole: U falls by one with N and S.
    """
    loads, slots, sizes, must = parts(problem)
    result = solve(problem, "search", time_limit=LIMIT)
    if result.status != "optimal":
        return None
    i = rng.choice([i for i, g in enumerate(result.assignment.tolist()) if g >= 0])
    g = int(result.assignment[i])
    loads[g], slots[g] = loads[g] + sizes[i], slots[g] - 1
    return StepProblem.now(loads, slots, sizes[:i] + sizes[i + 1 :], must_admit=must[:i] + must[i + 1 :]), "=", 1


RELATIONS = (
    in_other_order,
    times_a_number,
    all_loads_shifted,
    one_more_request,
    one_more_slot,
    nobody_forced,
    one_empty_request,
    one_request_fixed,
)


def run(relation, first: int, count: int) -> Counter:
    """Test a relation on `count` problems that it speaks of."""
    seen: Counter = Counter()
    seed = first
    while seen["cases"] < count:
        rng = random.Random(f"{relation.__name__}/{seed}")
        seed += 1
        problem = busy(rng)
        related = relation(problem, rng)
        if related is None:
            continue
        other, sign, factor = related
        one, two = solve(problem, "search", time_limit=LIMIT), solve(other, "search", time_limit=LIMIT)
        what = (relation.__name__, seed - 1, one.summary(), two.summary(), problem.to_json(), other.to_json())
        assert one.bound <= one.objective, what
        assert two.bound <= two.objective, what
        assert two.bound <= factor * one.objective, what
        assert sign == ">=" or factor * one.bound <= two.objective, what
        seen["cases"] += 1
        seen["both proved"] += one.proved and two.proved
        seen["strictly better"] += two.objective < factor * one.bound
        seen[f"more requests than slots: {problem.num_requests > problem.num_free_slots}"] += 1
        seen["must admit"] += bool(problem.must_admit.any())
    assert seen["both proved"] > 0.75 * count  # else the test says little
    return seen


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.__name__)
def test_relations(relation):
    run(relation, 10**6, 20)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 10**5, 2 * 10**5, 3 * 10**5])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.__name__)
def test_relations_at_length(relation, first):
    """1,000 cases each."""
    print("\n", relation.__name__, first, dict(run(relation, first, 250)))
