"""Branch and bound on chain counts: how many requests of classes j, j + 1, ... a worker takes.

Visiting a node solves its program, rounds the dual values and evaluates them exactly. A solution that is whole is an
assignment; otherwise it is rounded to one, and the node is split where the solution is undecided and the two halves
differ most. The search plunges into one child and comes back to the open node of least bound.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.bounds import exact_bound
from lbopt.kernels.known_ends.branching import choose_branch, split_anyhow, take_settled
from lbopt.kernels.known_ends.copying import copy_rows
from lbopt.kernels.known_ends.dictionary import DEAR, IMPOSSIBLE, SOLVED, objective_value, run, settle_values
from lbopt.kernels.known_ends.nodes import enter, push, take_node
from lbopt.kernels.known_ends.relaxation import (
    add_broken_rows,
    begin_program,
    drop_loose_rows,
    round_prices,
    set_bounds,
)
from lbopt.kernels.known_ends.rounding import round_solution
from lbopt.kernels.known_ends.terms import (
    AT_NODE,
    BOUND,
    CONSTANT,
    COST,
    CURRENT,
    DONE,
    FAR,
    FRESH,
    INSIDE,
    LINES,
    NODES,
    OPEN,
    OPEN_NODES,
    ORDERED,
    OUTCOME,
    PLUNGE,
    STALE,
    STARTED,
    STUCK,
    UP_FIRST,
    VISITED,
    WORK,
    Box,
    Draft,
    Nodes,
    Prices,
    Program,
    Window,
)

#: Pivots at one node, beyond which its prices are taken as they are.
_PIVOTS = 20_000

#: So many first nodes, and every so manieth after them, are rounded to an assignment.
_EVERY_NODE, _EVERY = 64, 8

#: Outcomes of a visit.
REFUTED, BRANCHED, SETTLED = range(3)


@kernel
def begin_node(window: Window, known: Ints, program: Program, box: Box) -> None:
    """Give the program the bounds of the box."""
    drop_loose_rows(known, program)
    set_bounds(window, known, program, box)
    settle_values(known, program)
    program.number[3] = _dear(window, known, program)
    known[AT_NODE] = known[FRESH] = 0


@kernel
def _dear(window: Window, known: Ints, program: Program) -> float:
    """Return the objective from which on a node is not worth solving further."""
    cutoff = (known[COST] - window.facts[CONSTANT]) / program.number[0]
    return cutoff + 1e-9 * abs(cutoff) + 0.5 / program.number[0]


@kernel
def solve_node(window: Window, known: Ints, program: Program, prices: Prices, box: Box, end: int) -> tuple[bool, int]:
    """Go on with the program of the box; return whether it is done, and the bound that its prices prove.

    The values of the program are its solution where the bound is below the best cost. Where the exact bound falls short
    of the program's objective, the dictionary has gathered errors of rounding, and is made anew.
    """
    cost = known[COST]
    while True:
        ended, line, sign, missing = run(known, program, end)
        objective = objective_value(program)
        if ended == IMPOSSIBLE:
            needed = program.number[3] - objective
            round_prices(window, known, program, line, sign * 2.0 * max(1.0, needed) / missing, prices)
            bound = exact_bound(window, prices, box)
            if bound >= cost or known[FRESH] == 1:
                return True, bound
            _renew(window, known, program, box)
        elif (
            ended == DEAR
            or known[AT_NODE] > _PIVOTS
            or (ended == SOLVED and add_broken_rows(window, known, program, end) == 0)
        ):
            round_prices(window, known, program, -1, 0.0, prices)
            bound = exact_bound(window, prices, box)
            if bound >= cost:
                return True, bound
            promised = window.facts[CONSTANT] + objective * program.number[0]
            if bound < promised - 1.0 - 1e-7 * abs(promised) and known[FRESH] == 0:
                _renew(window, known, program, box)
            elif ended == DEAR:
                program.number[3] = objective + 10.0 / program.number[0] + 1e-6 * abs(objective)
            else:
                return True, bound
        if known[WORK] >= end:
            return False, -FAR


@kernel
def _renew(window: Window, known: Ints, program: Program, box: Box) -> None:
    """Begin the program anew, once for a node."""
    begin_program(window, known, program)
    begin_node(window, known, program, box)
    known[FRESH] = 1


@kernel
def conclude(
    window: Window,
    known: Ints,
    program: Program,
    prices: Prices,
    box: Box,
    draft: Draft,
    answer: Ints,
    at: Ints,
    bound: int,
) -> tuple[int, int]:
    """Say what comes of a node whose program gave `bound`, and which bound it has.

    A branch is told in `at`; a better assignment is kept.
    """
    if bound >= known[COST]:
        return REFUTED, bound
    whole = not choose_branch(window, program, prices, box, at)
    cost = FAR
    if whole or known[VISITED] < _EVERY_NODE or known[VISITED] % _EVERY == 0:
        cost = round_solution(window, program, draft, np.empty(window.v.shape[1], np.int64))
    if cost < known[COST]:
        known[COST] = cost
        copy_rows(answer, draft.pattern)
        if bound >= cost:
            return REFUTED, bound
    if whole and not split_anyhow(window, box, at):
        cost = take_settled(window, box, prices, draft, known[COST])
        if cost < known[COST]:
            known[COST] = cost
            copy_rows(answer, draft.pattern)
        return SETTLED, max(bound, exact_bound(window, prices, box))
    return BRANCHED, bound


@kernel
def advance(
    window: Window,
    known: Ints,
    program: Program,
    prices: Prices,
    box: Box,
    draft: Draft,
    nodes: Nodes,
    answer: Ints,
    at: Ints,
    work: int,
) -> int:
    """Go on for about `work` units; return STUCK, OPEN or DONE. A node may be left in its midst.

    With known[ORDERED] it returns after each node, and goes on with what "at most" leaves, then with "at least".
    """
    if known[STARTED] == 0:
        known[STARTED] = 1
        begin_program(window, known, program)
        nodes.parent[0], nodes.bound[0], nodes.open[0] = -1, known[BOUND], 0
        known[NODES] = known[OPEN_NODES] = 1
    end = known[WORK] + work
    while True:
        if known[INSIDE] == 0:
            if known[OPEN_NODES] == 0:
                known[BOUND] = known[COST]
                return DONE
            if known[NODES] + 2 > nodes.parent.size:
                return STUCK
            node = take_node(known, nodes)
            if nodes.bound[node] >= known[COST]:
                known[PLUNGE] = 0
                continue
            known[CURRENT], known[INSIDE] = node, 1
            if known[STALE] == 1:  # the program has fewer columns from here on
                begin_program(window, known, program)
                known[STALE] = 0
            enter(window, nodes, box, node)
            begin_node(window, known, program, box)
            known[WORK] += 20 + (known[LINES] * program.nonbasic.size >> 9)
        done, bound = solve_node(window, known, program, prices, box, end)
        if not done:
            return OPEN
        node = known[CURRENT]
        known[INSIDE] = known[PLUNGE] = 0
        known[VISITED] += 1
        outcome, bound = conclude(window, known, program, prices, box, draft, answer, at, bound)
        bound = max(bound, nodes.bound[node])
        if outcome == BRANCHED:
            up = at[UP_FIRST] == 1 and known[ORDERED] == 0
            push(known, nodes, node, at, 1 if up else -1, bound)
            push(known, nodes, node, at, -1 if up else 1, bound)
            known[PLUNGE] = 1
        elif outcome == SETTLED and bound < known[COST]:
            return STUCK
        known[OUTCOME] = outcome if outcome == BRANCHED else REFUTED
        if known[ORDERED] == 1:
            return OPEN if known[OPEN_NODES] > 0 else DONE
        least = known[COST]
        for i in range(known[OPEN_NODES]):
            least = min(least, nodes.bound[nodes.open[i]])
        known[BOUND] = max(known[BOUND], least)
        if known[OPEN_NODES] > 0 and (known[WORK] >= end or known[VISITED] == 1):  # after the root, classes are struck
            return OPEN
