"""Ways to damage a nested certificate: each returns a changed copy, or None where there is nothing of that sort."""

import copy
import random

from solvers.certificates.naive_problem import Naive


def _spots(tree, place=()):
    """Paths to all branches of a tree."""
    who, what = tree
    if who != "dead":
        yield place
        for one, child in what.items():
            yield from _spots(child, (*place, one))


def _at(tree, place):
    for one in place:
        tree = tree[1][one]
    return tree


def _with(tree, place, new):
    """A copy of the tree with `new` in that place."""
    if not place:
        return new
    who, what = tree
    return (who, {one: _with(child, place[1:], new) if one == place[0] else child for one, child in what.items()})


def _tree_node(nested, rng):
    having = [node for node in nested["nodes"] if node["tree"] is not None]
    return rng.choice(having) if having else None


def _edit(nested, rng, spots, change):
    """Replace a random branch or leaf by what `change` makes of it."""
    node = _tree_node(nested, rng)
    places = list(spots(node["tree"])) if node else []
    if not places:
        return None
    place = rng.choice(places)
    new = change(*_at(node["tree"], place))
    if new is None:
        return None
    node["tree"] = _with(node["tree"], place, new)
    return nested


def drop_node(nested, rng, naive):
    if not nested["nodes"]:
        return None
    nested["nodes"].pop(rng.randrange(len(nested["nodes"])))
    return nested


def drop_child(nested, rng, naive):
    def change(who, what):
        gone = rng.choice(list(what)) if what else None
        return (who, {one: child for one, child in what.items() if one != gone}) if what else None

    return _edit(nested, rng, _spots, change)


def change_pattern(nested, rng, naive):
    def change(who, what):
        old = rng.choice(list(what)) if what else None
        if old is None:
            return None
        new = list(old)
        new[rng.randrange(len(new))] = rng.randrange(len(naive.classes))
        new = tuple(sorted(new, reverse=True))
        return (who, {new if one == old else one: child for one, child in what.items()})

    return _edit(nested, rng, _spots, change)


def swap_subtrees(nested, rng, naive):
    def change(who, what):
        if len(what) < 2:
            return None
        ones, children = list(what), list(what.values())
        rng.shuffle(children)
        return (who, dict(zip(ones, children, strict=True)))

    return _edit(nested, rng, _spots, change)


def other_worker(nested, rng, naive):
    return _edit(nested, rng, _spots, lambda who, what: (rng.randrange(len(naive.loads) + 1), what))


def cut_short(nested, rng, naive):
    """A branch is called dead."""
    return _edit(nested, rng, _spots, lambda who, what: ("dead", list(naive.open)))


def no_tree(nested, rng, naive):
    node = _tree_node(nested, rng)
    if node is None:
        return None
    node["tree"] = None
    return nested


def change_price(nested, rng, naive):
    rows = [row for row in nested["prices"] if row]
    if not rows:
        return None
    row = rng.choice(rows)
    row[rng.randrange(len(row))] += rng.choice([-1, 1]) * rng.choice([1, nested["scale"]])
    return nested


def change_scale(nested, rng, naive):
    nested["scale"] = max(1, nested["scale"] + rng.choice([-1, 1]))
    return nested


def other_prices(nested, rng, naive):
    if not nested["nodes"]:
        return None
    rng.choice(nested["nodes"])["prices"] = rng.randrange(len(nested["prices"]) + 1)
    return nested


def raise_bound(nested, rng, naive):
    nested["bound"] += rng.choice([1, naive.unit, 5])
    return nested


def lower_bound(nested, rng, naive):
    nested["bound"] -= rng.choice([1, naive.unit, 5])
    return nested


def move_range(nested, rng, naive):
    if not nested["nodes"]:
        return None
    rng.choice(nested["nodes"])["envelopes"][rng.randrange(2)] += rng.choice([-2, -1, 1, 2])
    return nested


def merge_ranges(nested, rng, naive):
    """One node is said to cover what its neighbour covers, too."""
    nodes = sorted(nested["nodes"], key=lambda node: node["envelopes"])
    if len(nodes) < 2:
        return None
    i = rng.randrange(len(nodes) - 1)
    keep, gone = rng.sample(nodes[i : i + 2], 2)
    ends = keep["envelopes"] + gone["envelopes"]
    keep["envelopes"] = [min(ends), max(ends)]
    nested["nodes"].remove(gone)
    return nested


MUTATIONS = (
    drop_node,
    drop_child,
    change_pattern,
    swap_subtrees,
    other_worker,
    cut_short,
    no_tree,
    change_price,
    change_scale,
    other_prices,
    raise_bound,
    lower_bound,
    move_range,
    merge_ranges,
)


def mutated(nested, problem, rng: random.Random):
    """Return (name, changed copy), by one of the mutations that find something to change."""
    naive = Naive(problem)
    while True:
        mutation = rng.choice(MUTATIONS)
        changed = mutation(copy.deepcopy(nested), rng, naive)
        if changed is not None:
            return mutation.__name__, changed
