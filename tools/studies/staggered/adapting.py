"""Algorithm 1 when something changes in the middle of a run, beside an interval that does not.

Prompts become twice or half as long, so that passes do; traffic doubles or halves; an instance leaves or joins. In the
heavier half the fleet is at `LOAD` of its saturating rate. A window of 5, 50 or 500 passes is compared with the two
intervals that an offline test would have found, (mean pass) / (healthy instances) of the first half and of the second,
and with the pool, which has none. Passes are those of the short prompts. Service is of requests by arrival: in the last
half before the change (`before`), in the first fifth after it (`during`), in the last half after it (`after`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill import AdaptiveInterval, PassTime, PrefillRequests, PrefillRun, PrefillSetting, simulate_prefill
from lbopt.studies.staggered.places import PLACES, UNITS, WINDOW, most_rate, prompts
from lbopt.studies.staggered.rows import Key, Row

#: How near its final mean the interval has to come.
NEAR = 0.05


@dataclass(frozen=True, slots=True)
class Settling:
    """What became of the interval after a change.

    Parameters
    ----------
    before, final
        s, its mean in the stretch before the change, and in the one in which it has settled.
    seconds, passes
        From the change until it is first within `NEAR` of `final`, in s and in passes that ended; None where it never
        is.
    jitter
        Its standard deviation once settled, as a share of `final`.
    """

    before: float
    final: float
    seconds: float | None
    passes: int | None
    jitter: float


def intervals(run: PrefillRun, window: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return times (s), the interval from then on (s), and the passes ended by then; all (passes + fleet changes,).

    `window` is that of the policy, which began with the base time of a pass.
    """
    law = AdaptiveInterval(window, run.setting.pass_time.base, run.setting.latency, run.setting.num_instances)
    start, end, instance = (run.passes[name] for name in ("start", "end", "instance"))
    # Passes that end in one moment count in the order of instances, and before a change of the fleet.
    events = [(float(end[k]), int(instance[k]), float(end[k] - start[k])) for k in range(end.size)]
    events += [(at, run.setting.num_instances, float(healthy)) for at, healthy in run.setting.topology]
    times, values, ended = [], [], []
    passes = 0
    for at, which, what in sorted(events):
        if which == run.setting.num_instances:
            values.append(law.on_topology_change(int(what)))
        else:
            passes += 1
            values.append(law.on_end_forward(what))
        times.append(at)
        ended.append(passes)
    return np.array(times), np.array(values), np.array(ended, dtype=np.int64)


def settling(
    run: PrefillRun, window: int, *, since: float, change: float, settled_by: float, until: float
) -> Settling | None:
    """Return how the interval went from its mean in `since` to `change` to that in `settled_by` to `until`, all in s.

    None where no pass ended in one of these stretches.

    Parameters
    ----------
    since, change, settled_by, until
        Ends of the two stretches, seconds.
    """
    times, values, ended = intervals(run, window)
    first = int(np.searchsorted(times, change))
    early, late = (times >= since) & (times < change), (times >= settled_by) & (times <= until)
    if not (early.any() and late.any()):
        return None
    before, final = float(values[early].mean()), float(values[late].mean())
    jitter = float(values[late].std() / final)
    if abs(before - final) <= NEAR * final:
        return Settling(before, final, 0.0, 0, jitter)
    near = np.flatnonzero(np.abs(values[first:] - final) <= NEAR * final)
    if near.size == 0:
        return Settling(before, final, None, None, jitter)
    at = first + int(near[0])
    return Settling(before, final, float(times[at] - change), int(ended[at] - ended[first - 1]), jitter)


def straight_passes(window: int, begin: float, final: float) -> int:
    """Return how many passes bring a mean over `window` within `NEAR` of `final`, if it goes there in equal steps."""
    away = abs(begin - final)
    return 0 if away <= NEAR * final else math.ceil(window * (1 - NEAR * final / away) - 1e-9)


LOAD = 0.7
WINDOWS = (5, 50, 500)
ALLOCATION = "pbaa"


@dataclass(frozen=True, slots=True)
class Change:
    """What is otherwise in the first half and in the second: shares of prompts and of traffic, instances more or less.

    Traffic is a share of what brings the fleet to `LOAD` with whole prompts and the fewest instances.
    """

    prompts: tuple[float, float] = (1.0, 1.0)
    traffic: tuple[float, float] = (1.0, 1.0)
    less: tuple[int, int] = (0, 0)


