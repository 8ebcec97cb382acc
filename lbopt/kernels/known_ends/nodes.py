"""The nodes of the tree: what they say, in which order they are visited."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.copying import fill_row, fill_rows
from lbopt.kernels.known_ends.terms import (
    AT_CLASS,
    AT_LIMIT,
    AT_WORKER,
    NODES,
    OPEN_NODES,
    ORDERED,
    PLUNGE,
    Box,
    Nodes,
    Window,
)


@kernel
def enter(window: Window, nodes: Nodes, box: Box, node: int) -> None:
    """Set the chain counts of the box to what the node and those above it say."""
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
def push(known: Ints, nodes: Nodes, parent: int, at: Ints, sense: int, bound: int) -> None:
    """Open a child."""
    i = known[NODES]
    nodes.parent[i], nodes.sense[i], nodes.bound[i] = parent, sense, bound
    nodes.worker[i], nodes.klass[i], nodes.limit[i] = at[AT_WORKER], at[AT_CLASS], at[AT_LIMIT]
    nodes.open[known[OPEN_NODES]] = i
    known[NODES] += 1
    known[OPEN_NODES] += 1


@kernel
def take_node(known: Ints, nodes: Nodes) -> int:
    """Take the node to visit next out of the open ones: the one just opened, or the one of least bound."""
    count = known[OPEN_NODES]
    at = count - 1
    if known[PLUNGE] == 0 and known[ORDERED] == 0:
        for i in range(count):
            if nodes.bound[nodes.open[i]] < nodes.bound[nodes.open[at]]:
                at = i
    node = nodes.open[at]
    nodes.open[at] = nodes.open[count - 1]
    known[OPEN_NODES] = count - 1
    return node
