"""Random small problems under conditions: the plain numbers for the naive twin, and the problem of lbopt."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.model import Conditions, StepProblem

#: Each condition by itself; "mixture" takes several of them.
KINDS = (
    "capacity",
    "allowed",
    "credit",
    "pace",
    "prefill",
    "waiting",
    "overdue first",
    "free",
    "exactly",
    "pauses",
    "packing",
    "mixture",
)

#: Parts of a mixture.
SINGLE = KINDS[: KINDS.index("packing")]

#: Cases on which something was wrong once.
RECORDED = Path(__file__).parents[1] / "regressions" / "conditions"

PLAIN = ("base", "slots", "work", "must")


def drawn(seed: object, kind: str, *, requests: int = 5, workers: int = 3, top: int | None = None) -> dict[str, Any]:
    """A case of one kind, as the naive twin reads it; the conditions of each say something."""
    rng = random.Random(f"{seed}/{kind}")
    while True:
        case = _draw(rng, kind, requests, workers, top)
        if problem_of(case).conditions is not None:
            return case


def _draw(rng: random.Random, kind: str, requests: int, workers: int, top: int | None) -> dict[str, Any]:
    G, width = rng.choice([1, *[workers - 1] * 2, *[workers] * 3]), rng.choice([1, 1, 2, 3])
    N = max(0, requests - rng.choice([0, 1, 1, 2, 2, 3, requests]))
    top = top or rng.choice([3, 12, 60])
    few = [rng.randint(0, top) for _ in range(2)]
    number = rng.choice([lambda: rng.randint(0, top), lambda: rng.choice(few)])
    case: dict[str, Any] = {
        "base": [[number() for _ in range(width)] for _ in range(G)],
        "slots": [rng.choice([0, 1, 2, 2, 3]) for _ in range(G)],
        "work": [[number() for _ in range(width)] for _ in range(N)],
        "must": [False] * N,
    }
    if rng.random() < 0.3:
        for i in rng.sample(range(N), rng.randint(0, min(N, sum(case["slots"]), 2))):
            case["must"][i] = True
    several = rng.sample(SINGLE, rng.randint(2, 6)) if kind == "mixture" else [kind]
    for one in several:
        _add(case, one, rng, top, number)
    return case


def _add(case: dict[str, Any], kind: str, rng: random.Random, top: int, number) -> None:
    G, N, width = len(case["slots"]), len(case["work"]), len(case["base"][0])
    if kind == "capacity":
        case["capacity"] = [rng.randint(0, 2 * top) for _ in range(G)]
        if rng.random() < 0.5:
            case["need"] = [number() for _ in range(N)]
    elif kind == "allowed":
        case["allowed"] = [[rng.random() < 0.6 for _ in range(G)] for _ in range(N)]
    elif kind == "credit":
        smallest = [min((w for w in row if w > 0), default=0) for row in case["work"]]
        case["credit"] = [[rng.choice([0, rng.randint(0, most), most]) for _ in range(G)] for most in smallest]
    elif kind == "pace":
        case["pace"] = [rng.randint(1, 5) for _ in range(G)]
    elif kind == "prefill":
        case["prefill_budget"] = [rng.randint(0, 2 * top) for _ in range(G)]
        if rng.random() < 0.5:
            case["prompt"] = [number() for _ in range(N)]
    elif kind in ("waiting", "overdue first"):
        case["waiting_cost"] = [rng.choice([0, rng.randint(0, 2 * top)]) for _ in range(N)]
        case["overdue_first"] = kind == "overdue first"
    elif kind == "free":
        case["admit"] = "free"
    elif kind == "exactly":
        case["admit"] = rng.randint(sum(case["must"]), min(N, sum(case["slots"])))
    elif kind == "pauses":
        where = [rng.randrange(G) for _ in range(rng.randint(0, 3))]
        case["running_worker"] = where
        case["running_work"] = [[number() for _ in range(width)] for _ in where]
        case["pause_cost"] = [rng.randint(0, top) for _ in where]
        for g, row in zip(where, case["running_work"], strict=True):
            case["base"][g] = [a + b for a, b in zip(case["base"][g], row, strict=True)]
    elif kind == "packing":  # capacity for all of them, or a little less: greedy placement often finds no way
        case["need"] = [rng.randint(1, 9) for _ in range(N)]
        case["capacity"] = [0] * G
        for need in case["need"]:
            case["capacity"][rng.randrange(G)] += need
        case["slots"] = [N] * G
        case["admit"] = N
        case["must"] = [False] * N
        if N and rng.random() < 0.5:
            g = rng.randrange(G)
            h = rng.randrange(G)
            case["capacity"][g] += 1
            case["capacity"][h] = max(0, case["capacity"][h] - 1)
    else:
        raise ValueError(kind)


def problem_of(case: dict[str, Any]) -> StepProblem:
    """The same as a problem of lbopt."""
    N, width = len(case["work"]), len(case["base"][0])
    work = np.array(case["work"], dtype=np.int64).reshape(N, width)
    conditions = Conditions(**{name: values for name, values in case.items() if name not in PLAIN})
    return StepProblem(case["base"], case["slots"], work, case["must"], conditions)


def single_step(case: dict[str, Any]) -> dict[str, Any]:
    """The same case without a window: its first column."""
    flat = dict(case)
    for name in ("base", "work", "running_work"):
        if name in flat:
            flat[name] = [row[:1] for row in flat[name]]
    if "credit" in flat:
        flat["credit"] = [
            [min(tokens, work[0]) for tokens in row] for row, work in zip(flat["credit"], flat["work"], strict=True)
        ]
    return flat


def crowded(seed: object, *, workers: int = 4, requests: int = 14) -> StepProblem:
    """A step under several conditions that bind, with a few slots a worker: too large for the naive twin."""
    rng = np.random.default_rng([7, *f"{seed}".encode()])
    sizes = rng.integers(20, 400, requests)
    base = rng.integers(1000, 1500, workers)
    slots = rng.integers(1, 4, workers)
    given: dict[str, Any] = {
        "allowed": rng.random((requests, workers)) < 0.7,
        "need": rng.integers(5, 60, requests),
        "capacity": rng.integers(40, 150, workers),
    }
    if rng.random() < 0.5:
        given["pace"] = rng.integers(4, 6, workers)
    if rng.random() < 0.5:
        given["waiting_cost"] = rng.integers(0, 300, requests)
        given["admit"] = rng.choice(["free", "most"])
    if rng.random() < 0.4:
        where = rng.integers(0, workers, 3)
        given["running_worker"], given["running_work"] = where, rng.integers(10, 300, 3)
        given["pause_cost"] = rng.integers(0, 200, 3)
    return StepProblem.now(base, slots, sizes).under(Conditions(**given))


def recorded(name: str) -> tuple[StepProblem, tuple[int, ...]]:
    """A case of `RECORDED` as a problem, and its best rank, from enumeration."""
    data = json.loads((RECORDED / f"{name}.json").read_text())
    return problem_of(data["case"]), tuple(data["rank"])
