"""A tree of placements at one envelope: which worker takes a request of a class, or that none does.

For a narrow range of envelopes a..b the tree is one at b, whose target is that of a. An assignment that reaches the
target without being better ends such a tree: the range has to be halved.

Every node is bounded by the master program along its path (`columns`). Where its optimum is fractional, one request of
a fractional class is placed in all ways that the node's prices do not refute. The open node with the best bound is
next, the deepest and then the newest among equals, so the tree dives towards assignments while the bound holds and
turns back as soon as it does not. Large requests come first: few workers have room for them.

Whether it ends or is cut off, the best bound of an open node bounds the envelope. Every node names the prices of its
bound, so the tree is its own proof: a node that was branched on says that nothing but the nodes below it is possible at
its prices, and any other that too few tokens are.

Where the master program is fractional, some class is: what a worker holds of it, summed over its patterns, is no whole
number. At given prices, worker w with one request of class k is worth at most

    (profit of k) + (best of one slot fewer in a margin that is smaller by v_k),

so what is lost against its best pattern is known for all workers from one evaluation, and that none takes what is left
of k loses its prices. What loses more than the target allows needs no node.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.columns import begin_columns, bonus_of, generate_columns
from lbopt.kernels.search.master import drop_columns, reset_master
from lbopt.kernels.search.open_ranges import close_by_tree, improve, offer, recall, write_down
from lbopt.kernels.search.path import compose, follow, value_columns, what_is_left
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import (
    EXACT,
    NONE,
    QUICK,
    ROOT,
    SPOILT,
    WAITS,
    Master,
    Masters,
    Path,
    Search,
    Step,
    Tree,
    part,
)

#: Pivots after which the master is begun anew, to be rid of rounding.
MOST_PIVOTS = 20_000

#: Columns of each worker from which those that are not basic are forgotten; how often a node is begun anew where
#: rounding has spoilt the master.
CROWDED, MOST_SPOILT = 10, 2

#: What a root may reach before it is bounded.
NEAR = 1 << 62

#: How a turn at a tree ends: it goes on before anything else; its nodes are used up, or none is open; the range has to
#: be halved; there is no room for another node.
PENDING, ENDED, SPLIT, NO_ROOM = 0, 1, 2, 3

_SHUT = -(1 << 62)


@kernel
def _add_node(tree: Tree, parent: int, k: int, place: int, reach: int, row: int) -> None:
    """Append an open node, bounded by prices `row`, to the tree that is worked on; there is room for it."""
    state, nodes = tree.state, tree.nodes
    new = nodes[state.used]
    state.used += 1
    new.parent, new.size_class, new.place, new.reach, new.range = parent, k, place, reach, state.range
    new.depth = nodes[parent].depth + 1 if parent >= 0 else 0
    new.row, new.chosen = row, -1


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
def _target(step: Step, search: Search, M: int) -> int:
    """Return the fewest tokens of an assignment of envelope M or more that beats the best one."""
    return max(step.workers * M - step.total - search.known.cost + 1, step.least)


@kernel
def grow_tree(step: Step, search: Search, masters: Masters, i: int) -> bool:
    """Bound one node of the tree at the envelope of range i and branch on it; False where no open node is left.

    Where the work reaches known.stop, the next call goes on with the node. In a range of several envelopes it also
    stops, with state.found at the target or above, where an assignment is no better than the best one and still not
    excluded.
    """
    tree, m, this, found = masters.tree, masters.whole, search.ranges[i], search.pricing
    state, nodes = tree.state, tree.nodes
    M, first, scale = this.last, this.first, step.scale
    if this.planted == 0:
        return False  # without a root, no open node says nothing
    if state.current < 0:
        j = next_node(tree, i)
        if j < 0 or nodes[j].reach < _target(step, search, first):
            close_by_tree(this, search.known.cost)
            return False
        close_by_tree(this, step.workers * first - step.total - nodes[j].reach)
        _enter(step, search, masters, j, M)
    j = state.current
    if not generate_columns(step, search, m, M, _target(step, search, first) - 1, search.known.stop):
        return True
    state.current = -1
    reach = found.lowest // scale if found.lowest != NONE else _SHUT
    row = write_down(step, search, -1)
    if reach <= nodes[j].reach:
        nodes[j].reach, nodes[j].row = reach, row
    reach = nodes[j].reach
    if found.top >= 0:
        state.found = max(state.found, found.top)
        improve(step, search, search.spare, M, found.top, 20)
    if found.ended == SPOILT and state.spoilt < MOST_SPOILT:  # once more, with a new master
        search.known.warm = 0
        state.spoilt += 1
        return True
    state.spoilt = 0
    if reach < _target(step, search, first):
        nodes[j].reach = _SHUT
    elif first == M or state.found < _target(step, search, first):
        nodes[j].reach = _branch(step, search, m, tree, j, row)
    return True


@kernel
def _enter(step: Step, search: Search, masters: Masters, j: int, M: int) -> None:
    """Let the column generation of node j begin."""
    known, m = search.known, masters.whole
    cold = known.warm == 0 or m.counts.pivots > MOST_PIVOTS
    if cold:
        reset_master(m, step.n, step.load.size, step.slots.max(), 2.0 * M + 1.0)
        known.warm = 1
        recall(step, search)
    elif m.counts.columns > CROWDED * step.load.size:
        drop_columns(m)
    follow(step, search.path, masters.tree, j)
    value_columns(m, step, search.path, M, bonus_of(step))
    begin_columns(search, cold)
    masters.tree.state.current = j


@kernel
def undecided(step: Step, search: Search, tree: Tree, i: int) -> bool:
    """Whether the tree of range i came to an assignment that only half of the range can exclude."""
    this = search.ranges[i]
    return this.first < this.last and tree.state.found >= _target(step, search, this.first)


@kernel
def _branch(step: Step, search: Search, m: Master, tree: Tree, j: int, row: int) -> int:
    """Place a request of the class that has fewest ways left, a node for each way; return what node j reaches then.

    The path in use is that to node j, and search.best_price are its prices, number `row` of the log.
    """
    W, K, scale, path, state = step.load.size, step.v.size, step.scale, search.path, tree.state
    this, size = search.ranges[state.range], path.state.workers
    first, M, above = this.first, this.last, tree.nodes[j].reach
    classes = np.zeros(K, dtype=np.int64)
    count = fractional_classes(m, step, path, classes)
    target = _target(step, search, first)
    search.price[:K] = search.best_price[:K]
    scaled = evaluate(what_is_left(step, path), search, M, EXACT) + scale * path.state.tokens
    if scaled // scale <= above:
        tree.nodes[j].row = row
    if scaled // scale < target:
        return _SHUT
    if count <= 0:  # rounding has spoilt the master: any class leads on
        count = 0
        for k in range(K - 1, -1, -1):
            if path.left[k] > 0 and count == 0:
                classes[0] = k
                count = 1
    tree.bound[:size] = search.bound[:size]
    lost, fewest, chosen = np.zeros(W, dtype=np.int64), 1 << 62, -1
    for c in range(min(count, CANDIDATES)):
        k = classes[c]
        waiting = losses(step, search, tree, M, k, lost)
        ways = 3 * (path.left[k] - 1)  # with several requests of a class, the ways overlap
        for r in range(size):
            ways += (scaled - lost[r]) // scale >= target
        ways += (scaled - waiting) // scale >= target
        if ways < fewest:
            fewest, chosen = ways, k
            tree.lost[:size], tree.lost[size] = lost[:size], waiting
    if chosen < 0:  # nothing is left to be placed: the path is an assignment
        compose(step, path, search.leaf, search.spare)
        state.found = max(state.found, path.state.tokens)
        offer(step, search, search.spare, path.state.tokens)
        split = first < M and state.found >= _target(step, search, first)
        return min(above, scaled // scale) if split else _SHUT
    tree.nodes[j].chosen = chosen
    _add_ways(step, search, m, tree, j, scaled, row)
    tree.nodes[j].row = row
    return _SHUT


@kernel
def _add_ways(step: Step, search: Search, m: Master, tree: Tree, j: int, scaled: int, row: int) -> None:
    """Add a node for each way of the class chosen. That of which the master takes most is the newest, and so on."""
    path, scale, size = search.path, step.scale, search.path.state.workers
    node = tree.nodes[j]
    chosen, above, target = node.chosen, node.reach, _target(step, search, search.ranges[node.range].first)
    part = np.zeros(step.load.size)
    parts(m, chosen, part)
    done = np.zeros(size + 1, dtype=np.int64)
    share = np.zeros(size + 1)
    taken = 0.0
    for r in range(size):
        share[r] = part[path.who[r]]
        taken += share[r]
    share[size] = path.left[chosen] - taken
    for _ in range(size + 1):
        least = -1
        for r in range(size + 1):
            if done[r] == 0 and (least < 0 or share[r] < share[least]):
                least = r
        done[least] = 1
        reach = (scaled - tree.lost[least]) // scale
        if min(above, reach) >= target:
            proof = row if reach <= above else node.row
            _add_node(tree, j, chosen, path.who[least] if least < size else WAITS, min(above, reach), proof)


@kernel
def try_tree(step: Step, search: Search, masters: Masters, i: int, nodes: int) -> int:
    """Grow the tree at the envelope of range i by `nodes` nodes; one of them a call, as long as it returns PENDING.

    Returns PENDING, ENDED, SPLIT or NO_ROOM.
    """
    tree, state, this = masters.tree, masters.tree.state, search.ranges[i]
    if state.used + step.load.size + 2 > tree.nodes.size:  # a root, and all ways of a class
        state.left = 0
        return NO_ROOM
    if state.left == 0:
        state.left, state.range, state.current = nodes, i, -1
        state.found = -1
        if this.planted == 0:
            _add_node(tree, -1, 0, ROOT, NEAR, 0)
            this.planted = 1
    more = grow_tree(step, search, masters, i)
    if more and undecided(step, search, tree, i):
        state.left = 0
        return SPLIT
    if state.current < 0:  # else the node goes on
        state.left -= 1
    if more and state.left > 0:
        return PENDING
    state.left = 0
    return ENDED


#: Classes whose placement is tried out before the one with fewest ways is taken.
CANDIDATES = 6

#: A sum of levels this near to a whole number is one; so small a level is none.
WHOLE = 1e-4

_NO_WAY = 1 << 60


@kernel
def fractional_classes(m: Master, step: Step, path: Path, classes: Ints) -> int:
    """Write the classes that some worker holds in part to `classes`, largest first; return how many.

    Workers with one slot left do not count, unless requests are forced: once the others are whole, serving them is a
    matching, which loses nothing. Neither does a class of which nothing is left: rounding can make it look split, and
    it cannot be placed again. -1 where the optimum leaves a worker unserved.
    """
    W, K = step.slots.size, step.v.size
    items, level, basic, owner = m.items, m.level, m.basic, m.owner
    head, link = np.full(W, -1), np.full(m.counts.tight, -1)
    for b in range(m.counts.tight):
        if level[b] > WHOLE and m.value[basic[b]] < 0.0:
            return -1
        if level[b] > 0.0:  # many levels that are nearly nothing add up
            link[b] = head[owner[basic[b]]]
            head[owner[basic[b]]] = b
    part, split = np.zeros(K), np.zeros(K, dtype=np.int64)
    for w in range(W):
        if step.slots[w] - path.placed[w] <= 1 and step.forced == 0:
            continue
        for sweep in range(3):  # add up, compare, clear
            b = head[w]
            while b >= 0:
                for q in range(items.shape[1]):
                    k = items[basic[b], q]
                    if k < 0:
                        break
                    if sweep == 0:
                        part[k] += level[b]
                    elif sweep == 1:
                        if abs(part[k] - np.round(part[k])) > WHOLE:
                            split[k] = 1
                    else:
                        part[k] = 0.0
                b = link[b]
    count = 0
    for k in range(K - 1, -1, -1):
        if split[k] == 1 and path.left[k] > 0:
            classes[count] = k
            count += 1
    return count


@kernel
def parts(m: Master, k: int, part: Floats) -> None:
    """Set part[w] to how many requests of class k the master's optimum gives to worker w."""
    items, level, basic, owner = m.items, m.level, m.basic, m.owner
    for w in range(part.size):
        part[w] = 0.0
    for b in range(m.counts.tight):
        for q in range(items.shape[1]):
            if items[basic[b], q] < 0:
                break
            if items[basic[b], q] == k:
                part[owner[basic[b]]] += level[b]


