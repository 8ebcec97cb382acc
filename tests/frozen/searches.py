"""What searches of middle-sized problems know after a fixed amount of work.

A change in the search that still finds the optimum shows here: which ranges are open and what bounds them, the prices
and patterns found, the basis of the master program, the nodes of a tree. All of
it is integers, and equal whether kernels are compiled or not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from frozen.digests import digest_of
from planted import plant_tree

from lbopt import StepProblem
from lbopt.kernels.search.open_ranges import BRANCH, MASTER
from lbopt.kernels.search.state import IDLE, OPEN, Masters, Search, Step
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.workspace import what_is_known

#: What is kept openly, of `KNOWN`.
COUNTERS = ("cost", "ranges", "prices", "work", "bound", "warm", "patience", "stop")

#: Looks at the search of one envelope.
LOOKS = 4


class Case(NamedTuple):
    """A problem, and how far its search goes.

    Parameters
    ----------
    workers, slots, requests, top
        Workers; numbers of free slots of which each has one; requests; the largest size and load, tokens.
    forced
        Requests that must be admitted.
    kinds
        Distinct sizes; 0 where any may occur.
    slices, work
        Looks at the search, and work between two of them.
    stages
        States and levels, as in `open_ranges`, from which the envelope that is next is then searched alone.
    seed
        Of the draws, if it is not the name.
    """

    workers: int
    slots: tuple[int, ...]
    requests: int
    top: int
    forced: int = 0
    kinds: int = 0
    slices: int = 4
    work: int = 500
    stages: tuple[tuple[int, int], ...] = ((MASTER, 0), (BRANCH, 0))
    seed: str = ""


CASES = {
    "pairs": Case(7, (1, 2), 20, 400, slices=6, work=800),
    "more pairs": Case(8, (1, 2), 30, 1000),
    "up to three": Case(5, (1, 2, 3), 12, 300, slices=8, work=700),
    "threes": Case(6, (2, 3), 24, 1000),
    "fours": Case(5, (3, 4), 24, 600),
    "up to four": Case(5, (2, 3, 4), 15, 300, slices=5, work=500),
    "fives": Case(4, (5,), 22, 300),
    "sixes": Case(3, (5, 6), 24, 200),
    "eights": Case(3, (7, 8), 24, 60),
    "tight": Case(6, (1, 2, 3), 14, 50_000, work=300, stages=()),
    "sparse": Case(5, (1, 2), 12, 1_000_000),
    "forced": Case(6, (1, 2, 3), 24, 1000, forced=6),
    "forced and few": Case(6, (1, 2, 3), 15, 300, forced=4, slices=6),
    "few sizes": Case(8, (2, 3), 40, 1000, kinds=6),
    "few small sizes": Case(6, (1, 2, 3), 18, 300, kinds=7, slices=6),
    # small ones in whose trees something happens: an assignment is found, many classes are tried
    "whole 1": Case(6, (1, 2, 3), 17, 60, work=300, stages=((BRANCH, 0),), seed="0.199974"),
    "whole 2": Case(4, (3, 4), 21, 60, work=300, stages=((BRANCH, 0),), seed="0.927998"),
    "whole 3": Case(4, (3, 4), 20, 300, slices=2, work=300, stages=((BRANCH, 0),), seed="0.871997"),
    "tried 1": Case(5, (3, 4), 23, 60, work=300, stages=((BRANCH, 0),), seed="0.640355"),
    "tried 2": Case(6, (1, 2, 3), 14, 60, work=300, stages=((BRANCH, 0),), seed="0.126367"),
    "tried 3": Case(6, (1, 1, 2), 12, 60, slices=2, work=300, stages=((BRANCH, 0),), seed="0.055343"),
    "empty slots": Case(3, (1, 2, 3), 5, 20_000, work=300, seed="0.975199"),
    "more empty slots": Case(5, (2, 3), 9, 20_000, forced=2, slices=2, work=300, seed="0.782474"),
    "hardly any": Case(4, (1, 2), 5, 300, slices=2, work=300, seed="0.253224"),
    # workers that take nothing
    "nothing taken 1": Case(6, (1, 2), 5, 100, slices=2, work=300, stages=((MASTER, 0), (BRANCH, 0)), seed="e4"),
    "nothing taken 2": Case(8, (1, 1, 2), 6, 1000, work=300, stages=((MASTER, 0), (BRANCH, 0)), seed="e6"),
    "nothing taken 3": Case(4, (2, 3), 6, 1000, work=300, stages=((MASTER, 0), (BRANCH, 0)), seed="e7"),
    "sevens": Case(2, (7, 8), 17, 300, forced=1, slices=2, work=100, stages=((BRANCH, 0),), seed="0.591409"),
    "more sevens": Case(2, (7,), 21, 1000, slices=2, work=100, stages=((BRANCH, 0),), seed="0.962383"),
    "just enough": Case(
        4,
        (3, 4),
        20,
        60,
        forced=1,
        slices=2,
        work=300,
        stages=((MASTER, 0), (BRANCH, 0)),
        seed="0.767951",
    ),
}


def problem_of(name: str, case: Case) -> StepProblem:
    """Return the problem of a case: always the same one for a name."""
    rng = random.Random(f"frozen search {case.seed or name}")
    free = [rng.choice(case.slots) for _ in range(case.workers)]
    loads = [rng.randrange(case.top) for _ in range(case.workers)]
    sizes = [1 + rng.randrange(case.top) for _ in range(case.kinds or case.requests)]
    if case.kinds:
        sizes = [rng.choice(sizes) for _ in range(case.requests)]
    must = [i < case.forced for i in range(case.requests)]
    return StepProblem.now(loads, free, sizes, must_admit=must)


def _numbers(array: Any) -> Any:
    if isinstance(array, list):
        return [_numbers(part) for part in array]
    return np.asarray(array).tolist()


def _state(step: Step, search: Search, masters: Masters) -> dict[str, Any]:
    """Return what a search knows: its counters openly, its arrays as digests."""
    known = what_is_known(search)
    master, tree, pricing = masters.whole, masters.tree, search.pricing
    counts = master.counts
    kept, K = min(known.prices, search.bank.shape[0]), step.v.size
    columns, tight = (counts.columns, counts.tight) if known.warm else (0, 0)
    parts = {
        "open ranges": search.ranges[: known.ranges],
        "kept prices": [search.bank_at[:kept], search.bank[:kept, :K]],
        "answer": [row[:c] for row, c in zip(search.answer, step.slots.tolist(), strict=False)],
        "pricing": pricing,
        "master": [
            master.owner[:columns],
            master.items[:columns, : int(step.slots[-1])],
            master.basic[:tight],
            master.row[:tight],
        ],
        "pivots": counts.pivots if known.warm else 0,
        "tree": [tree.state, tree.nodes[: tree.state.used]],
    }
    counters = {name: getattr(known, name) for name in COUNTERS}
    return counters | {name: digest_of(_numbers(part)).split()[0] for name, part in parts.items()}


def _cleared(search: Search) -> None:
    """Set to zero what searches before have left and a new one does not look at: it would be part of the digests."""
    search.answer[:] = 0
    search.pricing.fill(0)


def _two_prices(step: Step, search: Search, envelope: int) -> None:
    """Keep prices that were found, and prices of nothing after them, both as if they were found at this envelope."""
    kept, K = search.known.prices, step.v.size
    search.bank[0, :K] = search.bank[min(kept, search.bank.shape[0]) - 1, :K] if kept else step.floor
    search.bank[1, :K] = step.floor
    search.bank_at[:2] = envelope
    search.known.prices = search.known.newest = 2


def states(name: str) -> Iterator[dict[str, Any]]:
    """Yield what the search of a case knows at each look."""
    case = CASES[name]
    decision = Decision(problem_of(name, case))
    search = decision.start(decision.first_assignment()[1])
    step, masters = decision.step, decision.masters
    _cleared(search)
    ending = decision.advance(search, 0)
    for _ in range(case.slices):
        if ending != OPEN:
            break
        ending = decision.advance(search, case.work)
        yield {"ending": ending} | _state(step, search, masters)
    if search.known.ranges == 0:
        return
    nearest = int(np.argmin(search.ranges.bound[: search.known.ranges]))
    envelope = int(search.ranges.first[nearest])
    for stage in case.stages:
        plant_tree(search, masters, envelope)
        _two_prices(step, search, envelope)
        alone, known = search.ranges[0], search.known
        alone.state, alone.level = stage
        alone.planted, alone.priced = 0, known.prices
        # from no good assignment, so that there is something to look for
        known.ranges, known.cost, known.bound = 1, 1 << 40, 0
        masters.tree.state.left = masters.tree.state.used = 0
        search.pricing.phase = IDLE
        for _ in range(LOOKS):
            ending = decision.advance(search, case.work // 2)
            yield {"ending": ending} | _state(step, search, masters)
            if ending != OPEN:
                break
