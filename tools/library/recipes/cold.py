"""Cold starts: an empty fleet meets a full queue, either just as many requests as slots or more of them.

With exactly G * B requests every request is admitted and the problem is to make the loads equal; with more, the choice
of the admitted ones comes back. Requests are drawn from a packaged family.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lbopt.instances.families import generate
from lbopt.instances.library import Origin
from lbopt.model import StepProblem
from tools.library.archive import Draft

FIRST_SEED = 20_270_301

#: Family, G, B, N, H. The place in the list gives the seed: only append.
ROWS: tuple[tuple[str, int, int, int, int], ...] = (
    ("burstgpt-like", 4, 24, 96, 0),
    ("burstgpt-like", 8, 72, 576, 0),
    ("burstgpt-like", 32, 24, 768, 0),
    ("azure-like", 16, 72, 1152, 0),
    ("azure-like", 64, 24, 1536, 0),
    ("burstgpt-like", 144, 72, 10368, 0),
    ("burstgpt-like", 4, 24, 200, 0),
    ("azure-like", 8, 24, 512, 0),
    ("burstgpt-like", 16, 72, 2000, 0),
    ("azure-like", 32, 24, 1024, 0),
    ("burstgpt-like", 4, 24, 96, 20),
    ("azure-like", 4, 24, 200, 20),
)


def _draft(name: str, row: tuple[str, int, int, int, int], seed: int) -> Draft:
    family, workers, slots, count, horizon = row
    sizes = generate(family, count, seed).prompt
    nothing = np.zeros(workers, dtype=np.int64)
    problem = StepProblem.survives(nothing, np.full(workers, slots), sizes, horizon, growth=1)
    more = "as many requests as slots" if count == workers * slots else f"{count - workers * slots} requests too many"
    return Draft(
        name=name,
        kind="cold",
        explanation=f"{workers} empty workers of {slots} slots and {more}.",
        origin=Origin(
            recipe="cold",
            source=f"prompts of the family {family}",
            seed=seed,
            slots_per_worker=slots,
            parameters={"family": family, "count": count, "horizon": horizon},
        ),
        problem=problem,
    )


def _name(row: tuple[str, int, int, int, int]) -> str:
    family, workers, slots, count, horizon = row
    fit = "exact" if count == workers * slots else "over"
    return f"cold-{fit}-{family.removesuffix('-like')}-g{workers}-b{slots}-n{count}-h{horizon}"


RECIPES: dict[str, Callable[[], Draft]] = {
    _name(row): partial(_draft, _name(row), row, FIRST_SEED + place) for place, row in enumerate(ROWS)
}
