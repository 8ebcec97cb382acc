"""Random steps of the size that fleets have: 4 to 64 workers, 10 to 400 requests, too many for an enumeration.

Lengths are those of traces (as the families that come with lbopt have them, or by quantiles of the published file) and
of made families whose sums collide, lie apart, or come in one parity.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from lbopt.instances import generate
from lbopt.model import StepProblem

#: Prompts and outputs of published traces, tokens: the quantiles 0, 1/16, ..., 1.
_QUANTILES = {
    "azure-code": (
        (3, 90, 185, 348, 578, 825, 1016, 1196, 1469, 1734, 2048, 2371, 2745, 3330, 4434, 6499, 7437),
        (6, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 19, 24, 31, 46, 77, 1899),
    ),
    "mooncake": (
        (891, 905, 1090, 1538, 2307, 3542, 4596, 5627, 6909, 8520, 10328, 12590, 15366, 18588, 24392, 34175, 126195),
        (1, 13, 32, 87, 157, 223, 275, 315, 350, 381, 410, 442, 472, 513, 566, 664, 2000),
    ),
    "arxiv": (
        (58, 1607, 2324, 2898, 3418, 3833, 4214, 4565, 4948, 5306, 5651, 6019, 6409, 6824, 7238, 7700, 8190),
        (8, 79, 100, 118, 132, 146, 160, 174, 190, 206, 225, 248, 274, 308, 370, 962, 10944),
    ),
}

_LIKE = ("azure-like", "burstgpt-like")

TRACES = (*_LIKE, *_QUANTILES)
MADE = ("heavy-tailed", "narrow", "repeated", "even-only", "uniform")

#: Loads: of requests that run; around one level; some workers far above the others; all alike.
LOADS = ("running", "running", "running", "level", "level", "apart", "alike")

_MOST_TOKENS = 200_000

#: One request: prompt and output, tokens.
Lengths = Callable[[], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class MidStep:
    """A step as plain lists, and what it was drawn from."""

    family: str
    kind: str  # of the loads
    loads: list[int]
    slots: list[int]
    sizes: list[int]

    @property
    def problem(self) -> StepProblem:
        """The step problem."""
        return StepProblem.now(self.loads, self.slots, self.sizes)

    @property
    def all_admitted(self) -> bool:
        """Whether no request has to wait."""
        return len(self.sizes) <= sum(self.slots)


def mid_step(seed: str, *, workers: tuple[int, int] = (4, 64), requests: tuple[int, int] = (10, 400)) -> MidStep:
    """The step of a seed.

    Parameters
    ----------
    seed
        Any text.
    workers, requests
        Fewest and most of each.
    """
    rng = random.Random(seed)
    family = rng.choice(TRACES if rng.random() < 0.5 else MADE)
    G = round(_between(rng, *workers))
    most = rng.randint(1, 9)
    slots = [rng.randint(rng.randint(0, 1), most) for _ in range(G)]
    slots[rng.randrange(G)] += 1  # one at least is free
    N = min(max(round(_between(rng, 0.1, 4) * sum(slots)), requests[0]), requests[1])
    lengths = _lengths(rng, family)
    kind = rng.choice(LOADS)
    return MidStep(family, kind, _loads(rng, kind, slots, lengths), slots, sorted(lengths()[0] for _ in range(N)))


def _between(rng: random.Random, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _lengths(rng: random.Random, family: str) -> Lengths:
    if family in _LIKE:
        return lambda: rng.choice(_drawn(family))
    if family in _QUANTILES:
        prompts, outputs = _QUANTILES[family]
        return lambda: (_quantile(prompts, rng.random()), _quantile(outputs, rng.random()))
    top = rng.choice([10, 100, 1_000, 10_000])
    few = [rng.randint(1, top) for _ in range(rng.randint(2, 5))]
    sizes = {
        "heavy-tailed": lambda: min(_MOST_TOKENS, int(8 * rng.random() ** (-1 / 0.8))),
        "narrow": lambda: top + rng.randint(0, 20),
        "repeated": lambda: rng.choice(few),
        "even-only": lambda: 2 * rng.randint(1, top),
        "uniform": lambda: rng.randint(1, top),
    }[family]
    return lambda: (sizes(), rng.randint(0, top) // 2 * 2)


@cache
def _drawn(family: str) -> list[tuple[int, int]]:
    trace = generate(family, 5_000, 1)
    return list(zip(trace.prompt.tolist(), trace.output.tolist(), strict=True))


def _quantile(table: tuple[int, ...], level: float) -> int:
    below = int(level * (len(table) - 1))
    return table[below] + int((table[below + 1] - table[below]) * (level * (len(table) - 1) - below))


def _loads(rng: random.Random, kind: str, slots: list[int], lengths: Lengths) -> list[int]:
    mean = sum(lengths()[0] for _ in range(20)) // 20
    level = mean * rng.randint(0, 60) // 2 * 2
    if kind == "running":
        batch = max(slots) + rng.randint(2, 72)
        return [sum(_held(rng, lengths) for _ in range(batch - free)) for free in slots]
    if kind == "alike":
        return [level] * len(slots)
    spread = max(2, int(mean * max(slots) * rng.random()))
    loads = [level + rng.randrange(0, spread, 2) for _ in slots]
    if kind == "apart":
        for g in rng.sample(range(len(slots)), rng.randint(1, len(slots) // 2)):
            loads[g] += spread * rng.randint(1, 4)
    return loads


def _held(rng: random.Random, lengths: Lengths) -> int:
    """Tokens of a request that runs: its prompt, and an even share of its output, so that a parity stays one."""
    prompt, output = lengths()
    return prompt + rng.randint(0, output) // 2 * 2
