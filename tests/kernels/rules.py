"""Compiled rules beside their naive twins, and random observations for both."""

import random
from typing import Any

import numba
import numpy as np
from naive.engine_rules import ENGINE_RULES, Seen

from lbopt.policies import Observation

COMPILED = not numba.config.DISABLE_JIT

#: (lbopt's spec, the twin's name, the twin's options) of every rule without parameters of its own, pooled.
POOLED: list[tuple[str, str, dict[str, Any]]] = [
    ("fcfs", "fcfs", {}),
    ("round-robin:admission=pooled", "round_robin", {}),
    ("random:admission=pooled", "random", {}),
    ("power-of-two:admission=pooled", "power_of_two", {}),
    ("jsq:admission=pooled", "jsq", {}),
    ("jsq-load", "jsq_load", {}),
    ("vllm:version=2025,admission=pooled", "vllm", {}),
    ("max-min", "max_min", {"scope": "oldest"}),
    ("max-min:scope=pool", "max_min", {"scope": "pool"}),
    ("auto", "auto", {}),
    ("auto:age_weight=0,age_bound=3", "auto", {"age_weight": 0.0, "age_bound": 3}),
    ("iqr", "iqr", {}),
    ("iqr:multiplier=0.25,percentile=weibull", "iqr", {"multiplier": "0.25", "percentile": "weibull"}),
]
#: Immediate rules that go by one number of each worker, and never hold a request back.
BY_SIGNAL: list[tuple[str, str, dict[str, Any]]] = [
    (f"{spec}admission=immediate", name, {})
    for spec, name in (
        ("round-robin:", "round_robin"),
        ("random:", "random"),
        ("power-of-two:", "power_of_two"),
        ("jsq:", "jsq"),
        ("jsq-load:", "jsq_load"),
        ("vllm:version=2025,", "vllm"),
    )
]
IMMEDIATE: list[tuple[str, str, dict[str, Any]]] = [
    *BY_SIGNAL,
    ("iqr:admission=immediate", "iqr", {}),
    ("br-0-bypass", "br_0_bypass", {}),
    ("br-0-bypass:overbooking=0", "br_0_bypass", {"overbooking": 0}),
    ("br-0-bypass:overbooking=none,ties=index", "br_0_bypass", {"overbooking": None, "ties": "index"}),
]
#: (lbopt's spec, the twin's name) of the rules of serving engines that bind on arrival by a score.
ENGINE = [
    ("vllm", "vllm_2026"),
    *((name.replace("_", "-"), name) for name in ENGINE_RULES if name != "vllm_2026"),
]


def many(compiled: int, plain: int) -> int:
    """So many random cases with compiled kernels, so many under NUMBA_DISABLE_JIT=1."""
    return compiled if COMPILED else plain


def random_br_0(rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """BR-0 with any value of every field, as lbopt's spec and as the twin's options."""
    switch, window = rng.choice([0, 1, 2, 3, 5, 7, 12, 99]), rng.randint(1, 8)
    order, key = rng.choice(["size", "arrival"]), rng.choice(["lexicographic", "product"])
    age = rng.choice([None, None, 0, 1, 3, 6])
    spec = f"br-0:stage_switch={switch},window={window},window_order={order},key={key},age_bound={str(age).lower()}"
    options = {
        "stage_switch": switch,
        "window_size": window,
        "window_order": "s_desc" if order == "size" else "arrival",
        "key": key,
        "age_bound": age,
    }
    return spec, "br_0", options


def random_auto(rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """auto with any value of every field, as lbopt's spec and as the twin's options."""
    weight, age = rng.choice([0, 1, 50, 300, 1000, 12_345]), rng.choice([None, None, 0, 1, 3, 6])
    spec = f"auto:age_weight={weight / 1000},age_bound={str(age).lower()}"
    return spec, "auto", {"age_weight": weight / 1000, "age_bound": age}


def random_bypass(rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """br-0-bypass with any value of every field, as lbopt's spec and as the twin's options."""
    overbooking, ties = rng.choice([0, 1, 2, 3, 8, None]), rng.choice(["load", "index"])
    spec = f"br-0-bypass:overbooking={str(overbooking).lower()},ties={ties}"
    return spec, "br_0_bypass", {"overbooking": overbooking, "ties": ties}


def random_iqr(rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """The spec of iqr with any value of every field but the admission, and the twin's options."""
    multiplier = rng.choice(["0", "0.001", "0.25", "0.333", "1", "1.5", "2.125", "7", "1000"])
    percentile = rng.choice(["linear", "lower", "higher", "nearest", "weibull"])
    spec = f"iqr:multiplier={multiplier},percentile={percentile}"
    return spec, "iqr", {"multiplier": multiplier, "percentile": percentile}


def random_observation(rng: random.Random, workers: tuple[int, ...] = (1, 2, 2, 3, 4, 6, 9)) -> Observation:
    """Ties and none, zero sizes, closed workers, more and fewer requests than slots, a single worker."""
    G = rng.choice(workers)
    n = rng.choice([0, 1, 2, 3, 5, 8, 13])
    top = rng.choice([0, 1, 3, 20, 1000, 10**9])
    few = [rng.randint(0, top) for _ in range(3)]
    draw = rng.choice([lambda: rng.randint(0, top), lambda: rng.choice(few)])
    resident = rng.choice([0, 1, 4]) * top
    slots = rng.choice([0, 1, 2, 5])
    return Observation(
        step=rng.randint(0, 50),
        clock=0.0,
        loads=[rng.randint(0, resident) if rng.random() < 0.7 else rng.choice(few) for _ in range(G)],
        free_slots=[rng.randint(0, slots) for _ in range(G)],
        running=[rng.randint(0, 4) for _ in range(G)],
        queued=[0] * G,
        queued_tokens=[0] * G,
        sizes=[draw() for _ in range(n)],
        waited=sorted((rng.randint(0, 8) for _ in range(n)), reverse=True),  # order of revelation is order of age
        requests=np.arange(n),
    )


def random_seen(rng: random.Random) -> tuple[list[Seen], int | None]:
    """Workers as a front end sees them, ties and none, and the KV capacity, if any, which loads may exceed."""
    G = rng.choice([1, 2, 3, 5, 8])
    top = rng.choice([0, 1, 3, 40, 1000, 10**6])
    few = [rng.randint(0, top) for _ in range(2)]
    most = rng.choice([0, 1, 2, 6])

    def tokens() -> int:
        return rng.choice(few) if rng.random() < 0.5 else rng.randint(0, top)

    def worker() -> Seen:
        queued = rng.choice([0, 0, rng.randint(0, most)])
        own = [tokens() for _ in range(rng.randint(0, most))]
        return Seen(tokens(), rng.randint(0, most), queued, tokens() if queued else 0, own)

    return [worker() for _ in range(G)], rng.choice([None, 1 + rng.randint(0, 2 * top)])
