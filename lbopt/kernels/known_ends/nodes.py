"""The nodes of the tree: what they say, in which order they are visited."""

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.copying import fill_row, fill_rows
from lbopt.kernels.known_ends.state import Box, Nodes, Window


@kernel
def enter(window: Window, nodes: Nodes, box: Box, node: int) -> None:
    """Set the chain counts of the box to what the node and those above it say.

    Parameters
    ----------
    window, nodes, node
        The decision, the nodes, and the number of one.
    box
        Set in place.
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
    progress, nodes
        The list of nodes; one more, in place.
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
