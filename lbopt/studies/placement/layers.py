"""Layers whose experts are to be placed: those of clusters of a synthetic workload, and independent random weights.

A world is drawn with twice as many requests as are fitted. The first half is clustered by its signatures
(count-idf, balanced K-means by cosine), as an offline fit does it; its decode shares weigh the experts of each cluster.
The other half, sent to the nearest centre, is what the placement meets in service: batches are drawn from it. Cluster c
gives its layer c mod L alone, so that the layers of a world have no request in common where they are of one depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment import BalancedKMeans
from lbopt.locality import (
    MoEShape,
    draw_workload,
    fit_idf,
    language_workload,
    signatures,
    task_workload,
    transformed,
)
from lbopt.locality.placement import activation_chances

Floats = NDArray[np.float64]

#: Synthetic workloads by name.
WORKLOADS = {"task": task_workload, "language": language_workload}

#: Laws of independent random weights, by name.
RANDOM = ("uniform", "exponential")

#: Requests that a cluster must meet in service to have batches drawn from them.
FEWEST_LIVE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One layer of one decoder.

    Parameters
    ----------
    cluster, layer
        Where it is from.
    weights
        float64 (E,), what a placement is made for.
    everywhere
        float64 (E,), weights of the same layer over all clusters; None for random weights.
    live
        float64 (n, E), decode shares of the requests that the decoder meets; None for random weights, or too few.
    """

    cluster: int
    layer: int
    weights: Floats
    everywhere: Floats | None
    live: Floats | None


@lru_cache(maxsize=1)
def layers_of(kind: str, shape: MoEShape, requests: int, clusters: int, batch: int, seed: int) -> tuple[Layer, ...]:
    """Return a layer of each cluster of one world, or as many of random weights; the last world is remembered."""
    if kind in RANDOM:
        rng = np.random.default_rng(seed)
        law = rng.random if kind == "uniform" else rng.standard_exponential
        return tuple(Layer(c, 0, law(shape.num_experts), None, None) for c in range(clusters))
    _, activity = draw_workload(WORKLOADS[kind](shape=shape, requests=2 * requests), seed)
    fitted, live = activity.decode[:requests], activity.decode[requests:]
    cells = transformed("count-idf", activity.counts, fit_idf(activity.counts[:requests]))
    rows = signatures(cells)
    model = BalancedKMeans(clusters, metric="cosine", n_init=2, random_state=seed % 2**32).fit(rows[:requests])
    near = model.predict(rows[requests:])
    everywhere = activation_chances(fitted, batch)
    found = []
    for c in range(clusters):
        layer = c % shape.num_layers
        weights = activation_chances(fitted[model.labels_ == c, layer], batch)
        met = live[near == c, layer]
        found.append(Layer(c, layer, weights, everywhere[layer], met if len(met) >= FEWEST_LIVE else None))
    return tuple(found)
