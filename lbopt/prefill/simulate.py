"""`simulate_prefill`: requests through gated prefill passes.

The compiled loop in `kernels.prefill` does the work and comes back when its rows are full.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError, LbOptError
from lbopt.kernels.prefill import codes, tables
from lbopt.model import Trace
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.run import PrefillRun
from lbopt.prefill.setting import ENGINES, PrefillSetting

ROWS_PER_CHUNK = 65_536
_COUNTS = ("instance", "tokens", "fullest", "longest", "requests")  # the columns of `tables.Passes.counts`


def simulate_prefill(
    requests: PrefillRequests | Trace, setting: PrefillSetting, *, seed: int, keep_units: bool = False
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
    """
    begin = time.perf_counter()
    if isinstance(requests, Trace):
        requests = PrefillRequests.of_trace(requests)
    simulation = Simulation(requests, setting, seed, keep_units)
    simulation.run()
    return simulation.result(time.perf_counter() - begin)


class Simulation:
    """A run that can be looked at on its way."""

    def __init__(self, requests: PrefillRequests, setting: PrefillSetting, seed: int, keep_units: bool = False) -> None:
        self._requests, self._setting, self._seed, self._keep_units = requests, setting, seed, keep_units
        self._truth = _requests_of(requests, setting, seed)
        self._rules = _rules_of(setting)
        self.state = _fresh_state(len(requests), setting, seed)
        D = setting.units_per_instance
        self._rows = _fresh_rows(max(4 * setting.num_instances, ROWS_PER_CHUNK), D, keep_units)
        self._chunks: list[dict[str, NDArray[Any]]] = []

    def run(self, moments: int = -1) -> bool:
        """Run on for so many moments (negative: to the end); returns whether the end was reached."""
        from lbopt.kernels.prefill.loop import run

        counters = self.state.counters
        counters[tables.MOMENTS_LEFT] = moments
        while True:
            why = run(self._truth, self._rules, self.state, self._rows)
            if why == tables.PAUSED:
                return False
            self._keep_rows()
            if why == tables.FINISHED:
                return True
            if why == tables.STUCK:
                raise LbOptError(
                    f"policy '{self._setting.dispatch.name}' with allocation '{self._setting.allocation}' leaves "
                    f"{counters[tables.UNFINISHED]} requests waiting although nothing more will happen"
                )

    def result(self, seconds: float) -> PrefillRun:
        """Return what happened."""
        state = self.state
        passes = {name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in self._chunks[0]}
        record = dict(enumerate(state.records.T.copy()))
        served = record[tables.LAST_PASS] >= 0
        finished = np.full(len(self._requests), np.nan)
        finished[served] = passes["end"][record[tables.LAST_PASS][served]]
        columns = {
            "arrival": self._requests.arrival,
            "dispatched": state.times[:, tables.DISPATCHED].copy(),
            "began": state.times[:, tables.BEGAN].copy(),
            "finished": finished,
            "instance": record[tables.INSTANCE],
            "unit": record[tables.UNIT],
            "passes": record[tables.SERVED_BY],
            "deferred": record[tables.DEFERRED],
        }
        return PrefillRun(self._requests, self._setting, self._seed, columns, passes, seconds)

    def _keep_rows(self) -> None:
        counters = self.state.counters
        used = int(counters[tables.ROW])
        chunk = {name: self._rows.counts[:used, column].copy() for column, name in enumerate(_COUNTS)}
        chunk["start"], chunk["end"] = self._rows.times[:used].T.copy()
        if self._keep_units:
            chunk["of_unit"] = self._rows.of_unit[:used].copy()
        self._chunks.append(chunk)
        counters[tables.PASSES] += used
        counters[tables.ROW] = 0


def _requests_of(requests: PrefillRequests, setting: PrefillSetting, seed: int) -> tables.Requests:
    N, D = setting.num_instances, setting.units_per_instance
    hits = np.zeros((0, 0, 0), dtype=np.int64) if requests.hits is None else requests.hits.copy()
    if requests.hits is not None and hits.shape[1:] != (N, D):
        raise InputError(f"hits are for {hits.shape[1]} instances of {hits.shape[2]} units; the setting has {N} of {D}")
    draws = setting.dispatch.code == codes.RANDOM
    uniforms = np.random.default_rng([seed, 1]).random(len(requests)) if draws else np.zeros(0)
    return tables.Requests(requests.arrival.copy(), requests.length.copy(), hits, uniforms)


def _rules_of(setting: PrefillSetting) -> tables.Setting:
    policy, law, rule = setting.dispatch, setting.pass_time, setting.rule
    return tables.Setting(
        policy=policy.code,
        allocation=rule.code,
        parameters=rule.parameter_array(),
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
        fixed_interval=-1.0 if policy.interval is None else float(policy.interval),
        change_at=np.array([at for at, _ in setting.topology], dtype=np.float64),
        change_to=np.array([to for _, to in setting.topology], dtype=np.int64),
    )


def _fresh_state(n: int, setting: PrefillSetting, seed: int) -> tables.State:
    N, D, policy = setting.num_instances, setting.units_per_instance, setting.dispatch

    def ints(*shape: int, fill: int = 0) -> NDArray[np.int64]:
        return np.full(shape, fill, dtype=np.int64)

    phases = setting.initial_phases(seed)
    counters, clock = ints(tables.NUM_COUNTERS), np.zeros(tables.NUM_CLOCKS)
    counters[tables.UNFINISHED] = n
    counters[tables.HEALTHY] = N
    mean_pass = setting.pass_time.base if policy.default_pass is None else policy.default_pass
    clock[tables.NEXT_END] = phases[0]
    clock[[tables.NEXT_REACH, tables.TIMER]] = np.inf
    clock[tables.NEXT_CHANGE] = setting.topology[0][0] if setting.topology else np.inf
    clock[tables.LAST_DISPATCH] = -np.inf
    clock[tables.MEAN_PASS] = mean_pass
    clock[tables.INTERVAL] = (mean_pass + setting.latency) / N if policy.interval is None else policy.interval
    pooled = n if not policy.immediate else 0
    records, queues, instances = ints(n, tables.NUM_FIELDS), ints(N * D, 3), ints(N, tables.NUM_COLUMNS)
    for column in (tables.INSTANCE, tables.UNIT, tables.FOLLOWING, tables.LAST_PASS):
        records[:, column] = -1
    queues[:, (tables.FIRST, tables.LAST)] = -1
    instances[:, tables.RUNNING] = -1
    clocks = np.zeros((N, 3))
    clocks[:, tables.ENDS] = phases
    return tables.State(
        records=records,
        times=np.full((n, 2), np.nan),
        waiting=ints(pooled),
        on_the_way=ints(n if setting.latency > 0 else 0),
        queues=queues,
        backlog=ints(N, D),
        instances=instances,
        clocks=clocks,
        touched=ints(N),
        batch=ints(pooled),
        key=ints(pooled),
        chosen=ints(pooled),
        window=np.zeros(policy.window),
        counters=counters,
        clock=clock,
    )


def _fresh_rows(count: int, D: int, keep_units: bool) -> tables.Passes:
    of_unit = np.zeros((count if keep_units else 0, D), dtype=np.int64)
    return tables.Passes(np.zeros((count, 2)), np.zeros((count, tables.NUM_COUNTS), dtype=np.int64), of_unit)
