"""One world of the study: gates, prompts and a calibration set are drawn, tables are fitted, and every rule runs.

All rules of a world get the same requests. Tables are fitted to other prompts than those that run.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.families.experts import draw_requests, expert_workload
from lbopt.locality import (
    TRANSFORMS,
    ExpertActivity,
    GateLaw,
    RoutingFit,
    RoutingTable,
    WorkloadConfig,
    expected_union,
    fit_idf,
    fit_routing,
    sample_pairs,
    signature_quality,
    signatures,
    transformed,
)
from lbopt.model import Fleet, RequestExperts, Trace
from lbopt.policies import Policy, make_policy
from lbopt.policies.experts import calibration, eldr_by
from lbopt.simulator import SimulationSetting, TraceTimes, simulate, simulate_decoders
from lbopt.studies.grid import Row
from lbopt.studies.locality.laws import behind_prefill, law_of
from lbopt.studies.locality.plan import RATE, WORKERS, PlannedRun

#: No worker ever runs so many: the source says nothing of requests that wait for a slot.
SLOTS = 2048
#: Seconds for which requests go on coming after those that are looked at, which would end in an emptying fleet without.
COOL_DOWN = 30.0
CALIBRATION_ROUNDS = 8
#: Prefill workers of the source, and a prefill of GPT-OSS-120B alone: all weights are read once, 61 GB at 3.71 TB/s,
#: and a token is 5.1e9 numbers, twice, at 400 TFLOP/s.
PREFILL_WORKERS, PREFILL_SECONDS, PREFILL_SECONDS_PER_TOKEN = 8, 16.5e-3, 25e-6
#: Batch sizes of the published unions, and batches that each is averaged over.
BATCHES, DRAWN = (32, 64, 128), 40
WIDTHS_OF_BANDS = (0.05, 0.1, 0.2, 0.3)


def measure(
    *, workload: str, law: dict[str, Any], runs: list[str], signatures: bool, seed: int, **world: Any
) -> dict[str, Any]:
    """Return what each run was like, by its key, and what the signatures are like.

    Parameters
    ----------
    law
        Parameters of the gate.
    signatures
        Whether signatures are judged too.
    world
        `seconds` of a run, of which the first `warm_up` are left out; different `prompts`; `layers` of the model. The
        `version` is part of the key of the task and not used otherwise.
    """
    given = Row(**world)
    family = expert_workload(f"moe-{workload}")
    drawn = replace(family, shape=replace(family.shape, num_layers=given.layers), law=GateLaw(**law))
    planned = [PlannedRun.of_key(key) for key in runs]
    most = max((run.rate for run in planned), default=1.0)

    @cache
    def world_of(chosen: int, generalists: int) -> _World:
        shape = replace(drawn.shape, experts_per_token=chosen)
        changed = replace(drawn, shape=shape, law=replace(drawn.law, generalists=generalists))
        return _World(drawn if (chosen, generalists) == usual else changed, seed, given.prompts, given.seconds, most)

    usual = (drawn.shape.experts_per_token, drawn.law.generalists)
    found = {}
    for run in planned:
        model = law_of(run.law)
        gate = (model.experts_per_token, model.generalists) if run.law else usual
        found[run.key] = _run(run, world_of(*gate), (given.warm_up, given.seconds))
    return {"runs": found, "signatures": _of_signatures(world_of(*usual)) if signatures else {}}


class _World:
    """Requests of every rate, and tables by clusters, transform and number of workers, made when first asked for."""

    def __init__(self, law: WorkloadConfig, seed: int, prompts: int, seconds: float, most: float) -> None:
        self.seed, self._seconds = seed, seconds
        # often enough that every prompt comes
        often = CALIBRATION_ROUNDS * prompts
        self.training = draw_requests("calibration", law, often, (seed, 0), (seed, 2), rate=1.0, profiles=prompts)
        expected = (seconds + COOL_DOWN) * most
        count = math.ceil(expected + 6 * math.sqrt(expected))
        self._whole = draw_requests(f"seed {seed}", law, count, (seed, 0), (seed, 1), rate=1.0, profiles=prompts)
        self.requests = cache(self._requests)
        self.prefilled = cache(self._prefilled)
        self.fit = cache(self._first_fit)
        self.table = cache(self._table)

    @property
    def experts(self) -> RequestExperts:
        """Expert use of the calibration set."""
        return _experts(self.training)

    def _requests(self, rate: float) -> Trace:
        """Return the requests at a rate: the same prompts in the same order, nearer together or farther apart."""
        whole = self._whole
        assert whole.arrival is not None
        times = whole.arrival / rate
        until = int(np.searchsorted(times, self._seconds + COOL_DOWN))
        return Trace(
            prompt=whole.prompt[:until],
            output=whole.output[:until],
            arrival=times[:until],
            name=whole.name,
            experts=_experts(whole).of_requests(slice(until)),
        )

    def _prefilled(self, rate: float) -> Trace:
        """Return the same requests when a prefill worker has computed their whole prompt: each takes the first free."""
        trace = self.requests(rate)
        assert trace.arrival is not None
        free, ready = [0.0] * PREFILL_WORKERS, np.empty(len(trace))
        for i, (time, tokens) in enumerate(zip(trace.arrival.tolist(), trace.prompt.tolist(), strict=True)):
            ready[i] = max(time, heapq.heappop(free)) + PREFILL_SECONDS + PREFILL_SECONDS_PER_TOKEN * tokens
            heapq.heappush(free, float(ready[i]))
        order = np.argsort(ready, kind="stable")
        return Trace(
            prompt=trace.prompt[order],
            output=trace.output[order],
            arrival=ready[order],
            name=trace.name,
            experts=_experts(trace).of_requests(order),
        )

    def _first_fit(self, transform: str) -> RoutingFit:
        return fit_routing(calibration(self.experts), WORKERS, transform=transform, seed=self.seed)

    def _table(self, workers: int, clusters: str, transform: str) -> RoutingTable:
        fit = self.fit(transform)
        if workers == WORKERS and clusters == "balanced":
            return fit.table
        return fit.for_workers(workers, balanced=clusters == "balanced").table


def _experts(trace: Trace) -> RequestExperts:
    assert trace.experts is not None
    return trace.experts


def _router(run: PlannedRun, world: _World) -> Policy:
    """Return the rule; eldr gets a table that was fitted once for all its runs."""
    name, _, options = run.policy.partition(":")
    if name != "eldr":
        return make_policy(run.policy)
    given = dict(pair.split("=") for pair in options.split(",") if pair)
    table = world.table(run.workers, given.get("clusters", "balanced"), given.get("transform", "count-idf"))
    return eldr_by(table, float(given.get("tau", 0.1)))


def _run(run: PlannedRun, world: _World, window: tuple[float, float]) -> dict[str, float]:
    """Return what a rule did: seconds a token, experts in use, and how evenly requests were spread."""
    trace = world.prefilled(run.rate) if behind_prefill(run.law) else world.requests(run.rate)
    policy = _router(run, world)
    setting = SimulationSetting(Fleet(run.workers, SLOTS), TraceTimes(), step_time=law_of(run.law).step)
    arrival = trace.arrival
    assert arrival is not None
    looked_at = (arrival >= window[0]) & (arrival < window[1])
    if run.fleet == "decoders":
        alone = simulate_decoders(trace, policy, setting, seed=world.seed, training=world.training, window=window)
        of_steps = {
            "experts": alone.active_experts,
            "running": alone.mean_running,
            "busiest_over_mean": alone.busiest_over_mean,
        }
        tpot, waits = alone.tpot[looked_at], (alone.start - alone.arrival)[looked_at]
    else:
        together = simulate(trace, policy, setting, seed=world.seed, training=world.training, keep_loads=True)
        clock, start = together.steps["clock"], together.requests["start_clock"]
        rows = (clock >= window[0]) & (clock < window[1])
        spent = together.steps["seconds"][rows]
        loads = np.average(together.steps["barrier_loads"][rows], axis=0, weights=spent)
        of_steps = {
            "experts": float(together.steps["experts"][rows].mean()),
            "running": float(together.steps["active"][rows].mean() / run.workers),
            "busiest_over_mean": float(loads.max() / loads.mean()),
        }
        tpot = ((together.requests["finish_clock"] - start) / trace.output)[looked_at]
        waits = (start - arrival)[looked_at]
    p50, p99 = (float(value) for value in np.quantile(tpot, (0.5, 0.99)))
    return {"p50": p50, "p99": p99, **of_steps, "wait": float(np.median(waits))}


def _of_signatures(world: _World) -> dict[str, Any]:
    """Return rho of the transforms, what the layer mask adds, unions of batches, and how wide bands are."""
    experts, fit = world.experts, world.fit("count-idf")
    activity = calibration(experts)
    pairs = sample_pairs(len(activity.counts), world.seed)
    idf = fit_idf(activity.counts)
    rho = {
        name: signature_quality(signatures(transformed(name, measured, idf)), activity.decode, pairs)
        for name, kind in TRANSFORMS.items()
        if (measured := getattr(activity, kind)) is not None
    }
    similar = fit.table.similarities(_experts(world.requests(RATE)).chosen)
    bands = {
        f"{width:g}": float(np.median((similar >= similar.max(axis=1, keepdims=True) - width).sum(axis=1)))
        for width in WIDTHS_OF_BANDS
    }
    prefill, decode = activity.counts.sum(axis=0), activity.decode.sum(axis=0)
    return {
        "rho": rho,
        "mask_gain": fit.quality - fit.quality_of_all,
        "kept": int(fit.table.layers.size),
        "layers": int(experts.shape[0]),
        "alike": float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(prefill, decode, strict=True)])),
        "fewer": {str(B): _fewer(activity, B, np.random.default_rng((world.seed, B))) for B in BATCHES},
        "bands": bands,
    }


def _fewer(activity: ExpertActivity, batch: int, rng: np.random.Generator) -> float | None:
    """Return by what share a batch of one domain uses fewer experts than a mixed one; None where none is large enough.

    Batches are drawn without replacement: a prompt that comes twice would use fewer experts in any batch.
    """
    counts = np.bincount(activity.domain)
    if counts.max() < batch:
        return None
    large = np.flatnonzero(counts >= batch)
    mixed, same = 0.0, 0.0
    for _ in range(DRAWN):
        domain = rng.choice(large, p=counts[large] / counts[large].sum())
        mixed += _union(activity, rng.choice(len(activity.domain), batch, replace=False))
        same += _union(activity, rng.choice(np.flatnonzero(activity.domain == domain), batch, replace=False))
    return 1 - same / mixed


def _union(activity: ExpertActivity, rows: NDArray[np.int64]) -> float:
    return float(expected_union(activity.decode[rows]).mean())
