"""A tree of placements at one envelope: which worker takes a request of a class, or that nobody does.

For a narrow range of envelopes a..b the tree is one at b, whose target is that of a. An assignment that reaches the
target without being better ends such a tree: the range has to be halved.

Every node is bounded by its own master program (`placed_columns`). Where its optimum is fractional, one request of a
fractional class is placed in all ways that the node's prices do not refute (`placement`). The open node with the best
bound is next, the deepest and then the newest among equals, so the tree dives towards assignments while the bound
holds and turns back as soon as it does not. Large requests come first: few workers have room for them.

Whether it ends or is cut off, the best bound of an open node bounds the envelope.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.search.keeping import offer, place_in_bank, recall
from lbopt.kernels.search.master import reset_master
from lbopt.kernels.search.open_ranges import SHOWN_ANEW, close_in
from lbopt.kernels.search.placed import place
from lbopt.kernels.search.placed_columns import DONE, SPOILT, bound_node, compose, what_is_left
from lbopt.kernels.search.placed_whole import take_whole
from lbopt.kernels.search.placement import CANDIDATES, fractional_classes, losses, parts
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE, ROOT, WAITS, Master, Masters, Search, Step, Tree

#: Microseconds, about, after which a node is left for a look at the clock.
AT_ONCE = 8_000

#: Pivots at one node after which rounding is thought to have spoilt the master.
MOST_AT_ONE = 5_000

#: Pivots after which the master is begun anew, to be rid of rounding.
MOST_PIVOTS = 20_000

#: While the bound is further from the best assignment than this (tokens), of so many nodes so many are the newest
#: instead of the best: they dive for assignments.
DISTANT, PERIOD, DIVING = 30, 64, 32

#: What a root may reach before it is bounded.
NEAR = 1 << 62

#: How a turn at a tree ends: it goes on before anything else; its nodes are used up, or none is open; the range has to
#: be halved; there is no room for another node.
PENDING, ENDED, SPLIT, NO_ROOM = 0, 1, 2, 3

_SHUT = -(1 << 62)

#: The range of a node that may be used again.
_FREE = -1


@kernel
def _add_node(tree: Tree, i: int, parent: int, k: int, place: int, reach: int) -> None:
    """Append an open node to the tree of range i; where there is no room for it, its parent is open again.

    Parameters
    ----------
    tree
        Changes in place.
    i, parent
        Range, and node above, -1 for none.
    k, place
        Class placed; worker, WAITS or ROOT.
    reach
        Tokens that are not ruled out.
    """
    state, nodes = tree.state, tree.nodes
    if state.used < nodes.size:
        at = state.used
        state.used = at + 1
    elif state.free > 0:
        at = state.free - 1
        state.free = nodes[at].parent
    else:
        if parent >= 0:
            nodes[parent].reach = max(nodes[parent].reach, reach)
        return
    new = nodes[at]
    new.parent, new.size_class, new.place, new.reach, new.range = parent, k, place, reach, i
    new.depth = nodes[parent].depth + 1 if parent >= 0 else 0


@kernel
def _room(tree: Tree) -> int:
    """Return for how many nodes there is room, at least one where any node can be spared.

    Where all are used, those are freed that are shut and have nothing open below them. They are linked by `parent`.
    """
    state, nodes = tree.state, tree.nodes
    if state.used < nodes.size or state.free > 0:
        return 1
    below = np.zeros(nodes.size, dtype=np.int64)
    for j in range(nodes.size):
        if nodes[j].range != _FREE and nodes[j].parent >= 0:
            below[nodes[j].parent] += 1
    freed = 0
    for first in range(nodes.size):
        j = first
        while j >= 0 and nodes[j].range != _FREE and nodes[j].reach == _SHUT and below[j] == 0:
            above = nodes[j].parent
            nodes[j].range, nodes[j].parent = _FREE, state.free
            state.free = j + 1
            freed += 1
            if above >= 0:
                below[above] -= 1
            j = above
    return freed


@kernel
def drop_tree(tree: Tree, i: int) -> None:
    """Close all nodes of range i, which has changed."""
    for j in range(tree.state.used):
        if tree.nodes[j].range == i:
            tree.nodes[j].reach = _SHUT


@kernel
def next_node(tree: Tree, i: int) -> int:
    """Return the open node of range i with the best bound, the deepest, then the newest of equals; -1 for none."""
    nodes = tree.nodes
    best, furthest, deepest = -1, 0, 0
    for j in range(tree.state.used):
        reach = nodes[j].reach
        if reach == _SHUT or nodes[j].range != i:
            continue
        if best < 0 or reach > furthest or (reach == furthest and nodes[j].depth >= deepest):
            best, furthest, deepest = j, reach, nodes[j].depth
    return best


@kernel
def _newest(tree: Tree, i: int, target: int) -> int:
    """Return the newest node of range i that reaches `target`; -1 for none."""
    for j in range(tree.state.used - 1, -1, -1):
        if tree.nodes[j].reach >= target and tree.nodes[j].range == i:
            return j
    return -1


@kernel
def _target(step: Step, search: Search, M: int) -> int:
    """Return the fewest tokens of an assignment of envelope M or more that beats the best one."""
    return max(step.workers * M - step.total - search.known.cost + 1, step.least)


@kernel
def grow_tree(step: Step, search: Search, masters: Masters, i: int) -> bool:
    """Bound one node of the tree at the envelope of range i and branch on it; False where no open node is left.

    In a range of several envelopes it also stops, with state.found at the target or above, where an assignment is no
    better than the best one and still not excluded.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search, the master programs and the trees, which change in place.
    i
        Open range, a single envelope or a narrow one, in search.ranges; its bound changes in place.
    """
    tree, m, this, known = masters.tree, masters.whole, search.ranges[i], search.known
    state, nodes = tree.state, tree.nodes
    M, least, scale = this.last, this.first, step.scale
    target = _target(step, search, least)
    state.closed = -1
    if this.planted == 0:
        return False  # without a root, no open node says nothing
    j = next_node(tree, i)
    if j < 0 or nodes[j].reach < target:
        close_in(this, known.cost, SHOWN_ANEW)
        return False
    close_in(this, step.workers * least - step.total - nodes[j].reach, SHOWN_ANEW)
    if state.current >= 0 and nodes[state.current].reach >= target:
        j = state.current
    else:
        state.pivots = 0
        state.turn += 1
        if nodes[j].reach - target > DISTANT and state.turn % PERIOD >= PERIOD - DIVING:
            j = _newest(tree, i, target)
    anew = known.warm == 0 or m.counts.pivots > MOST_PIVOTS
    if anew:
        reset_master(m, step.n, step.load.size, 2.0 * M + 1.0)
        known.warm = 1
        recall(step, search, place_in_bank(search, known.prices - 1))
    before = m.counts.pivots
    place(step, tree, j)
    scaled, ending, work = bound_node(step, search, m, tree, M, target, anew, AT_ONCE)
    known.work += work
    if ending != DONE and state.pivots < 2 * MOST_AT_ONE:  # go on with it when the clock has been looked at
        state.pivots += m.counts.pivots - before
        if ending == SPOILT or state.pivots > MOST_AT_ONE:
            known.warm = 0
            state.pivots += MOST_AT_ONE
        nodes[j].reach = min(nodes[j].reach, scaled // scale)
        state.current = j
        return True
    state.current, state.closed, state.chosen = -1, j, -1
    reach = min(nodes[j].reach, scaled // scale) if scaled != NONE else _SHUT
    nodes[j].reach = _SHUT
    if reach >= _target(step, search, least):
        if least < M and state.found >= _target(step, search, least):
            nodes[j].reach = reach
            return True
        _branch(step, search, m, tree, j, least, M, reach)
    return True


@kernel
def undecided(step: Step, search: Search, tree: Tree, i: int) -> bool:
    """Whether the tree of range i came to an assignment that only half of the range can exclude.

    Parameters
    ----------
    step, search
        The decision; the state of the search.
    tree, i
        Tree, and the range that it is for.
    """
    this = search.ranges[i]
    return this.first < this.last and tree.state.found >= _target(step, search, this.first)


@kernel
def _branch(step: Step, search: Search, m: Master, tree: Tree, j: int, lowest: int, M: int, above: int) -> None:
    """Place a request of the class that has fewest ways left; add a node for each way. None reaches beyond `above`.

    Parameters
    ----------
    step, search, m, tree
        The decision; the state of the search, the master program and the tree, which change in place.
    j
        Node, whose path `place` set.
    lowest, M
        First and last envelope of the range.
    above
        Tokens that no node below it exceeds.
    """
    W, K, scale = step.load.size, step.v.size, step.scale
    size = tree.state.workers
    classes = np.zeros(K, dtype=np.int64)
    count = fractional_classes(m, step, tree, classes)
    if count == 0:
        tree.state.found = max(tree.state.found, take_whole(step, search, m, tree, M))
    target = _target(step, search, lowest)
    for k in range(K):
        search.price[k] = search.best_price[k]
    scaled = evaluate(what_is_left(step, tree), search, M, EXACT) + scale * tree.state.tokens
    if scaled // scale < target:
        return
    if lowest < M and tree.state.found >= target:
        tree.nodes[j].reach = min(above, scaled // scale)
        return
    if count <= 0:  # rounding has spoilt the master: any class leads on
        count = 0
        for k in range(K - 1, -1, -1):
            if tree.left[k] > 0 and count == 0:
                classes[0] = k
                count = 1
    tree.bound[:size] = search.bound[:size]
    lost, fewest, chosen, nobody = np.zeros(W, dtype=np.int64), 1 << 62, -1, 0
    for c in range(min(count, CANDIDATES)):
        k = classes[c]
        waiting = losses(step, search, tree, M, k, lost)
        ways = 3 * (tree.left[k] - 1)  # with several requests of a class, the ways overlap
        for r in range(size):
            ways += (scaled - lost[r]) // scale >= target
        ways += (scaled - waiting) // scale >= target
        if ways < fewest:
            fewest, chosen, nobody = ways, k, waiting
            tree.lost[:size] = lost[:size]
    if chosen < 0:  # nothing is left to be placed: the path is an assignment
        compose(step, tree, search.leaf, search.spare)
        tree.state.found = max(tree.state.found, tree.state.tokens)
        offer(step, search, search.spare, tree.state.tokens)
        if lowest < M and tree.state.found >= _target(step, search, lowest):
            tree.nodes[j].reach = min(above, scaled // scale)
        return
    tree.state.chosen = chosen
    part = np.zeros(W)
    parts(m, chosen, part)
    # The way that the master takes most of is the newest node, and the next one among equals.
    done = np.zeros(size + 1, dtype=np.int64)
    share = np.zeros(size + 1)
    taken = 0.0
    for r in range(size):
        share[r] = part[tree.who[r]]
        taken += share[r]
    share[size] = tree.left[chosen] - taken
    for _ in range(size + 1):
        least = -1
        for r in range(size + 1):
            if done[r] == 0 and (least < 0 or share[r] < share[least]):
                least = r
        done[least] = 1
        reach = min(above, (scaled - (tree.lost[least] if least < size else nobody)) // scale)
        if reach >= target:
            _add_node(tree, tree.state.range, j, chosen, tree.who[least] if least < size else WAITS, reach)


@kernel
def try_tree(step: Step, search: Search, masters: Masters, i: int, nodes: int) -> int:
    """Grow the tree at the envelope of range i by `nodes` nodes; one of them a call, as long as it returns PENDING.

    Returns PENDING, ENDED, SPLIT or NO_ROOM.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search, the master programs and the trees, which change in place.
    i
        Open range, a single envelope or a narrow one, in search.ranges; its bound changes in place.
    nodes
        Nodes to bound.
    """
    tree, state, this = masters.tree, masters.tree.state, search.ranges[i]
    if state.left == 0:
        if _room(tree) == 0:
            return NO_ROOM
        if this.planted == 0:
            _add_node(tree, i, -1, 0, ROOT, NEAR)
            this.planted = 1
        state.left, state.range, state.current = nodes, i, -1
        state.found = -1
    elif _room(tree) == 0:
        state.left = 0
        return NO_ROOM
    more = grow_tree(step, search, masters, i)
    if more and undecided(step, search, tree, i):
        state.left = 0
        return SPLIT
    state.left -= 1
    if more and state.left > 0:
        return PENDING
    state.left = 0
    return ENDED
