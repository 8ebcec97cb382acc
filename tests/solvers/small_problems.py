"""Random small step problems and a naive enumeration of them; imports nothing of lbopt but the problem itself."""

import random
from itertools import product

import numpy as np
from hypothesis import strategies as st

from lbopt.model import StepProblem


def random_problem(
    rng: random.Random, top: int = 100, *, requests: int = 6, workers: int = 3, slots: int = 3
) -> StepProblem:
    """Sizes to `top`; ties, equal workers, closed workers, must_admit, N below and above the slots, H = 0 and H > 0."""
    G, N, width = rng.randint(1, workers), rng.randint(0, requests), rng.choice([1, 1, 2, 3])
    free = [rng.randint(0, slots) for _ in range(G)]
    few = [rng.randint(0, top) for _ in range(3)]
    draw = {
        "few": lambda: rng.choice(few),
        "any": lambda: rng.randint(0, top),
        "alike": lambda: top - rng.randint(0, min(top, 50)),
    }[rng.choice(["few", "any", "alike"])]
    base = [[draw() for _ in range(width)] for _ in range(G)]
    if G > 1 and rng.random() < 0.4:
        base[1], free[1] = list(base[0]), free[0]
    work = np.array([[draw() for _ in range(width)] for _ in range(N)], dtype=np.int64).reshape(N, width)
    must = [False] * N
    if rng.random() < 0.4:
        for i in rng.sample(range(N), rng.randint(0, min(N, sum(free)))):
            must[i] = True
    return StepProblem(base=base, slots=free, work=work, must_admit=must)


@st.composite
def step_problems(draw, top: int = 60) -> StepProblem:
    return random_problem(random.Random(draw(st.integers(0, 2**32 - 1))), draw(st.sampled_from([1, 5, top])))


def enumerate_all(problem: StepProblem):
    """Yield (objective, sorted loads, assignment) of every feasible assignment, one tuple of workers after another."""
    base, slots, work = problem.base.tolist(), problem.slots.tolist(), problem.work.tolist()
    must = problem.must_admit.tolist()
    admitted = min(len(work), sum(slots))
    for choice in product(range(-1, len(slots)), repeat=len(work)):
        if sum(g >= 0 for g in choice) != admitted:
            continue
        if any(choice.count(g) > slots[g] for g in range(len(slots))):
            continue
        if any(flag and g < 0 for flag, g in zip(must, choice, strict=True)):
            continue
        loads = [list(row) for row in base]
        for i, g in enumerate(choice):
            if g >= 0:
                loads[g] = [a + b for a, b in zip(loads[g], work[i], strict=True)]
        value = sum(max(column) - load for column in zip(*loads, strict=True) for load in column)
        yield value, sorted((load for row in loads for load in row), reverse=True), choice


def naive_optimum(problem: StepProblem):
    """Return the least objective and the leximax sorted loads among optima."""
    return min((value, loads) for value, loads, _ in enumerate_all(problem))
