"""A prefill run, and its metrics with batch-means intervals.

Metrics of a prefill run, with batch-means intervals.

The first tenth of the requests is dropped. Requests served after that are cut, in order of arrival, into 50 batches of
equal size, and a Student interval is put around the batch means; an interval is None where there are fewer than 100.
Passes count that start between the arrival of the first request that counts and the last arrival (the drain is left
out), in batches of equal number in order of start. A pass that serves no request is idle time. Rates and shares of time
get their intervals from 50 equal slices of that time.

Ratios over a run with the intervals of 50 batch means (Law and Carson 1979): of things, or of slices of time.

What follows closely on each other is far from independent; the means of long batches nearly are, so their spread gives
a Student interval around the whole.

A finished prefill run: one line per request, one line per pass.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.setting import PrefillSetting
from lbopt.statistics import CONFIDENCE, Interval, batch_ratios, interval_around

if TYPE_CHECKING:
    import pandas as pd


_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class PrefillMetrics:
    """What a run was like; units are in the names.

    `chunk_utilisation` is tokens over chunk and units in passes that serve a request, None without a chunk;
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
    pass_cycle_seconds_interval: Interval | None
    chunk_utilisation: float | None
    chunk_utilisation_interval: Interval | None
    idle_share: float
    idle_share_interval: Interval | None
    throughput_requests_per_second: float
    throughput_requests_per_second_interval: Interval | None
    throughput_tokens_per_second: float
    throughput_tokens_per_second_interval: Interval | None

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

    def mean(values: NDArray[np.float64]) -> Mean:
        return batch_mean(values[counted], np.ones(int(counted.sum())), confidence)

    wait, scheduler, device, token = map(mean, (run.wait, run.wait_at_scheduler, run.wait_on_device, run.first_token))
    waits = _quantiles(run.wait[counted])
    tokens = _quantiles(run.first_token[counted])
    arrival = run.requests["arrival"]
    begin, end = float(arrival[first]), float(arrival[-1])
    p = {name: run.passes[name] for name in ("start", "end", "tokens", "requests")}
    window = (p["start"] >= begin) & (p["start"] <= end)
    passes = int(window.sum())
    serves = p["requests"] > 0
    serving = window & serves
    N, D, chunk = run.setting.num_instances, run.setting.units_per_instance, run.setting.chunk_tokens
    computed = p["tokens"][serving].astype(np.float64)
    used = batch_mean(computed, np.full(computed.size, float(D * (chunk or 1))), confidence)

    edges = np.linspace(begin, end, NUM_BATCHES + 1)
    slices = np.diff(edges)

    def over_time(per_slice: NDArray[np.float64]) -> Mean:
        return slice_mean(per_slice, slices, confidence, enough=passes >= 2 * NUM_BATCHES)

    begun = np.histogram(p["start"], edges)[0] if end > begin else np.zeros(NUM_BATCHES)
    finished = np.histogram(run.requests["finished"][run.served], edges)[0] if end > begin else begun
    tokens_begun = np.histogram(p["start"], edges, weights=p["tokens"])[0] if end > begin else begun
    cycle = slice_mean(N * slices, begun.astype(np.float64), confidence, enough=passes >= 2 * NUM_BATCHES)
    idle = over_time(slices - busy_seconds(edges, p["start"][serves], p["end"][serves]) / N)
    requests_rate, tokens_rate = over_time(finished.astype(np.float64)), over_time(tokens_begun)
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
        pass_cycle_seconds=cycle[0],
        pass_cycle_seconds_interval=cycle[1],
        chunk_utilisation=None if chunk is None else used[0],
        chunk_utilisation_interval=None if chunk is None else used[1],
        idle_share=idle[0],
        idle_share_interval=idle[1],
        throughput_requests_per_second=requests_rate[0],
        throughput_requests_per_second_interval=requests_rate[1],
        throughput_tokens_per_second=tokens_rate[0],
        throughput_tokens_per_second_interval=tokens_rate[1],
    )


def _quantiles(values: NDArray[np.float64]) -> tuple[float, float, float]:
    if values.size == 0:
        return _NAN, _NAN, _NAN
    p50, p95, p99 = np.quantile(values, (0.5, 0.95, 0.99))
    return float(p50), float(p95), float(p99)


NUM_BATCHES = 50

Floats = NDArray[np.float64]
#: A mean, and its interval where there is enough to tell.
Mean = tuple[float, Interval | None]


def batch_mean(numerator: Floats, denominator: Floats, confidence: float) -> Mean:
    """Return sum(numerator) / sum(denominator) over things in order; the interval needs 100 of them."""
    ratios = batch_ratios(numerator, denominator, NUM_BATCHES)
    if ratios is None:
        return slice_mean(numerator, denominator, confidence, enough=False)
    centre = float(numerator.sum() / denominator.sum())
    return centre, interval_around(centre, ratios, confidence)


