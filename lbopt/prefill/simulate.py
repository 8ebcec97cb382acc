"""`simulate_prefill`: requests through gated prefill passes.

The compiled loop in `kernels.prefill` does the work and comes back when its rows are full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError, LbOptError
from lbopt.kernels.arrays import record, records
from lbopt.kernels.prefill import codes
from lbopt.kernels.prefill.allocation import Batch
from lbopt.kernels.prefill.state import (
    FINISHED,
    INSTANCE,
    PASS,
    PAUSED,
    PROGRESS,
    QUEUE,
    STATUS,
    STUCK,
    Passes,
    Requests,
    Setting,
    State,
)
from lbopt.model import Trace
from lbopt.prefill.policies import DispatchPolicy
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.run import PrefillRun
from lbopt.prefill.setting import ENGINES, PrefillSetting

if TYPE_CHECKING:
    from lbopt.prefill.messages import Messages
    from lbopt.prefill.protocol.faults import FaultPlan

ROWS_PER_CHUNK = 65_536
#: Deviations of predicted pass times that are drawn; after so many passes they come again.
DEVIATIONS = 65_536


def simulate_prefill(
    requests: PrefillRequests | Trace,
    setting: PrefillSetting,
    *,
    seed: int,
    keep_units: bool = False,
    faults: FaultPlan | None = None,
    messages: Messages | None = None,
) -> PrefillRun:
    """Run `requests` through the instances of `setting` until each is finished or refused.

    Parameters
    ----------
    requests
        Prompts with arrival times; of a trace, its prompts at its times.
    setting
        Instances, passes, policy.
    seed
        Feeds the random phases at the start and the policy that draws instances.
    keep_units
        Keep the tokens of every unit in every pass, column ``of_unit`` of the passes.
    faults, messages
        What goes wrong, and how scheduler and instances talk. Where one is given, the run is in the world of messages,
        with the same instances and rules, and a `MessageRun` is returned. It takes some 100 times as long.
    """
    begin = compile_time.clock()
    if isinstance(requests, Trace):
        requests = PrefillRequests.of_trace(requests)
    if faults is not None or messages is not None:
        from lbopt.prefill.messages import Messages, run_messages
        from lbopt.prefill.protocol.faults import FaultPlan

        return run_messages(requests, setting, seed, faults or FaultPlan(), messages or Messages())
    simulation = Simulation(requests, setting, seed, keep_units)
    simulation.run()
    return simulation.result(compile_time.clock() - begin)


class Simulation:
    """A run that can be looked at on its way."""

    def __init__(self, requests: PrefillRequests, setting: PrefillSetting, seed: int, keep_units: bool = False) -> None:
        self._requests, self.setting, self._seed, self._keep_units = requests, setting, seed, keep_units
        self._truth = _requests_of(requests, setting, seed)
        self._rules = _rules_of(setting, seed)
        self.state = _fresh_state(len(requests), setting, seed)
        self.batch = _fresh_batch(self._truth, setting)
        D = setting.units_per_instance
        self._rows = _fresh_rows(max(4 * setting.num_instances, ROWS_PER_CHUNK), D, keep_units)
        self._chunks: list[dict[str, NDArray[Any]]] = []

    def run(self, moments: int = -1) -> bool:
        """Run on for so many moments (negative: to the end); returns whether the end was reached."""
        from lbopt.kernels.prefill.loop import run

        progress = self.state.progress
        progress.moments_left = moments
        while True:
            why = run(self._truth, self._rules, self.state, self.batch, self._rows)
            if why == PAUSED:
                return False
            self._keep_rows()
            if why == FINISHED:
                return True
            if why == STUCK:
                raise LbOptError(
                    f"policy '{self.setting.dispatch.name}' with allocation '{self.setting.allocation}' leaves "
                    f"{progress.unfinished} requests waiting although nothing more will happen"
                )

    def result(self, seconds: float) -> PrefillRun:
        """Return what happened."""
        state = self.state
        passes = {name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in self._chunks[0]}
        status = {name: state.status[name].copy() for name in STATUS.names or ()}
        served = status["last_pass"] >= 0
        finished = np.full(len(self._requests), np.nan)
        finished[served] = passes["end"][status["last_pass"][served]]
        columns = {
            "arrival": self._requests.arrival,
            "dispatched": status["dispatched"],
            "began": status["began"],
            "finished": finished,
            "instance": status["instance"],
            "unit": status["unit"],
            "passes": status["served_by"],
            "deferred": self.batch.deferred.copy(),
        }
        return PrefillRun(self._requests, self.setting, self._seed, columns, passes, seconds)

    def _keep_rows(self) -> None:
        progress = self.state.progress
        used = int(progress.row)
        chunk = {name: self._rows.rows[name][:used].copy() for name in PASS.names or ()}
        if self._keep_units:
            chunk["of_unit"] = self._rows.of_unit[:used].copy()
        self._chunks.append(chunk)
        progress.passes += used
        progress.row = 0


def _requests_of(requests: PrefillRequests, setting: PrefillSetting, seed: int) -> Requests:
    N, D = setting.num_instances, setting.units_per_instance
    hits = np.zeros((0, 0, 0), dtype=np.int64) if requests.hits is None else requests.hits.copy()
    if requests.hits is not None and hits.shape[1:] != (N, D):
        raise InputError(f"hits are for {hits.shape[1]} instances of {hits.shape[2]} units; the setting has {N} of {D}")
    draws = setting.dispatch.code == codes.RANDOM
    uniforms = np.random.default_rng([seed, 1]).random(len(requests)) if draws else np.zeros(0)
    return Requests(requests.arrival.copy(), requests.length.copy(), hits, uniforms)


def _rules_of(setting: PrefillSetting, seed: int) -> Setting:
    policy, law, rule = setting.dispatch, setting.pass_time, setting.rule
    return Setting(
        policy=policy.code,
        allocation=rule.code,
        engine=ENGINES[setting.engine],
        idle_bypass=policy.idle_bypass,
        by_freedom=policy.by_freedom,
        while_left_over=policy.while_left_over,
        base=float(law.base),
        per_token=float(law.per_token),
        per_longest=float(law.per_longest),
        per_mean=float(law.per_mean),
        chunk=int(setting.chunk_tokens or codes.NO_LIMIT),
        capacity=int(setting.requests_per_pass or codes.NO_LIMIT),
        queue_limit=int(setting.queue_limit or codes.NO_LIMIT),
        latency=float(setting.latency),
        margin=float(policy.margin),
        spacing=float(policy.spacing),
        error=float(policy.error),
        deviations=_deviations(policy, seed),
        fixed_interval=-1.0 if policy.interval is None else float(policy.interval),
        change_at=np.array([at for at, _ in setting.topology], dtype=np.float64),
        change_to=np.array([to for _, to in setting.topology], dtype=np.int64),
    )


def _deviations(policy: DispatchPolicy, seed: int) -> NDArray[np.float64]:
    """Return standard normal draws for the predicted pass times; one 0 where no error is put on them."""
    return np.random.default_rng([seed, 4]).standard_normal(DEVIATIONS) if policy.error > 0 else np.zeros(1)


def _fresh_state(n: int, setting: PrefillSetting, seed: int) -> State:
    N, D, policy = setting.num_instances, setting.units_per_instance, setting.dispatch

    def ints(*shape: int, fill: int = 0) -> NDArray[np.int64]:
        return np.full(shape, fill, dtype=np.int64)

    phases = setting.initial_phases(seed)
    progress = record(PROGRESS)
    progress.unfinished = n
    progress.healthy = N
    mean_pass = setting.pass_time.base if policy.default_pass is None else policy.default_pass
    progress.next_end = phases[0]
    progress.next_reach = progress.timer = np.inf
    progress.next_change = setting.topology[0][0] if setting.topology else np.inf
    progress.last_dispatch = -np.inf
    progress.mean_pass = progress.law_seconds = mean_pass
    progress.last_start = -np.inf
    progress.margin = codes.LEAST_MARGIN
    progress.interval = (mean_pass + setting.latency) / N if policy.interval is None else policy.interval
    pooled = n if not policy.immediate else 0
    status, queues, instances = records(n, STATUS), records(N * D, QUEUE), records(N, INSTANCE)
    status.instance = status.unit = status.following = status.last_pass = -1
    status.dispatched = status.began = np.nan
    queues.first = queues.last = -1
    instances.running = -1
    instances.predicted_end = np.inf
    return State(
        status=status,
        waiting=ints(pooled),
        on_the_way=ints(n if setting.latency > 0 else 0),
        queues=queues,
        backlog=ints(N, D),
        instances=instances,
        ends=phases.copy(),
        touched=ints(N),
        window=np.zeros(policy.window),
        seen=np.zeros(policy.window),
        missed=np.zeros(policy.window),
        progress=progress,
    )


def _fresh_batch(truth: Requests, setting: PrefillSetting) -> Batch:
    n = truth.length.size
    shown, key, unit = np.zeros((3, 0 if setting.dispatch.immediate else n), dtype=np.int64)
    return Batch(setting.rule.record, truth.length, truth.hits, np.zeros(n, dtype=np.int64), shown, key, unit)


def _fresh_rows(count: int, D: int, keep_units: bool) -> Passes:
    of_unit = np.zeros((count if keep_units else 0, D), dtype=np.int64)
    return Passes(records(count, PASS), of_unit)
