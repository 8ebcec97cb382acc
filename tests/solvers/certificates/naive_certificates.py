"""A plain producer and a plain reader of certificates, for problems of a handful of requests.

Trees are nested here, (worker, {pattern: subtree}) or ("dead", [workers]), and flattened at the border. Nothing of
lbopt is imported: recursion, enumeration and digests are written a second time.
"""

import hashlib
import json

import numpy as np
from scipy.optimize import linprog
from solvers.certificates.naive_problem import Naive, View

# ---------------------------------------------------------------------- producing


def prices_at(naive, top, scale, rng):
    """Duals of the pattern program at one envelope, rounded; garbage now and then."""
    forced = naive.forced
    if rng.random() < 0.15 or not naive.open or not all(naive.fitting(g, top) for g in naive.open):
        return [rng.randint(-scale if must else 0, 3 * scale) for must in forced]
    columns = [(g, one) for g in naive.open for one in naive.fitting(g, top)]
    rows = np.array([[one.count(k) for _, one in columns] for k in range(len(forced))], dtype=float)
    one_each = np.array([[float(g == other) for other, _ in columns] for g in naive.open])
    loose = [k for k in range(len(forced)) if not forced[k]]
    fixed = [k for k in range(len(forced)) if forced[k]]
    answer = linprog(
        [-naive.size(one) for _, one in columns],
        A_ub=rows[loose] if loose else None,
        b_ub=[naive.counts[k] for k in loose] if loose else None,
        A_eq=np.vstack([one_each, rows[fixed]]),
        b_eq=[1.0] * len(naive.open) + [naive.counts[k] for k in fixed],
    )
    if answer.status != 0:  # no fractional assignment: any prices will do, the tree has to close it
        return [0] * len(forced)
    prices = [0] * len(forced)
    for k, dual in zip(loose, answer.ineqlin.marginals if loose else (), strict=True):
        prices[k] = max(0, round(-dual * scale))
    for k, dual in zip(fixed, answer.eqlin.marginals[len(naive.open) :], strict=True):
        prices[k] = round(-dual * scale)
    return prices


def grow(view, left, undecided, budget, rng):
    """A tree by plain recursion; where nothing refutes the node it lies: a leaf that is not dead."""
    if view.is_dead(undecided, undecided, left, budget) or not undecided:
        named = list(undecided)
        for g in undecided:  # name as few workers as will do
            fewer = [other for other in named if other != g]
            if view.is_dead(fewer, undecided, left, budget):
                named = fewer
        return ("dead", named)
    g = rng.choice(undecided)
    children = {}
    for one in view.viable(g, left, budget):
        rest = [n - one.count(k) for k, n in enumerate(left)]
        others = [other for other in undecided if other != g]
        children[one] = grow(view, rest, others, budget - view.best[g] + view.profit[one], rng)
    return (g, children)


def produce(problem, bound, rng, scale=None):
    """A certificate for `bound`, nested; it holds if `bound` is true, and lies as little as possible otherwise."""
    naive = Naive(problem)
    scale = scale or rng.choice([1, 2, 64, 1000])
    prices, nodes = [], []
    tops = naive.relevant(bound) if bound > 0 else range(0)
    while tops:
        low = tops[0]
        if rng.random() < 0.5 or not prices:
            prices.append(prices_at(naive, low, scale, rng))
        index = rng.randrange(len(prices))
        ends = [end for end in naive.last_before_change(low) if end < tops[-1]] + [tops[-1]]
        high = rng.choice([low, ends[0]])
        for end in ends[: rng.choice([0, 1, 3, 9])]:
            view = View(naive, prices[index], scale, end)
            if view.possible and view.value >= scale * naive.needed(low, bound):
                break
            high = end
        high -= (high - low) % naive.unit
        view = View(naive, prices[index], scale, high)
        tree = None
        if view.possible and (budget := view.value - scale * naive.needed(low, bound)) >= 0:
            tree = grow(view, naive.counts, naive.open, budget, rng)
        nodes.append({"envelopes": [low, high + rng.randrange(naive.unit)], "prices": index, "tree": tree})
        done = (high - low) // naive.unit + 1
        tops = tops[done:]
    rng.shuffle(nodes)
    return {"problem_digest": problem.digest, "bound": bound, "scale": scale, "prices": prices, "nodes": nodes}


