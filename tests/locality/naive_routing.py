"""The routing decision by its definition alone, in loops."""

import math


def similarities(row, centroids):
    """Cosines of one request's cells, flat, to unit centroids; 0 without mass."""
    length = math.sqrt(math.fsum(x * x for x in row))
    return [
        math.fsum(x * c for x, c in zip(row, centre, strict=True)) / length if length else 0.0 for centre in centroids
    ]


def band(near, tau):
    return [k for k, s in enumerate(near) if s >= max(near) - tau - 1e-12]


def route(near, load, tau):
    return min(band(near, tau), key=lambda k: (load[k], -near[k], k))
