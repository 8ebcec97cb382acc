"""The fleet as it is expected to be: loads at the nodes of a quadrature, kept from request to request.

Which steps of a request's life a policy looks at, and how much each counts: the face of the compiled quadrature.

J. Li, *The EP Barrier Tax* (2026). The cost of a worker is the expected sum, over the steps that the request lives, of
the tokens by which it would stand out above the heaviest worker of that step; see `lbopt.kernels.routing.fast_phi`.
Every step is exact and costs a sum over thousands of steps; K nodes are cheap.

Projecting costs a pass over all running requests; a placement only adds one. So while requests of one step come one by
one, the projection is kept, as long as every worker holds just what the placements have given it. Where each request
has a law of its own and there is no common one (the oracle), nodes depend on who is there, and it is made anew.

Requests that queue at a worker count as if they started now. An observation gives their number and tokens; their laws,
where they differ, are remembered from when they were placed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.state import Samples
from lbopt.kernels.routing.fast_phi.state import Board, Entries, How, Law
from lbopt.policies.observation import ActiveRequests, Observation
from lbopt.predictors import Forecast

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Quadrature:
    """A rule for sums over the steps 0, 1, ... of a request that may end in each of them.

    Parameters
    ----------
    nodes
        K; 0 = every step, which is the sum itself.
    product
        Weights that sum the survival exactly, at nodes of density sqrt(S); else trapezoid weights at percentiles.
    percentile
        Last percentile of the latter, up to 100.
    corrected
        Whether the ends of the trapezoid count in full.
    gamma
        Survival gamma**h instead of that of the samples; None = by samples.
    longest
        h_max, the last step that counts; "mean" = the mean output, in whole steps; None = the longest output's last.
    """

    nodes: int = 5
    product: bool = False
    percentile: float = 100.0
    corrected: bool = False
    gamma: float | None = None
    longest: int | Literal["mean"] | None = None

    def num_steps(self, outputs: Ints) -> int:
        """Return T, how many steps count where outputs are as the ascending `outputs`, int64 (n,)."""
        longest = int(outputs.mean()) if self.longest == "mean" else self.longest
        if longest is None:
            return max(1, int(outputs[-1]))
        if self.gamma is None:
            return max(1, min(longest + 1, int(outputs[-1])))
        return longest + 1

    def nodes_for(self, outputs: Ints) -> Ints:
        """Return the nodes, int64 (at most K,), from 0 up, for outputs as the ascending `outputs`, int64 (n,)."""
        from lbopt.kernels.routing.fast_phi import quadrature

        steps = self.num_steps(outputs)
        if self.nodes == 0 or (self.product and self.nodes >= steps):
            return np.arange(steps)
        found = np.zeros(self.nodes, dtype=np.int64)
        if self.product:
            one_bucket = np.array([0, outputs.size], dtype=np.int64)
            used = quadrature.root_nodes(self.curve(outputs, one_bucket, 0, steps), found)
        else:
            used = quadrature.percentile_nodes(outputs, self.percentile, steps, found)
        return found[:used]

    def curve(self, outputs: Ints, starts: Ints, bucket: int, num_steps: int) -> Floats:
        """Return the survival of a request of `bucket` that starts now, float64 (num_steps,).

        Parameters
        ----------
        outputs, starts
            int64: outputs of the samples, ascending in each bucket, and where each bucket starts.
        """
        from lbopt.kernels.routing.fast_phi.projection import survival_curve

        if self.gamma is not None:
            return self.decay(np.arange(num_steps))
        curve = np.ones(num_steps)  # where nothing is known, it stays
        survival_curve(outputs, starts, bucket, curve)
        return curve

    def decay(self, steps: Ints) -> Floats:
        """Return gamma**h at `steps`, int64 (K,); nothing where survival is by samples."""
        return np.empty(0) if self.gamma is None else np.power(self.gamma, steps.astype(np.float64))

    def coefficients(self, nodes: Ints, curve: Floats) -> Floats:
        """Return weight times survival at each node, float64 (K,), for a request of survival `curve`, float64 (T,)."""
        from lbopt.kernels.routing.fast_phi import quadrature

        if nodes.size == curve.size:
            return curve
        weights = np.empty(nodes.size)
        if self.product and nodes.size > 1:
            quadrature.product_weights(curve, nodes, weights)
            return weights
        quadrature.trapezoid_weights(nodes, self.corrected, weights)
        found: Floats = weights * curve[nodes]
        return found


#: Nodes times workers, 1 GiB of loads.
LARGEST_PROJECTION = 2**27

Lengths = int | Ints  # the bucket, or the samples themselves where buckets last for one observation only
Queued = list[tuple[int, int, int, Lengths | None]]  # worker, number, tokens, and lengths; None stands for all of them


class ProjectedFleet:
    """Expected loads of every worker, and what the next request would cost on each.

    Parameters
    ----------
    quadrature
        Nodes and weights.
    growth
        Whether a request grows by a token a step.
    stays
        Whether a request beyond all samples counts as staying.
    drift, by_mean, ties_by_load
        As in `lbopt.kernels.routing.fast_phi.route`.
    """

    board: Board
    nodes: Ints  #: int64 (K,), steps ahead
    _known: Samples
    _counts: Floats
    _laws: dict[int, Law]
    _queued_buckets: Ints
    _steps: int
    _common: bool

    def __init__(
        self,
        quadrature: Quadrature,
        *,
        growth: bool = True,
        stays: bool = True,
        drift: float = 0.0,
        by_mean: bool = False,
        ties_by_load: bool = True,
    ) -> None:
        self.quadrature = quadrature
        self._stays = stays
        self._how = How(drift, by_mean, int(growth), ties_by_load)
        self._step = -1
        self._samples: Samples | None = None
        self._total_age = 0
        self._bound: dict[int, deque[tuple[int, Lengths]]] = {}

    def see(self, observation: Observation, active: ActiveRequests, forecast: Forecast, samples: Samples) -> None:
        """Bring the projection up to date with `observation`.

        Parameters
        ----------
        samples
            Samples of outputs on which the forecast rests.
        """
        from lbopt.kernels.routing.fast_phi.route import still_as_placed

        if (
            samples is self._samples
            and observation.step == self._step
            and self.board.tokens.size == observation.loads.size
            and still_as_placed(
                self.board.tokens,
                self.board.requests,
                self._total_age,
                observation.loads,
                observation.queued_tokens,
                observation.running,
                observation.queued,
                active.generated,
            )
        ):
            return
        self._rebuild(observation, active, forecast, samples)

    def place(self, size: int, bucket: int, free: Ints) -> int:
        """Place a request of `size` tokens and return its worker, -1 where no slot is free; `free` is changed."""
        from lbopt.kernels.routing.fast_phi.route import route

        worker = int(route(self.board, self._laws.get(bucket) or self._law_of(bucket), self._how, size, free))
        starts = self._known.starts
        if worker >= 0 and starts.size > 2:  # else all are alike
            own: Lengths = bucket if self._common else self._known.outputs[starts[bucket] : starts[bucket + 1]].copy()
            self._bound.setdefault(worker, deque()).append((size, own))
        return worker

    def costs(self, size: int, bucket: int) -> Floats:
        """Return what a request of `size` tokens would cost on each worker, float64 (G,), tokens times steps."""
        from lbopt.kernels.routing.fast_phi.route import overflow_costs

        overflow_costs(self.board, self._laws.get(bucket) or self._law_of(bucket), self._how, size)
        return self.board.cost.copy()

    def _law_of(self, bucket: int) -> Law:
        """Return how long a request of `bucket` is expected to run."""
        curve = self.quadrature.curve(self._known.outputs, self._known.starts, bucket, self._steps)
        law = Law(self.quadrature.coefficients(self.nodes, curve), curve[self.nodes])
        self._laws[bucket] = law
        return law

    def _rebuild(self, observation: Observation, active: ActiveRequests, forecast: Forecast, samples: Samples) -> None:
        from lbopt.kernels.routing.fast_phi.projection import project

        assert forecast.active_buckets is not None and forecast.waiting_buckets is not None
        self._common = bool(samples.starts[1] > 0)
        queued = self._queued(observation, samples)
        num_workers = observation.loads.size
        self._take_samples(samples, queued, num_workers)
        zeros = np.zeros(len(queued), dtype=np.int64)
        columns = np.array([(g, n, t) for g, n, t, _ in queued], dtype=np.int64).reshape(-1, 3)
        entries = Entries(
            worker=np.concatenate([active.worker, columns[:, 0]]),
            size=np.concatenate([active.size, columns[:, 2]]),
            members=np.concatenate([np.ones_like(active.worker), columns[:, 1]]),
            age=np.concatenate([active.generated, zeros]),
            bucket=np.concatenate([forecast.active_buckets, self._queued_buckets]),
        )
        load = np.empty((self.nodes.size, num_workers))
        decay = self.quadrature.decay(self.nodes)
        project(self._known, self._counts, decay, self.nodes, self._how.growth, self._stays, entries, load)
        self.board = Board(
            nodes=self.nodes,
            load=load,
            peak=load.max(axis=1),
            tokens=observation.loads + observation.queued_tokens,
            requests=observation.running + observation.queued,
            cost=np.empty(num_workers),
        )
        self._total_age = int(active.generated.sum())
        self._step = observation.step

    def _queued(self, observation: Observation, samples: Samples) -> Queued:
        """Return worker, number, tokens and law of what queues; None stands for all of them."""
        if samples is not self._samples and self._common:
            self._bound.clear()  # buckets of other samples
        found: Queued = []
        for worker in np.flatnonzero(observation.queued):
            g, number, tokens = int(worker), int(observation.queued[worker]), int(observation.queued_tokens[worker])
            last = list(self._bound.get(g, ()))[-number:]  # a worker takes from the head of its queue
            if len(last) == number and sum(size for size, _ in last) == tokens:
                found += [(g, 1, size, law) for size, law in last]
                self._bound[g] = deque(last)
            else:
                found.append((g, number, tokens, None))
        self._bound = {g: last for g, last in self._bound.items() if observation.queued[g]}
        return found

    def _take_samples(self, samples: Samples, queued: Queued, num_workers: int) -> None:
        """Choose nodes, and lay out the samples so that whatever queues has a bucket too."""
        if self._common:
            self._queued_buckets = np.array([law if isinstance(law, int) else 0 for *_, law in queued], dtype=np.int64)
            if samples is self._samples and self.board.tokens.size == num_workers:
                return
            self._samples = self._known = samples
            all_outputs = samples.outputs[: samples.starts[1]]
        else:
            self._samples = None
            own = [law for *_, law in queued if isinstance(law, np.ndarray)]
            all_outputs = np.sort(np.concatenate([samples.outputs, *own]))
            if all_outputs.size == 0:
                raise InputError("policy 'fast-phi' is shown a forecast without a single sample of an output length")
            parts = [*own, all_outputs]
            more = samples.starts[-1] + np.cumsum([part.size for part in parts])
            bucket = samples.starts.size - 1
            self._known = Samples(
                outputs=np.concatenate([samples.outputs, *parts]),
                starts=np.concatenate([samples.starts, more]),
                sums=np.empty(0, dtype=np.int64),  # not asked for
            )
            places = iter(range(bucket, bucket + len(own)))
            self._queued_buckets = np.array(
                [next(places) if isinstance(law, np.ndarray) else bucket + len(own) for *_, law in queued],
                dtype=np.int64,
            )
        self._steps = self.quadrature.num_steps(all_outputs)
        wanted = self.quadrature.nodes or self._steps
        if min(wanted, self._steps) * num_workers > LARGEST_PROJECTION:
            self._samples = None
            raise InputError(
                f"policy 'fast-phi' would look at {wanted} steps of {num_workers} workers, more than "
                f"{LARGEST_PROJECTION} loads; look at fewer with nodes=K or longest=STEPS"
            )
        self._counts = _counts(all_outputs) if self._common else np.empty(0)
        self.nodes = self.quadrature.nodes_for(all_outputs)
        self._laws = {}


def _counts(outputs: Ints) -> Floats:
    from lbopt.kernels.routing.fast_phi.projection import count_beyond

    counts = np.empty(int(outputs[-1]))
    count_beyond(outputs, 0, outputs.size, counts)
    return counts