# ---------------------------------------------------------------------- checking


def holds(problem, nested):
    """Whether a nested certificate proves its bound, read literally; malformed ones prove nothing."""
    naive, bound, scale = Naive(problem), nested["bound"], nested["scale"]
    if nested["problem_digest"] != problem.digest:
        return False
    count = len(naive.classes)
    if any(any(vector[count:]) for vector in nested["prices"]):
        return False
    vectors = [(vector + [0] * count)[:count] for vector in nested["prices"]]  # the file leaves zeros out
    if any(vector[k] < 0 and not naive.forced[k] for vector in vectors for k in range(count)):
        return False
    if any(not 0 <= node["prices"] < len(nested["prices"]) for node in nested["nodes"]):
        return False
    if any(node["envelopes"][0] > node["envelopes"][1] for node in nested["nodes"]):
        return False
    if bound <= 0:
        return True
    missing = set(naive.relevant(bound))
    for node in nested["nodes"]:
        mine = [top for top in naive.relevant(bound) if node["envelopes"][0] <= top <= node["envelopes"][1]]
        if not mine:
            continue
        view = View(naive, vectors[node["prices"]], scale, mine[-1])
        missing -= set(mine)
        if not view.possible:
            continue
        budget = view.value - scale * naive.needed(mine[0], bound)
        if budget >= 0 and (node["tree"] is None or not _follow(view, node["tree"], naive.counts, naive.open, budget)):
            return False
    return not missing


def _follow(view, tree, left, undecided, budget):
    """Whether the tree closes; `left` is None where no assignment goes, and then only the form of records counts."""
    who, what = tree
    if who == "dead":
        return left is None or budget < 0 or view.is_dead(undecided, undecided, left, budget)
    if left is not None and who not in undecided:
        return False
    if left is not None and any(
        len(one) != view.naive.slots[who] or max(one) >= len(view.naive.classes) for one in what
    ):
        return False
    others = [other for other in undecided if other != who]
    if left is not None and not set(view.viable(who, left, budget - view.lost(others, left))) <= set(what):
        return False
    for one, child in what.items():
        rest = None if left is None else [n - one.count(k) for k, n in enumerate(left)]
        if rest is not None and (min(rest) < 0 or one not in view.fitting[who]):
            rest = None
        lost = 0 if rest is None else view.best[who] - view.profit[one]
        if not _follow(view, child, rest, others, budget - lost):
            return False
    return True


# ---------------------------------------------------------------------- the border


def flat(tree):
    """Records in preorder."""
    who, what = tree
    if who == "dead":
        return [{"dead": what}]
    records = [{"worker": who, "patterns": [list(one) for one in what]}]
    for child in what.values():
        records += flat(child)
    return records


def sealed(content):
    """Add a digest that fits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "digest": hashlib.sha256(text.encode()).hexdigest()}


def to_dict(nested):
    """The certificate as JSON values, as the documented format says."""
    nodes = [
        {"envelopes": node["envelopes"], "prices": node["prices"]}
        | ({} if node["tree"] is None else {"tree": flat(node["tree"])})
        for node in nested["nodes"]
    ]
    return sealed(
        {
            "format": "lbopt-certificate",
            "version": 1,
            "problem_digest": nested["problem_digest"],
            "kind": "priced-envelopes",
            "bound": nested["bound"],
            "scale": nested["scale"],
            "prices": [[[k, price] for k, price in enumerate(row) if price] for row in nested["prices"]],
            "nodes": nodes,
        }
    )