def slice_mean(numerator: Floats, denominator: Floats, confidence: float, *, enough: bool) -> Mean:
    """Return sum(numerator) / sum(denominator) over slices of time, each its own batch.

    Parameters
    ----------
    numerator, denominator
        float64, (slices,).
    confidence
        Level of the interval, such as 0.95.
    enough
        Whether there are enough slices for an interval.
    """
    if denominator.sum() == 0:
        return float("nan"), None
    centre = float(numerator.sum() / denominator.sum())
    if not enough or (denominator == 0).any():
        return centre, None
    return centre, interval_around(centre, numerator / denominator, confidence)


def busy_seconds(edges: Floats, start: Floats, end: Floats) -> Floats:
    """Return the seconds (B,) that stretches from `start` to `end` (K,) have in the slices between `edges` (B + 1,)."""
    return np.diff(_seconds_before(edges, end) - _seconds_before(edges, start))


def _seconds_before(edges: Floats, times: Floats) -> Floats:
    """Return the sum over `times` of min(edge, time), for each edge."""
    ordered = np.sort(times)
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    below = np.searchsorted(ordered, edges)
    seconds: Floats = total[below] + edges * (times.size - below)
    return seconds


#: Columns of `PrefillRun.requests`, with units; NaN and -1 where the request was refused.
PREFILL_REQUEST_COLUMNS: dict[str, str] = {
    "arrival": "s",
    "dispatched": "s, sent by the scheduler; it reaches its instance a latency later",
    "began": "s, start of the first pass that serves it",
    "finished": "s, end of the pass with its last chunk: its first token",
    "instance": "where it ran",
    "unit": "of the instance",
    "passes": "that served it",
    "deferred": "dispatches that kept it at the scheduler",
}

#: Columns of `PrefillRun.passes`, with units.
PASS_COLUMNS: dict[str, str] = {
    "instance": "where it ran",
    "start": "s",
    "end": "s",
    "tokens": "computed, all units",
    "fullest": "tokens of the fullest unit",
    "longest": "tokens, longest chunk of a request",
    "requests": "that it served",
}


@dataclass(frozen=True, slots=True, eq=False)
class PrefillRun:
    """What a policy did.

    Parameters
    ----------
    traffic, setting, seed
        What was run.
    requests
        Arrays of shape (n,), see `PREFILL_REQUEST_COLUMNS`.
    passes
        Arrays of shape (K,), see `PASS_COLUMNS`, in order of start; with `keep_units` also ``of_unit`` (K, D), tokens.
    seconds
        Wall time of the simulation.
    """

    traffic: PrefillRequests
    setting: PrefillSetting
    seed: int
    requests: dict[str, NDArray[Any]]
    passes: dict[str, NDArray[Any]]
    seconds: float

    @property
    def served(self) -> NDArray[np.bool_]:
        """bool (n,), False where the request was refused."""
        served: NDArray[np.bool_] = self.requests["instance"] >= 0
        return served

    @property
    def wait(self) -> NDArray[np.float64]:
        """float64 (n,), s from arrival to the start of the first pass that serves the request."""
        wait: NDArray[np.float64] = self.requests["began"] - self.requests["arrival"]
        return wait

    @property
    def wait_at_scheduler(self) -> NDArray[np.float64]:
        """float64 (n,), s of it until dispatch; after that come the latency and the wait on the device."""
        wait: NDArray[np.float64] = self.requests["dispatched"] - self.requests["arrival"]
        return wait

    @property
    def wait_on_device(self) -> NDArray[np.float64]:
        """float64 (n,), s of it from reaching the instance to the start of the pass."""
        reached = self.requests["dispatched"] + self.setting.latency
        wait: NDArray[np.float64] = np.maximum(0.0, self.requests["began"] - reached)
        return wait

    @property
    def wait_by_quarter(self) -> tuple[float, float, float, float]:
        """Mean wait, s, of each quarter of the requests: a pool without a timer forgets its first phases slowly."""
        first, second, third, fourth = (float(np.nanmean(part)) for part in np.array_split(self.wait, 4))
        return first, second, third, fourth

    @property
    def first_token(self) -> NDArray[np.float64]:
        """float64 (n,), s from arrival to the end of the last pass."""
        seconds: NDArray[np.float64] = self.requests["finished"] - self.requests["arrival"]
        return seconds

    def metrics(self, confidence: float = CONFIDENCE) -> PrefillMetrics:
        """Return the metrics; intervals are of this confidence."""
        return measure_prefill(self, confidence)

    def request_table(self) -> pd.DataFrame:
        """Return one row per request, with its length."""
        import pandas as pd

        return pd.DataFrame({"length": self.traffic.length} | self.requests)

    def pass_table(self) -> pd.DataFrame:
        """Return one row per pass."""
        import pandas as pd

        return pd.DataFrame({name: self.passes[name] for name in PASS_COLUMNS})