@kernel
def losses(step: Step, search: Search, tree: Tree, M: int, k: int, lost: Ints) -> int:
    """Set lost[r] to what is lost at least where worker r of those left takes one of class k, and return what is lost
    where none takes any of it that is left.

    Takes search.price, and in tree.bound the bounds of the workers at these prices; `search.bound` and its like are
    overwritten.
    """
    v, sums, scale, path = step.v, search.path.sums, step.scale, search.path
    size = path.state.workers
    profit = scale * v[k] - search.price[k]
    fewer = 0
    for r in range(size):
        lost[r] = _NO_WAY
        room = M - path.load[r] - v[k]
        if path.slots[r] == 1 and room >= 0:
            lost[r] = tree.bound[r] - profit
        elif path.slots[r] > 1 and room >= sums[path.slots[r] - 1]:
            tree.load_then[fewer] = path.load[r] + v[k]
            tree.slots_then[fewer] = path.slots[r] - 1
            path.number[fewer] = r
            fewer += 1
    if fewer > 0:
        rest = what_is_left(step, path)
        load, slots = tree.load_then[:fewer], tree.slots_then[:fewer]
        then = part(step, rest.n, load, slots, rest.rank, rest.sums)
        # With one of class k still there everything fits that fits without it, so no bound is too low.
        if evaluate(then, search, M, QUICK) != NONE:
            for i in range(fewer):
                r = path.number[i]
                lost[r] = tree.bound[r] - profit - search.bound[i]
        else:
            for i in range(fewer):
                lost[path.number[i]] = 0
    return path.left[k] * search.price[k] if step.floor[k] == 0 else _NO_WAY
