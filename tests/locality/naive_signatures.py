"""Signatures, distances, ranks and the greedy mask by their definitions alone, in loops."""

import math
from itertools import product


def idf(counts):
    N = len(counts)
    L, E = len(counts[0]), len(counts[0][0])
    df = [[sum(counts[r][layer][e] >= 1 for r in range(N)) for e in range(E)] for layer in range(L)]
    return [[math.log((N + 1) / (df[layer][e] + 1)) for e in range(E)] for layer in range(L)]


def signature(cells, layers):
    """Unit vector of one request's cells (L, E), or zeros."""
    flat = [float(x) for layer in layers for x in cells[layer]]
    length = math.sqrt(math.fsum(x * x for x in flat))
    return [x / length if length else 0.0 for x in flat]


def distance(x, y):
    return round(1 - math.fsum(a * b for a, b in zip(x, y, strict=True)), 12)


def average_ranks(values):
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]


def spearman(x, y):
    a, b = average_ranks(x), average_ranks(y)
    middle = (len(a) + 1) / 2
    up = sum((u - middle) * (v - middle) for u, v in zip(a, b, strict=True))
    down = sum((u - middle) ** 2 for u in a) * sum((v - middle) ** 2 for v in b)
    return up / math.sqrt(down) if down else 0.0


def quality(cells, decode, pairs, layers):
    L = len(decode[0])
    s = [signature(c, layers) for c in cells]
    p = [signature(c, range(L)) for c in decode]
    return spearman([distance(s[i], s[j]) for i, j in pairs], [distance(p[i], p[j]) for i, j in pairs])


def greedy(cells, decode, pairs):
    """Order and curve; candidates in ascending order of layer, and only a greater rho displaces one."""
    L = len(decode[0])
    order, curve = [], []
    while len(order) < L:
        best, at = -2.0, -1
        for layer in range(L):
            if layer not in order:
                rho = quality(cells, decode, pairs, sorted([*order, layer]))
                if rho > best + 1e-15:
                    best, at = rho, layer
        order.append(at)
        curve.append(best)
    return order, curve


def union(p):
    """Expected distinct experts of one layer, by every joint outcome; p (B, E)."""
    B, E = len(p), len(p[0])
    total = 0.0
    for e in range(E):
        for hits in product((0, 1), repeat=B):
            if any(hits):
                total += math.prod(p[r][e] if hits[r] else 1 - p[r][e] for r in range(B))
    return total
