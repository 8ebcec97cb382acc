"""`simulate_decoders`: decode workers that hold the whole model each and do not wait for each other.

The other simulation is of workers that meet at a barrier in every step; there a slow worker slows all. Here it slows
its own requests only, so that the median says what a typical worker does and the tail what the busiest does. This is
the deployment of ELDR's experiments (prefill-decode disaggregation, one accelerator a decoder).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import record, records
from lbopt.kernels.routing.codes import BAND, JSQ, JSQ_LOAD, POWER_OF_TWO, RANDOM, ROUND_ROBIN, VLLM
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, Policy
from lbopt.simulator.setting import ClosedLoop, SimulationSetting
from lbopt.simulator.state import fresh_state, requests_of, setting_of

#: Rules that bind a request by what its arrival finds.
_CODES = (BAND, JSQ, JSQ_LOAD, POWER_OF_TWO, RANDOM, ROUND_ROBIN, VLLM)


@dataclass(frozen=True, slots=True, eq=False)
class DecoderRun:
    """What happened.

    Parameters
    ----------
    worker
        int64 (N,), where each request ran.
    arrival, start, finish
        float64 (N,), s: when it came, began its first step, and ended.
    output
        int64 (N,), its tokens.
    steps
        int64 (G,), steps of each worker that began in the window.
    seconds, running, experts
        float64 or int64 (G,): seconds, requests, and different experts of a layer, summed over these steps.
    request_seconds
        float64 (G,), requests times seconds, summed over them.
    """

    worker: NDArray[np.int64]
    arrival: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    output: NDArray[np.int64]
    steps: NDArray[np.int64]
    seconds: NDArray[np.float64]
    running: NDArray[np.int64]
    experts: NDArray[np.float64]
    request_seconds: NDArray[np.float64]

    @property
    def tpot(self) -> NDArray[np.float64]:
        """Seconds per output token of each request, from the begin of its first step."""
        per_token: NDArray[np.float64] = (self.finish - self.start) / self.output
        return per_token

    @property
    def active_experts(self) -> float:
        """Different experts of a layer in use, mean over all steps of all workers in the window."""
        return float(self.experts.sum() / self.steps.sum())

    @property
    def mean_running(self) -> float:
        """Requests in a step, mean over all steps of all workers in the window."""
        return float(self.running.sum() / self.steps.sum())

    @property
    def busiest_over_mean(self) -> float:
        """Requests of the worker that runs most, over the mean: both as averages over time in the window."""
        return float(self.request_seconds.max() / self.request_seconds.mean())


def simulate_decoders(
    trace: Trace,
    policy: Policy,
    setting: SimulationSetting,
    *,
    seed: int = 0,
    training: Trace | None = None,
    window: tuple[float, float] = (0.0, math.inf),
) -> DecoderRun:
    """Run `policy` over `trace` on workers without a barrier until every request has ended.

    Parameters
    ----------
    trace
        Requests with arrival times.
    policy
        One that binds requests when they arrive and needs no Python: jsq, round-robin, eldr, ...
    setting
        Fleet, arrival times, and the step time, of which what all workers do together must be nothing.
    seed, training
        As in `simulate`.
    window
        Seconds from and to which steps are counted.
    """
    if not isinstance(policy, CompiledPolicy) or policy.admission != "immediate" or policy.code not in _CODES:
        raise InputError(
            f"policy '{policy.name}' cannot run on decoders without a barrier; expected one that binds a request when "
            "it arrives: jsq, jsq-load:admission=immediate, round-robin, random, power-of-two, "
            "vllm:version=2025, eldr or domain"
        )
    trace.refuse_eligibility("a fleet of decoders without a barrier")
    if setting.fleet.kv_capacity is not None:
        raise InputError("decoders without a barrier do not look at kv_capacity; leave it out")
    if setting.telemetry is not None:
        raise InputError("decoders without a barrier are seen as they are; leave telemetry out")
    if setting.detail is not None:
        raise InputError("decoders without a barrier do nothing in detail; leave detail out")
    if isinstance(setting.arrivals, ClosedLoop):
        raise InputError("decoders without a barrier take requests at the trace's times; expected arrivals of a trace")
    edges = np.array(window, dtype=np.float64)
    if edges.shape != (2,) or not edges[0] < edges[1]:
        raise InputError(f"window is {window}; expected the second at which it begins and a later one at which it ends")
    form = setting.form_for(trace)
    if form.per_mean_token or form.of_active.any():
        raise InputError(f"step time '{setting.law.name}' has a part that all workers do together; expected none")
    from lbopt.kernels.simulation.decoders import OF_WORKER, WINDOW, Decoders, run_decoders

    requests, G = requests_of(trace, policy, setting, seed, training), setting.fleet.num_workers
    state = fresh_state(setting.fleet, requests)
    counted, of_worker = record(WINDOW), records(G, OF_WORKER)
    counted.begin, counted.end = window
    of_worker.ends = np.inf
    last = np.full((G, state.calendar.size), -1)
    out = Decoders(of=of_worker, finish=np.zeros(len(trace)), last=last, next_to_end=np.full(len(trace), -1))
    run_decoders(requests, setting_of(policy, setting, trace), state, counted, out)
    columns: dict[str, Any] = {
        name: of_worker[name] for name in ("steps", "seconds", "running", "experts", "request_seconds")
    }
    times: dict[str, Any] = {"arrival": requests.arrival, "start": state.start_clock, "finish": out.finish}
    return DecoderRun(worker=state.worker, output=np.array(trace.output), **times, **columns)
