"""The layers of one world at one number of ranks: the function that tasks of a placement study run.

What "proved" means: no placement has a largest load that is lower by more than the resolution. Two arguments give that,
and neither takes the search's word. Where the placement is least in integers, by one of the two bounds of
`lbopt.locality.placement` recomputed from the rounded weights or by `lbopt.solvers.verify` on the search's certificate,
rounding is all that is left. Else its largest load in the weights themselves may be within the resolution of a bound.

Layers whose experts are to be placed: those of clusters of a synthetic workload, and independent random weights.

A world is drawn with twice as many requests as are fitted. The first half is clustered by its signatures
(count-idf, balanced K-means by cosine), as an offline fit does it; its decode shares weigh the experts of each cluster.
The other half, sent to the nearest centre, is what the placement meets in service: batches are drawn from it. Cluster c
gives its layer c mod L alone, so that the layers of a world have no request in common where they are of one depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
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
from lbopt.locality.placement import (
    activation_chances,
    draw_active,
    greedy_placement,
    load_bounds,
    most_active,
    placement_of,
    placement_problem,
    rank_loads,
    rounding_cost,
)
from lbopt.model.integers import IntArray
from lbopt.solvers import solve, verify

#: A layer that is not proved in time is rounded otherwise, in multiples of the resolution: other integers are another
#: problem, often an easier one, and what it places may be good enough in the weights.
ROUNDINGS = (1.0, 3.0, 1 / 3, 2.0, 1.5, 5.0, 2 / 3, 10.0)


@dataclass(frozen=True, slots=True)
class _Exact:
    """A placement and how it stands, see `PlacedLayer`."""

    ranks: IntArray
    proof: str
    excess: float


def place(
    *, kind: str, R: int, experts: int, top_k: int, layers: int, requests: int, seed: int, **more: Any
) -> dict[str, Any]:
    """Return what greedy and the exact placement make of each layer, in experts.

    `more` are the fields `clusters`, `batch`, `draws`, `resolution` and `time_limit` of the configuration.
    """
    shape = MoEShape(layers, experts, top_k)
    found = layers_of(kind, shape, requests, more["clusters"], more["batch"], seed)
    return {"layers": [_compare(one, R, seed, **more) for one in found]}


def _compare(
    layer: Layer, R: int, seed: int, *, batch: int, draws: int, resolution: float, time_limit: float, **_: Any
) -> dict[str, Any]:
    greedy = greedy_placement(layer.weights, R)
    begin = compile_time.clock()
    exact = _exactly(layer.weights, greedy, R, resolution, time_limit)
    seconds = compile_time.clock() - begin
    loads = {"greedy": rank_loads(layer.weights, greedy, R), "exact": rank_loads(layer.weights, exact.ranks, R)}
    mean, heaviest = load_bounds(layer.weights, R)
    return {
        "cluster": layer.cluster,
        "layer": layer.layer,
        "mean_load": mean,
        "bound": max(mean, heaviest),
        "greedy": float(loads["greedy"].max()),
        "exact": float(loads["exact"].max()),
        "proof": exact.proof,
        "excess": exact.excess,
        "seconds": seconds,
        **_in_service(layer, greedy, exact.ranks, R, batch, draws, seed),
    }


def _exactly(weights: Floats, greedy: IntArray, R: int, resolution: float, time_limit: float) -> _Exact:
    """Place exactly, with one rounding after another until what is found is proved."""
    bound = max(load_bounds(weights, R))
    least = float(rank_loads(weights, greedy, R).max())
    best = _Exact(greedy, "none", math.inf)
    for factor in ROUNDINGS:
        scale = math.ceil(weights.size / R / (resolution * factor))
        ranks, proof = _at_scale(weights, greedy, R, scale, time_limit)
        rounding = rounding_cost(weights.size, R, scale)
        load = float(rank_loads(weights, ranks, R).max())
        if load > least:  # better in rounded weights alone: what is proved of it holds of greedy all the more
            load, ranks = least, greedy
        excess = max(0.0, load - bound)
        if proof != "none" and rounding <= resolution:
            return _Exact(ranks, proof, min(rounding, excess))
        if excess < best.excess:
            best = _Exact(ranks, "within" if excess <= resolution else "none", excess)
        if best.proof != "none":
            break
    return best


def _at_scale(weights: Floats, greedy: IntArray, R: int, scale: int, time_limit: float) -> tuple[IntArray, str]:
    problem = placement_problem(weights, R, scale)
    sizes = sorted(problem.work[:, 0].tolist())
    mean, heaviest = -(-sum(sizes) // R), sizes[-1] + sum(sizes[: len(sizes) // R - 1])

    def largest(ranks: IntArray) -> int:
        return max(int(problem.work[ranks == r, 0].sum()) for r in range(R))

    if largest(greedy) == max(mean, heaviest):  # nothing to search for
        return greedy, "mean" if mean >= heaviest else "heaviest"
    answer = solve(problem, "search", time_limit=time_limit, hint=greedy)
    if answer.stop_reason == "interrupted":
        raise KeyboardInterrupt
    ranks = placement_of(answer.assignment, R)
    if largest(ranks) == max(mean, heaviest):
        return ranks, "mean" if mean >= heaviest else "heaviest"
    if answer.proved and verify(problem, answer).bound_established:
        return ranks, str(answer.proof)
    return ranks, "none"


def _in_service(
    layer: Layer, greedy: IntArray, exact: IntArray, R: int, batch: int, draws: int, seed: int
) -> dict[str, Any]:
    """Return the mean active experts of the busiest rank, and of the rank that is busiest on average, over steps."""
    if layer.live is None or layer.everywhere is None:
        return {}
    rng = np.random.default_rng((seed, layer.cluster))  # the same steps at every number of ranks
    active = draw_active(layer.live, batch, draws, rng)
    chances = active.mean(axis=0)
    everywhere = greedy_placement(layer.everywhere, R)
    found: dict[str, Any] = {}
    for name, ranks in (("greedy", greedy), ("exact", exact), ("one_layout", everywhere)):
        found[f"busiest_{name}"] = float(most_active(active, ranks, R).mean())
        found[f"on_average_{name}"] = float(rank_loads(chances, ranks, R).max())
    return found


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
