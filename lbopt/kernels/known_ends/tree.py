"""Branch and bound on chain counts: how many requests of classes j, j + 1, ... a worker takes.

Visiting a node solves its program, rounds the dual values and evaluates them exactly. A solution that is whole is an
assignment; otherwise the node is split where the solution is undecided and the two halves differ most. The search
plunges into one child and comes back to the open node of least bound.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.known_ends.bounds import exact_bound
from lbopt.kernels.known_ends.branching import (
    choose_branch,
    enter,
    push,
    read_whole,
    split_anyhow,
    take_node,
    take_settled,
)
from lbopt.kernels.known_ends.dictionary import DEAR, IMPOSSIBLE, SOLVED, objective_value, run, settle_values
from lbopt.kernels.known_ends.placing import offer
from lbopt.kernels.known_ends.relaxation import (
    add_broken_rows,
    begin_program,
    drop_loose_rows,
    round_prices,
    set_bounds,
)
from lbopt.kernels.known_ends.state import DONE, INFINITY, OPEN, STUCK, Search, Window

#: Pivots at one node, beyond which its prices are taken as they are.
_PIVOTS = 20_000

#: Outcomes of a visit.
REFUTED, BRANCHED, SETTLED = range(3)


@kernel
def begin_node(window: Window, search: Search) -> None:
    """Give the program the bounds of the box."""
    progress, program = search.progress, search.program
    drop_loose_rows(progress, program)
    set_bounds(window, progress, program, search.box)
    settle_values(progress, program)
    cutoff = (progress.cost - window.constant) / program.numbers.unit
    # the objective from which on a node is not worth solving further
    program.numbers.dear = cutoff + 1e-9 * abs(cutoff) + 0.5 / program.numbers.unit
    progress.node_pivots = progress.fresh = 0


@kernel
def solve_node(window: Window, search: Search, end: int) -> tuple[bool, int]:
    """Go on with the program of the box until the work is at `end`; return whether it is done, and the bound it proves.

    The values of the program are its solution where the bound is below the best cost. Where the exact bound falls short
    of the program's objective, the dictionary has gathered errors of rounding, and is made anew.
    """
    progress, program, prices, box = search.progress, search.program, search.prices, search.box
    cost = progress.cost
    while True:
        ended, line, sign, missing = run(progress, program, end)
        objective = objective_value(program)
        if ended == IMPOSSIBLE:
            needed = program.numbers.dear - objective
            round_prices(window, program, line, sign * 2.0 * max(1.0, needed) / missing, prices)
            bound = exact_bound(window, prices, box)
            if bound >= cost or progress.fresh == 1:
                return True, bound
            _renew(window, search)
        elif (
            ended == DEAR
            or progress.node_pivots > _PIVOTS
            or (ended == SOLVED and add_broken_rows(window, progress, program, end) == 0)
        ):
            round_prices(window, program, -1, 0.0, prices)
            bound = exact_bound(window, prices, box)
            if bound >= cost:
                return True, bound
            promised = window.constant + objective * program.numbers.unit
            if bound < promised - 1.0 - 1e-7 * abs(promised) and progress.fresh == 0:
                _renew(window, search)
            elif ended == DEAR:
                program.numbers.dear = objective + 10.0 / program.numbers.unit + 1e-6 * abs(objective)
            else:
                return True, bound
        if progress.work >= end or out_of_time(progress):
            return False, -INFINITY


@kernel
def _renew(window: Window, search: Search) -> None:
    """Begin the program anew, once for a node."""
    begin_program(window, search.progress, search.program)
    begin_node(window, search)
    search.progress.fresh = 1


@kernel
def conclude(window: Window, search: Search, bound: int) -> tuple[int, int]:
    """Say what comes of a node whose program gave `bound`, and which bound it has; a better assignment is kept."""
    progress, program, box, branch = search.progress, search.program, search.box, search.branch
    if bound >= progress.cost:
        return REFUTED, bound
    if choose_branch(window, program, search.prices, box, branch):
        return BRANCHED, bound
    cost = read_whole(window, program, search.draft, progress.deadline)
    offer(progress, search.answer, search.draft.pattern, cost)
    if bound >= progress.cost:
        return REFUTED, bound
    if split_anyhow(window, box, branch):
        return BRANCHED, bound
    cost = take_settled(window, box, search.prices, search.draft, progress.cost)
    offer(progress, search.answer, search.draft.pattern, cost)
    return SETTLED, max(bound, exact_bound(window, search.prices, box))


@kernel
def advance(window: Window, search: Search, work: int) -> int:
    """Go on for about `work` units (microseconds); return STUCK, OPEN or DONE. A node may be left in its midst.

    With progress.ordered it returns after each node, and goes on with what "at most" leaves, then with "at least".
    """
    progress, program, nodes, branch = search.progress, search.program, search.nodes, search.branch
    if progress.started == 0:
        progress.started = 1
        begin_program(window, progress, program)
        root = 0
        nodes.parent[root], nodes.bound[root], nodes.open[root] = -1, progress.bound, root
        progress.nodes = progress.open_nodes = 1
    end = progress.work + work
    while True:
        if progress.inside == 0:
            if progress.open_nodes == 0:
                progress.bound = progress.cost
                return DONE
            if progress.nodes + 2 > nodes.parent.size:
                return STUCK
            node = take_node(progress, nodes)
            if nodes.bound[node] >= progress.cost:
                progress.plunge = 0
                continue
            progress.current, progress.inside = node, 1
            if progress.stale == 1:  # the program has fewer columns from here on
                begin_program(window, progress, program)
                progress.stale = 0
            enter(window, nodes, search.box, node)
            begin_node(window, search)
            progress.work += 20 + (progress.lines * program.nonbasic.size >> 9)
        done, bound = solve_node(window, search, end)
        if not done:
            return OPEN
        node = progress.current
        progress.inside = progress.plunge = 0
        progress.visited += 1
        outcome, bound = conclude(window, search, bound)
        bound = max(bound, nodes.bound[node])
        if outcome == BRANCHED:
            up = branch.up_first == 1 and progress.ordered == 0
            push(progress, nodes, node, branch, 1 if up else -1, bound)
            push(progress, nodes, node, branch, -1 if up else 1, bound)
            progress.plunge = 1
        elif outcome == SETTLED and bound < progress.cost:
            return STUCK
        progress.outcome = outcome if outcome == BRANCHED else REFUTED
        if progress.ordered == 1:
            return OPEN if progress.open_nodes > 0 else DONE
        least = progress.cost
        for i in range(progress.open_nodes):
            least = min(least, nodes.bound[nodes.open[i]])
        progress.bound = max(progress.bound, least)
        if progress.open_nodes > 0 and (
            progress.work >= end or progress.visited == 1
        ):  # after the root, classes are ruled out
            return OPEN
