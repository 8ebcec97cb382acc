"""The list of open nodes: each is a bound and a box."""

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.state import Box, Nodes


@kernel
def take(progress: Record, nodes: Nodes, box: Box, i: int) -> int:
    """Take node i off the list, make it the one at hand, and return its bound.

    Parameters
    ----------
    progress, nodes
        The list of open nodes; one fewer, in place.
    box
        The node at hand; overwritten.
    i
        Number of the node.
    """
    last = progress.open_nodes - 1
    bound = nodes.bounds[i]
    nodes.bounds[i] = nodes.bounds[last]
    for w in range(box.low.size):
        box.low[w], box.high[w] = nodes.low[i, w], nodes.high[i, w]
        nodes.low[i, w], nodes.high[i, w] = nodes.low[last, w], nodes.high[last, w]
        for q in range(box.first.shape[1]):
            box.first[w, q], box.last[w, q] = nodes.first[i, w, q], nodes.last[i, w, q]
            nodes.first[i, w, q], nodes.last[i, w, q] = nodes.first[last, w, q], nodes.last[last, w, q]
    progress.open_nodes = last
    return bound


@kernel
def push(progress: Record, nodes: Nodes, box: Box, bound: int, w: int, by_class: bool, first: int, last: int) -> int:
    """Open the node at hand with other sides for worker w, or (by_class) other classes for its next request.

    Returns its number, -1 where first..last is empty.

    Parameters
    ----------
    progress, nodes
        The list of open nodes; one more, in place.
    box
        The node at hand.
    bound
        Lower bound of the new node, tokens.
    w, by_class, first, last
        The worker; whether `first`..`last` are classes of its next request, or else tokens of its total.
    """
    if first > last:
        return -1
    at = progress.open_nodes
    nodes.bounds[at] = bound
    for u in range(box.low.size):
        nodes.low[at, u], nodes.high[at, u] = box.low[u], box.high[u]
        for q in range(box.first.shape[1]):
            nodes.first[at, u, q], nodes.last[at, u, q] = box.first[u, q], box.last[u, q]
    if by_class:
        nodes.first[at, w, box.fixed[w]], nodes.last[at, w, box.fixed[w]] = first, last
    else:
        nodes.low[at, w], nodes.high[at, w] = first, last
    progress.open_nodes = at + 1
    return at
