"""Steps of a fleet that has been busy for long, its requests drawn from a packaged family.

Workers, slots, pool, its shape, the family and the window cover each other pairwise where it matters rather than in
full. Rich pools are fresh samples (their optima are small and hard to prove), leftover pools are what no worker has
wanted for long (large optima, easily proved): see `tools.steady`. Of many steps in a row the one with most
free slots is kept: in most steps few slots are free and nothing is hard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lbopt.instances.families import generate
from lbopt.instances.library import Origin
from tools.library.archive import Draft
from tools.steady import SteadyFleet

#: Records of a family that a fleet draws from, with replacement.
RECORDS, RECORDS_SEED = 8_000, 1

#: Steps before the first that may be kept, and how many may be.
WARM_UP, STEPS = 3_000, 200

FIRST_SEED = 20_270_101

#: Shape of the pool, family, G, B, R (waiting requests), H. The place in the list gives the seed: only append.
ROWS: tuple[tuple[str, str, int, int, int, int], ...] = (
    *(("rich", "burstgpt-like", G, 72, 512, 0) for G in (4, 8, 16, 32, 64, 144)),
    *(("rich", "azure-like", G, 72, 512, 0) for G in (8, 32, 144)),
    *(("leftover", "burstgpt-like", G, 72, 512, 0) for G in (4, 16, 32, 144)),
    *(("leftover", "azure-like", G, 72, 512, 0) for G in (8, 64)),
    *(("rich", "burstgpt-like", G, 72, 256, 0) for G in (8, 32, 144)),
    *(("rich", "azure-like", G, 72, 256, 0) for G in (16,)),
    *(("rich", "burstgpt-like", G, 72, 4 * G, 0) for G in (4, 16, 64, 144)),
    *(("leftover", "azure-like", G, 72, 4 * G, 0) for G in (32,)),
    *(("rich", "burstgpt-like", G, 24, 512, 0) for G in (8, 32, 144)),
    *(("rich", "azure-like", G, 24, 256, 0) for G in (64,)),
    *(("leftover", "burstgpt-like", G, 24, 512, 0) for G in (16,)),
    *(("rich", "burstgpt-like", G, 72, 512, 20) for G in (4, 16, 64, 144)),
    *(("rich", "azure-like", G, 72, 256, 20) for G in (8,)),
    *(("leftover", "burstgpt-like", G, 24, 4 * G, 20) for G in (16,)),
    *(("rich", "burstgpt-like", G, 72, 512, 80) for G in (4, 16, 144)),
    *(("rich", "azure-like", G, 24, 4 * G, 80) for G in (32,)),
    *(("leftover", "azure-like", G, 72, 256, 80) for G in (4,)),
)


def _draft(name: str, row: tuple[str, str, int, int, int, int], seed: int) -> Draft:
    shape, family, workers, slots, pool, horizon = row
    records = generate(family, RECORDS, RECORDS_SEED)
    fleet = SteadyFleet(records, workers=workers, slots=slots, pool=pool, shape=shape, seed=seed)
    for _ in range(WARM_UP):
        fleet.advance()
    most = -1
    for _ in range(STEPS):
        fleet.advance()
        if (free := int(fleet.free_slots.sum())) > most:
            most, problem = free, fleet.problem(horizon)
    window = f", and the window of {horizon} more steps" if horizon else ""
    return Draft(
        name=name,
        kind="steady",
        explanation=f"{workers} busy workers of {slots} slots, {pool} requests of a {shape} pool wait{window}.",
        origin=Origin(
            recipe="steady",
            source=f"SteadyFleet over {RECORDS:,} records of the family {family}",
            seed=seed,
            slots_per_worker=slots,
            parameters={
                "family": family,
                "records": RECORDS,
                "records_seed": RECORDS_SEED,
                "shape": shape,
                "pool": pool,
                "horizon": horizon,
                "warm_up": WARM_UP,
                "steps": STEPS,
            },
        ),
        problem=problem,
    )


def _name(row: tuple[str, str, int, int, int, int]) -> str:
    shape, family, workers, slots, pool, horizon = row
    return f"steady-{shape}-{family.removesuffix('-like')}-g{workers}-b{slots}-r{pool}-h{horizon}"


RECIPES: dict[str, Callable[[], Draft]] = {
    _name(row): partial(_draft, _name(row), row, FIRST_SEED + place) for place, row in enumerate(ROWS)
}
