"""Metrics of a prefill run, with batch-means intervals.

The first tenth of the requests is dropped. Requests served after that are cut, in order of arrival, into 50 batches of
equal size, and a Student interval is put around the batch means; an interval is None where there are fewer than 100.
Passes count that start between the arrival of the first request that counts and the last arrival (the drain is left
out), in batches of equal number in order of start. A pass that serves nobody is idle time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError

if TYPE_CHECKING:
    from lbopt.prefill.run import PrefillRun

NUM_BATCHES = 50
CONFIDENCE = 0.95
_NAN = float("nan")

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PrefillMetrics:
    """What a run was like; units are in the names.

    `chunk_utilisation` is tokens over chunk and units in passes that serve somebody, None without a chunk;
    `pass_cycle_seconds` is from start to start on one instance, `idle_share` of the time of all instances.
    """

    requests: int
    refused: int
    wait_mean_seconds: float
    wait_mean_seconds_interval: Interval | None
    wait_p50_seconds: float
    wait_p95_seconds: float
    wait_p99_seconds: float
    wait_at_scheduler_mean_seconds: float
    wait_at_scheduler_mean_seconds_interval: Interval | None
    wait_on_device_mean_seconds: float
    wait_on_device_mean_seconds_interval: Interval | None
    first_token_mean_seconds: float
    first_token_mean_seconds_interval: Interval | None
    first_token_p50_seconds: float
    first_token_p95_seconds: float
    first_token_p99_seconds: float
    passes: int
    requests_per_pass: float
    passes_per_request: float
    pass_mean_seconds: float
    pass_cycle_seconds: float
    chunk_utilisation: float | None
    chunk_utilisation_interval: Interval | None
    idle_share: float
    throughput_requests_per_second: float
    throughput_tokens_per_second: float

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def measure_prefill(run: PrefillRun, confidence: float = CONFIDENCE) -> PrefillMetrics:
    """Measure `run`."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; expected a share between 0 and 1, such as 0.95")
    first = len(run.traffic) // 10
    counted = run.served.copy()
    counted[:first] = False

    def mean(values: NDArray[np.float64]) -> tuple[float, Interval | None]:
        return batch_mean(values[counted], np.ones(int(counted.sum())), confidence)

    wait, scheduler, device, token = map(mean, (run.wait, run.wait_at_scheduler, run.wait_on_device, run.first_token))
    waits = _quantiles(run.wait[counted])
    tokens = _quantiles(run.first_token[counted])
    arrival = run.requests["arrival"]
    begin, end = float(arrival[first]), float(arrival[-1])
    p = {name: run.passes[name] for name in ("start", "end", "tokens", "requests")}
    window = (p["start"] >= begin) & (p["start"] <= end)
    passes = int(window.sum())
    serving = window & (p["requests"] > 0)
    N, D, chunk = run.setting.num_instances, run.setting.units_per_instance, run.setting.chunk_tokens
    used: tuple[float, Interval | None] = (_NAN, None)
    if chunk is not None:
        computed = p["tokens"][serving].astype(np.float64)
        used = batch_mean(computed, np.full(computed.size, float(D * chunk)), confidence)
    busy = float(np.clip(np.minimum(p["end"], end) - np.maximum(p["start"], begin), 0, None)[p["requests"] > 0].sum())
    span = end - begin
    finished = run.requests["finished"]
    done = (finished > begin) & (finished <= end)
    length = p["end"][serving] - p["start"][serving]
    return PrefillMetrics(
        int(counted.sum()),
        int((~run.served).sum()),
        *wait,
        *waits,
        *scheduler,
        *device,
        *token,
        *tokens,
        passes=passes,
        requests_per_pass=float(p["requests"][serving].mean()) if serving.any() else _NAN,
        passes_per_request=float(run.requests["passes"][counted].mean()) if counted.any() else _NAN,
        pass_mean_seconds=float(length.mean()) if length.size else _NAN,
        pass_cycle_seconds=span * N / passes if passes else _NAN,
        chunk_utilisation=None if chunk is None else used[0],
        chunk_utilisation_interval=used[1],
        idle_share=1 - busy / (N * span) if span > 0 else _NAN,
        throughput_requests_per_second=float(done.sum()) / span if span > 0 else _NAN,
        throughput_tokens_per_second=float(p["tokens"][window].sum()) / span if span > 0 else _NAN,
    )


def batch_mean(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64], confidence: float
) -> tuple[float, Interval | None]:
    """Return sum(numerator) / sum(denominator), and its interval from the ratios of equal batches."""
    if numerator.size == 0:
        return _NAN, None
    centre = float(numerator.sum() / denominator.sum())
    length = numerator.size // NUM_BATCHES
    if length < 2:
        return centre, None
    from scipy.special import stdtrit

    used = length * NUM_BATCHES
    tops = numerator[-used:].reshape(NUM_BATCHES, length).sum(axis=1)
    ratios = tops / denominator[-used:].reshape(NUM_BATCHES, length).sum(axis=1)
    half = float(stdtrit(NUM_BATCHES - 1, 0.5 + confidence / 2) * ratios.std(ddof=1)) / NUM_BATCHES**0.5
    return centre, (centre - half, centre + half)


def _quantiles(values: NDArray[np.float64]) -> tuple[float, float, float]:
    if values.size == 0:
        return _NAN, _NAN, _NAN
    p50, p95, p99 = np.quantile(values, (0.5, 0.95, 0.99))
    return float(p50), float(p95), float(p99)
