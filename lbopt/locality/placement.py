"""Expert placement: which rank of an expert-parallel decoder holds which experts of a layer, E/R of them each.

The step of a decoder waits for its busiest rank, and a rank is as busy as it has active experts. So experts are weighed
by the chance that they are active in a step of the decoder's own batches (`activation_chances`); the sum over a rank is
the active experts that it has on average, and the largest of these sums is what a placement makes small.

Greedy (`greedy_placement`): experts by falling weight, each to the least loaded rank that has room. Exact
(`placement_problem`): the step problem at horizon 0 on an empty cluster of R workers with E/R slots each, where all E
requests are admitted, the total is fixed, and least imbalance is least maximum. Any solver solves it:

    answer = lbopt.solve(placement_problem(weights, 16))
    ranks = placement_of(answer.assignment, 16)

Makespan with a fixed number of jobs a machine is strongly NP-hard. Layers of 128 experts on 4 to 16 ranks are mostly
solved in milliseconds all the same, because some of their many placements are perfectly even; with few experts a rank
none is, and proving that takes a search. What is even on average is not in every step: the mean of the busiest rank's
active experts exceeds the busiest mean, and `draw_active` with `most_active` gives it.

Source: ELDR (arXiv 2607.00466), per-decoder placement; its load, active experts and not tokens, is that of METRO (arXiv
2512.09277).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.locality.workload import Bools, Floats, Ints
from lbopt.model.integers import LARGEST_TOTAL
from lbopt.model.step_problem import StepProblem

#: Integers that an expert which is always active is worth: what rounding costs is `rounding_cost`.
SCALE = 10**5


def activation_chances(decode: ArrayLike, batch: int) -> Floats:
    """Return the chance that an expert is active in a step of a batch of the cluster: float64 (..., E) in [0, 1].

    The requests of a batch are independent draws from the cluster, with replacement: a decoder's next requests are
    like those captured and not the same. So the expectation over batches is exact, v = 1 - (1 - mean p)**B.

    Parameters
    ----------
    decode
        (N, ..., E) in [0, 1], fraction of decode steps of each of N >= 1 requests that chose the expert.
    batch
        B >= 1 requests.
    """
    shares = _shares(decode)
    whole("batch", batch, 1)
    with np.errstate(divide="ignore"):  # an expert that every request always chooses: log 0, and the chance is 1
        chances: Floats = -np.expm1(batch * np.log1p(-shares.mean(axis=0)))
    return np.clip(chances, 0.0, 1.0)


def greedy_placement(weights: ArrayLike, num_ranks: int) -> Ints:
    """Return the rank of each expert, int64 (E,): the heaviest first, each to the least loaded rank with room.

    Ties go to the lower expert and the lower rank.
    """
    values, room = _weights(weights, num_ranks)
    left, load = np.full(num_ranks, room), np.zeros(num_ranks)
    ranks = np.empty(values.size, dtype=np.int64)
    for expert in np.argsort(-values, kind="stable"):
        rank = int(np.argmin(np.where(left > 0, load, np.inf)))
        ranks[expert] = rank
        load[rank] += values[expert]
        left[rank] -= 1
    return ranks


def placement_problem(weights: ArrayLike, num_ranks: int, scale: int = SCALE) -> StepProblem:
    """Return the step problem whose exact answers are the placements of least largest load.

    Rule: an expert's size is its weight times `scale`, rounded to the nearest integer, halves to even. The placement
    that is best for the sizes is at most `rounding_cost` from the best for the weights.
    """
    values, room = _weights(weights, num_ranks)
    whole("scale", scale, 1)
    most = float(values.max()) * scale * values.size * num_ranks
    if most > LARGEST_TOTAL:
        raise InputError(
            f"scale is {scale}, which makes loads of {most:.3g}, beyond 2**62; take a scale of at most "
            f"{int(scale * LARGEST_TOTAL / most):,}"
        )
    sizes = np.rint(values * scale).astype(np.int64)
    empty = np.zeros(num_ranks, dtype=np.int64)
    return StepProblem.now(empty, np.full(num_ranks, room), sizes)


def placement_of(assignment: ArrayLike | None, num_ranks: int) -> Ints:
    """Return ranks, int64 (E,), from a solver's assignment; numbered by the lowest expert that they hold.

    Raises
    ------
    InputError
        Where there is no assignment, or it does not put E/R experts on each rank.
    """
    if assignment is None:
        raise InputError("the solver found no assignment; give it more time")
    workers = np.asarray(assignment)
    if workers.dtype.kind not in "iu":
        raise InputError(f"the assignment holds {workers.dtype} values; expected the rank of each expert")
    room = _room(workers.size, num_ranks)
    if workers.ndim != 1 or workers.min() < 0 or workers.max() >= num_ranks:
        raise InputError(
            f"the assignment is not the rank, 0 to {num_ranks - 1}, of each expert; every expert needs one"
        )
    counts = np.bincount(workers, minlength=num_ranks)
    if (counts != room).any():
        wrong = int(np.flatnonzero(counts != room)[0])
        raise InputError(f"rank {wrong} holds {counts[wrong]} experts; expected {room} on each of {num_ranks} ranks")
    _, first = np.unique(workers, return_index=True)
    number = np.empty(num_ranks, dtype=np.int64)
    number[workers[np.sort(first)]] = np.arange(num_ranks)
    renamed: Ints = number[workers]
    return renamed


def rank_loads(weights: ArrayLike, ranks: ArrayLike, num_ranks: int) -> Floats:
    """Return the sum of weights on each rank, float64 (R,): active experts on average, for activation chances."""
    values, _ = _weights(weights, num_ranks)
    loads: Floats = np.zeros(num_ranks)
    np.add.at(loads, _ranks(ranks, values.size, num_ranks), values)
    return loads


def load_bounds(weights: ArrayLike, num_ranks: int) -> tuple[float, float]:
    """Return two lower bounds of the largest load: the mean load, and the heaviest expert beside the lightest.

    Some rank is no lighter than the mean; and the rank of the heaviest expert holds E/R - 1 others, which weigh no less
    than as many of the lightest.
    """
    values, room = _weights(weights, num_ranks)
    ordered = np.sort(values)
    return float(values.sum() / num_ranks), float(ordered[-1] + ordered[: room - 1].sum())


def rounding_cost(num_experts: int, num_ranks: int, scale: int = SCALE) -> float:
    """Return by how much the largest load may exceed the least one, because weights were rounded: (E/R) / scale.

    A rank's sizes over `scale` are within (E/R) / 2 / scale of its weights, once for the placement that is best for the
    sizes and once for the one that is best for the weights.
    """
    return _room(num_experts, num_ranks) / scale


def draw_active(decode: ArrayLike, batch: int, draws: int, rng: np.random.Generator) -> Bools:
    """Draw steps of batches: which experts are active, bool (draws, E).

    Each draw takes `batch` requests with replacement. A request chooses exactly k experts, k being the sum of its row,
    and each with its own share: systematic sampling along experts in random order. Requests choose independently.

    Parameters
    ----------
    decode
        (N, E) in [0, 1] at one layer, fraction of decode steps of each request that chose the expert.
    batch, draws
        At least 1 each.
    """
    shares = _shares(decode)
    if shares.ndim != 2:
        raise InputError(f"decode has shape {shares.shape}; expected the requests of one layer, (N, E)")
    whole("batch", batch, 1)
    whole("draws", draws, 1)
    N, E = shares.shape
    active = np.zeros((draws, E), dtype=np.bool_)
    for draw in active:
        order = rng.permutation(E)
        reached = np.cumsum(shares[rng.integers(0, N, batch)][:, order], axis=1)
        passed = np.floor(reached + rng.random((batch, 1)))  # a request chooses where a whole number is passed
        draw[order] = (np.diff(passed, axis=1, prepend=0.0) > 0).any(axis=0)
    return active


def most_active(active: Bools, ranks: ArrayLike, num_ranks: int) -> Ints:
    """Return the active experts of the busiest rank in each step: int64 (draws,), of bool (draws, E)."""
    steps, experts = active.shape
    place = _ranks(ranks, experts, num_ranks)
    counts = np.zeros((steps, num_ranks), dtype=np.int64)
    for rank in range(num_ranks):
        counts[:, rank] = active[:, place == rank].sum(axis=1)
    busiest: Ints = counts.max(axis=1)
    return busiest


def _shares(decode: ArrayLike) -> Floats:
    shares = np.asarray(decode, dtype=np.float64)
    if shares.ndim < 2 or not shares.size:
        raise InputError(f"decode has shape {shares.shape}; expected (N, ..., E) with at least one request and expert")
    wrong = ~((shares >= 0) & (shares <= 1))
    if wrong.any():
        place = [int(i) for i in np.argwhere(wrong)[0]]
        raise InputError(f"decode{place} is {shares[tuple(place)]}; expected a share of steps, 0 to 1")
    return shares


def _weights(weights: ArrayLike, num_ranks: int) -> tuple[Floats, int]:
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"weights have shape {values.shape}; expected one for each expert of a layer, (E,)")
    room = _room(values.size, num_ranks)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        expert = int(np.flatnonzero(wrong)[0])
        raise InputError(f"the weight of expert {expert} is {values[expert]}; expected a finite number, 0 or more")
    return values, room


def _room(num_experts: int, num_ranks: int) -> int:
    """Return the experts of a rank."""
    whole("num_ranks", num_ranks, 1)
    if num_experts < 1 or num_experts % num_ranks:
        near = [r for r in range(1, num_experts + 1) if num_experts % r == 0]
        raise InputError(
            f"{num_experts} experts cannot be spread evenly over {num_ranks} ranks; "
            f"numbers of ranks that divide them are {', '.join(map(str, near)) or 'none'}"
        )
    return num_experts // num_ranks


def _ranks(ranks: ArrayLike, num_experts: int, num_ranks: int) -> NDArray[np.int64]:
    place = np.asarray(ranks, dtype=np.int64)
    if place.shape != (num_experts,) or place.min() < 0 or place.max() >= num_ranks:
        raise InputError(
            f"ranks have shape {place.shape}; expected 0 to {num_ranks - 1} for each of {num_experts} experts"
        )
    return place
