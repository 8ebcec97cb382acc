"""Trees of placements without the search around them: one planted by hand, and a log of nothing but trees."""

from __future__ import annotations

from lbopt import StepProblem
from lbopt.kernels.search.columns import AT_ONCE
from lbopt.kernels.search.open_ranges import BRANCH
from lbopt.kernels.search.placement_tree import NEAR
from lbopt.kernels.search.state import OPEN, ROOT, Masters, Search
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.exact.decision import Closures, Decision


def plant_tree(search: Search, masters: Masters, first: int, last: int | None = None) -> None:
    """Leave one range of envelopes open, a single one without `last`, and the root in its tree of placements."""
    alone, tree = search.ranges[0], masters.tree
    alone.fill(0)
    alone.first, alone.last, alone.planted = first, first if last is None else last, 1
    alone.beyond = alone.last
    search.known.stop = AT_ONCE
    root = tree.nodes[0]
    root.fill(0)
    root.parent, root.place, root.reach, root.chosen = -1, ROOT, NEAR, -1
    tree.state.used, tree.state.range, tree.state.current, tree.state.found = 1, 0, -1, -1


def proved_by_trees(problem: StepProblem, bound: int) -> Certificate:
    """Say why no cost is below `bound`, by a search that has no prices but zero and a tree an envelope."""
    decision = Decision(problem)
    search, step = decision.start(bound), decision.step
    search.bank[0, : step.v.size] = step.floor
    known = search.known
    first, last = int(search.ranges[0].first), int(search.ranges[known.ranges - 1].last)
    known.prices, known.newest, known.ranges = 1, 1, max(0, last + 1 - first) if known.ranges else 0
    for i in range(int(known.ranges)):
        one = search.ranges[i]
        one.fill(0)
        one.first = one.last = one.beyond = first + i
        one.state = BRANCH
    while decision.advance(search, 1_000_000) == OPEN:
        pass
    log = Closures.of(decision, search, decision.known(), bound)
    assert log is not None, "few prices are needed"
    log.nodes[log.nodes[:, 3] >= 0, 2] = (
        0  # the checker looks at a tree only where the prices of its range do not suffice
    )
    return log.certificate(problem)
