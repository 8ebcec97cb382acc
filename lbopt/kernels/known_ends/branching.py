"""The nodes of the tree: what they say, in which order they are visited, and where one is split."""

import numpy as np

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.bounds import exact_bound
from lbopt.kernels.known_ends.placing import add_loads, copy_row, cost_of, fill_row, fill_rows
from lbopt.kernels.known_ends.polish import polish
from lbopt.kernels.known_ends.state import INFINITY, Box, Draft, Nodes, Prices, Program, Window

#: Rounds of exchanges in an assignment that a linear program gave.
_ROUNDS = 8


@kernel
def enter(window: Window, nodes: Nodes, box: Box, node: int) -> None:
    """Set the chain counts of the box to what the node and those above it say.

    Parameters
    ----------
    window, nodes, node
        The decision, the nodes, and the number of one.
    """
    fill_rows(box.least, 0)
    for w in range(window.slots.size):
        fill_row(box.most[w], window.slots[w])
    while node > 0:
        w, j, a = nodes.worker[node], nodes.klass[node], nodes.limit[node]
        if nodes.sense[node] > 0:
            box.most[w, j] = min(box.most[w, j], a)
        else:
            box.least[w, j] = max(box.least[w, j], a + 1)
        node = nodes.parent[node]
    for w in range(window.slots.size):  # a chain holds no more than a longer one, and no less than a shorter one
        for k in range(1, window.n.size):
            box.most[w, k] = min(box.most[w, k], box.most[w, k - 1])
        for k in range(window.n.size - 2, -1, -1):
            box.least[w, k] = max(box.least[w, k], box.least[w, k + 1])


@kernel
def push(progress: Record, nodes: Nodes, parent: int, branch: Record, sense: int, bound: int) -> None:
    """Open a child.

    Parameters
    ----------
    parent, branch, sense, bound
        The number of its parent; the chain count (BRANCH); 1 for "at most" and -1 for "at least"; its bound, tokens.
    """
    i = progress.nodes
    nodes.parent[i], nodes.sense[i], nodes.bound[i] = parent, sense, bound
    nodes.worker[i], nodes.klass[i], nodes.limit[i] = branch.worker, branch.klass, branch.limit
    nodes.open[progress.open_nodes] = i
    progress.nodes += 1
    progress.open_nodes += 1


@kernel
def take_node(progress: Record, nodes: Nodes) -> int:
    """Take the node to visit next out of the open ones: the one just opened, or the one of least bound."""
    count = progress.open_nodes
    at = count - 1
    if progress.plunge == 0 and progress.ordered == 0:
        for i in range(count):
            if nodes.bound[nodes.open[i]] < nodes.bound[nodes.open[at]]:
                at = i
    node = nodes.open[at]
    nodes.open[at] = nodes.open[count - 1]
    progress.open_nodes = count - 1
    return node


@kernel
def choose_branch(window: Window, program: Program, prices: Prices, box: Box, branch: Record) -> bool:
    """Choose worker, class and limit of the chain count to split on; return False where the solution is whole."""
    W, K = window.slots.size, window.n.size
    amount = np.zeros((W, K))
    for x in range(program.klass.size):
        amount[program.worker[x], program.klass[x]] = program.value[x]
    best = 0.0
    for w in range(W):
        count, above = 0.0, -1
        for k in range(K - 1, -1, -1):
            if amount[w, k] <= 1e-7:
                continue
            if above >= 0:
                part = count - int(count)
                differ = 1e-3
                for h in range(window.v.shape[1]):
                    differ += prices.pi[w, h] * abs(program.size[above, h] - program.size[k, h])
                score = min(part, 1.0 - part) * differ
                if min(part, 1.0 - part) > 1e-6 and score > best:
                    best = score
                    middle = 0.5 * (program.weight[above] + program.weight[k])
                    j = above
                    while j > k + 1 and program.weight[j - 1] >= middle:
                        j -= 1
                    branch.worker, branch.klass, branch.limit = w, j, int(count)
                    branch.up_first = 1 if part > 0.5 else 0
            above = k
            count += amount[w, k]
    return best > 0.0


@kernel
def read_whole(window: Window, program: Program, draft: Draft, deadline: int) -> int:
    """Read an assignment off a solution that is whole, polish it, and return its cost; INFINITY where it is none."""
    copy_row(draft.left, window.n)
    room = window.slots.copy()
    for x in range(program.klass.size):
        k, w = program.klass[x], program.worker[x]
        for _ in range(int(program.value[x] + 0.5)):
            if room[w] == 0 or draft.left[k] == 0:
                return INFINITY
            room[w] -= 1
            draft.left[k] -= 1
            draft.pattern[w, room[w]] = k
    owed = 0
    for k in range(window.n.size):
        owed += draft.left[k] * window.must[k]
    if owed > 0 or room.max() > 0:
        return INFINITY
    add_loads(window, draft)
    return polish(window, draft, _ROUNDS, deadline)


@kernel
def split_anyhow(window: Window, box: Box, branch: Record) -> bool:
    """Choose a chain count that is not settled; return False where all are."""
    for w in range(window.slots.size):
        for j in range(1, window.n.size):
            if box.least[w, j] < box.most[w, j]:
                branch.worker, branch.klass, branch.limit = w, j, box.least[w, j]
                branch.up_first = 0
                return True
    return False


@kernel
def take_settled(window: Window, box: Box, prices: Prices, draft: Draft, cost: int) -> int:
    """Price the one assignment that the box holds, all chain counts being settled; return its cost, INFINITY for none.

    The prices prove that cost, or, where the classes are too small for it, more than `cost`.

    Parameters
    ----------
    cost
        Tokens.
    """
    W, T = window.peak.shape
    for w in range(W):
        q = 0
        for k in range(window.n.size):
            above = box.least[w, k + 1] if k + 1 < window.n.size else 0
            for _ in range((window.slots[w] if k == 0 else box.least[w, k]) - above):
                if q < window.slots[w]:
                    draft.pattern[w, q] = k
                    q += 1
        if q < window.slots[w]:
            return INFINITY
    add_loads(window, draft)
    fill_rows(prices.pi, 0)
    fill_row(prices.mu, 0)
    for h in range(T):
        top, load = window.owner[h], 0
        for w in range(W):
            if draft.loads[w, h] > load:
                top, load = w, draft.loads[w, h]
        prices.pi[top, h] = window.workers * window.scale
    missing = 1 + max(0, cost - exact_bound(window, prices, box))
    for k in range(window.n.size):
        if draft.left[k] < 0 or (window.must[k] == 1 and draft.left[k] > 0):
            # one price of a class that is short, or left over, shows it
            prices.mu[k] = missing * window.scale * (-1 if draft.left[k] < 0 else 1)
            return INFINITY
    return cost_of(window, draft.loads)
