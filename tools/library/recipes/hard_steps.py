"""The steps of busy fleets that the exact search found hardest: most steps of a fleet are proved in a millisecond.

``python -m tools.library.hardest_steps`` walks through the steps of a fleet and names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

from lbopt.instances.families import generate
from lbopt.instances.library import Origin
from lbopt.model import StepProblem
from tools.library.archive import Draft
from tools.library.recipes.steady import RECORDS, RECORDS_SEED, WARM_UP
from tools.steady import SteadyFleet


@dataclass(frozen=True, slots=True)
class Walk:
    """A fleet whose steps are looked at: shape of the pool, family, G, B, R, seed."""

    shape: str
    family: str
    workers: int
    slots: int
    pool: int
    seed: int

    def problems(self) -> Iterator[StepProblem]:
        """Yield the step problems after the warm-up, one step after the other, those without a free slot included."""
        records = generate(self.family, RECORDS, RECORDS_SEED)
        fleet = SteadyFleet(
            records, workers=self.workers, slots=self.slots, pool=self.pool, shape=self.shape, seed=self.seed
        )
        for _ in range(WARM_UP):
            fleet.advance()
        while True:
            fleet.advance()
            yield fleet.problem()


WALKS = (
    Walk("rich", "burstgpt-like", 8, 72, 512, 20_270_601),
    Walk("rich", "burstgpt-like", 16, 72, 512, 99),
    Walk("rich", "azure-like", 16, 72, 512, 20_270_603),
    Walk("rich", "burstgpt-like", 32, 72, 512, 20_270_604),
    Walk("rich", "azure-like", 32, 24, 256, 20_270_605),
    Walk("rich", "burstgpt-like", 64, 72, 512, 20_270_606),
    Walk("rich", "azure-like", 64, 72, 512, 20_270_607),
    Walk("rich", "burstgpt-like", 144, 72, 512, 20_270_608),
)

#: For each walk, the number of its hardest step, counted from 0.
STEPS: tuple[int, ...] = (21, 13, 290, 45, 38, 153, 44, 169)


def _draft(name: str, walk: Walk, step: int) -> Draft:
    problem = next(problem for number, problem in enumerate(walk.problems()) if number == step)
    return Draft(
        name=name,
        kind="hard",
        explanation=f"The step of {walk.workers} busy workers that took the exact search longest, of many in a row.",
        origin=Origin(
            recipe="hard_steps",
            source=f"SteadyFleet over {RECORDS:,} records of the family {walk.family}",
            seed=walk.seed,
            slots_per_worker=walk.slots,
            parameters={**asdict(walk), "records_seed": RECORDS_SEED, "warm_up": WARM_UP, "step": step},
        ),
        problem=problem,
    )


def _name(walk: Walk) -> str:
    return f"hard-step-{walk.family.removesuffix('-like')}-g{walk.workers}-b{walk.slots}-r{walk.pool}"


RECIPES: dict[str, Callable[[], Draft]] = {
    _name(walk): partial(_draft, _name(walk), walk, step) for walk, step in zip(WALKS, STEPS, strict=True)
}