CHANGES = {
    "prompts double": Change(prompts=(0.5, 1.0)),
    "prompts halve": Change(prompts=(1.0, 0.5)),
    "traffic doubles": Change(traffic=(0.5, 1.0)),
    "traffic halves": Change(traffic=(1.0, 0.5)),
    "an instance leaves": Change(less=(0, 1)),
    "an instance joins": Change(less=(1, 0)),
}


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The requests of a change, and who is there: `healthy` instances before and after `at` s, in `chunk` tokens."""

    requests: PrefillRequests
    at: float
    healthy: tuple[int, int]
    instances: int
    chunk: int

    def run(self, policy: str, seed: int) -> PrefillRun:
        """Return the run of a policy."""
        before, after = self.healthy
        topology = () if before == after else ((0.0, before), (self.at, after))
        setting = PrefillSetting(
            self.instances, UNITS, policy, ALLOCATION, PassTime(), chunk_tokens=self.chunk, topology=topology
        )
        return simulate_prefill(self.requests, setting, seed=seed)

    @property
    def times(self) -> tuple[float, float, float, float]:
        """When `before` begins, the change, when `after` begins, and the last arrival, s."""
        arrival, n = self.requests.arrival, len(self.requests)
        return float(arrival[n // 4]), self.at, float(arrival[3 * n // 4]), float(arrival[-1])


def course(change: str, place: str, instances: int, requests: int, seed: int) -> Course:
    """Return the requests of a change; `requests` are of an instance.

    Parameters
    ----------
    place
        Name of the place: length of prompts and chunk.
    """
    what, where = CHANGES[change], PLACES[place]
    n = requests * instances
    healthy = (instances - what.less[0], instances - what.less[1])
    second = np.arange(n) >= n // 2
    rate = LOAD * most_rate(where, PassTime()) * min(healthy)
    gaps = np.random.default_rng([seed, 0]).standard_exponential(n) / (rate * _by_half(second, what.traffic))
    length = np.maximum(1, np.rint(prompts(where, n, seed) * _by_half(second, what.prompts)))
    arrival = np.cumsum(gaps)
    traffic = PrefillRequests(arrival, length.astype(np.int64), name=change)
    return Course(traffic, float(arrival[n // 2]), healthy, instances, where.chunk)


def measure(*, change: str, place: str, instances: int, requests: int, version: str, seed: int) -> list[Row]:
    """Return the service of every window, of the two static intervals and of the pool, and how intervals settled."""
    whole = course(change, place, instances, requests, seed)
    first, second = offline_intervals(whole, seed)
    policies = {f"window {window}": f"staggered:window={window}" for window in WINDOWS}
    policies |= {
        "static, of the first half": f"staggered:interval={first}",
        "static, of the second half": f"staggered:interval={second}",
        "pooled": "pooled",
    }
    rows: list[Row] = []
    for (contender, policy), window in zip(policies.items(), (*WINDOWS, None, None, None), strict=True):
        run = whole.run(policy, seed)
        keys: dict[str, Key] = {"change": change, "place": place, "contender": contender}
        rows.append((keys, _service(run) | _interval(whole, run, window)))
    return rows


def offline_intervals(whole: Course, seed: int) -> tuple[float, float]:
    """Return (mean pass) / (healthy instances) of the last part of each half, s."""
    run = whole.run(f"staggered:window={WINDOW}", seed)
    start, seconds = run.passes["start"], run.passes["end"] - run.passes["start"]
    since, at, settled_by, until = whole.times
    means = [seconds[(start >= low) & (start < high)].mean() for low, high in ((since, at), (settled_by, until))]
    return float(means[0]) / whole.healthy[0], float(means[1]) / whole.healthy[1]


def _service(run: PrefillRun) -> dict[str, float | None]:
    n = len(run.traffic)
    parts = {"before": slice(n // 4, n // 2), "during": slice(n // 2, n // 2 + n // 10), "after": slice(3 * n // 4, n)}
    values: dict[str, float | None] = {}
    for name, part in parts.items():
        values[f"ttft_{name}"] = float(run.first_token[part].mean())
        values[f"ttft_p99_{name}"] = float(np.quantile(run.first_token[part], 0.99))
    return values


def _interval(whole: Course, run: PrefillRun, window: int | None) -> dict[str, float | None]:
    names = ("interval_before", "interval_after", "settling", "settling_passes", "straight_passes", "jitter")
    since, at, settled_by, until = whole.times
    found = None
    if window is not None:
        found = settling(run, window, since=since, change=at, settled_by=settled_by, until=until)
    if window is None or found is None:
        return dict.fromkeys(names)
    at_once = found.before * whole.healthy[0] / whole.healthy[1]
    straight = straight_passes(window, at_once, found.final)
    values = (found.before, found.final, found.seconds, found.passes, straight, found.jitter)
    return {name: None if value is None else float(value) for name, value in zip(names, values, strict=True)}


def _by_half(second: NDArray[np.bool_], shares: tuple[float, float]) -> NDArray[np.float64]:
    return np.where(second, shares[1], shares[0])
