"""Metrics of a run.

Limits that users of a service are promised, and which requests were served within them.

Metrics of a run over a stated window of steps, with batch-means intervals.

Definitions follow the experiments of the BF-IO paper (eqs. 6 to 10) and its authors' simulator: imbalance,
spread, idle share and power at the reading point of the event order; throughput = tokens / seconds; TPOT of a request
= (finish - start) / output; waiting = decisions between revelation and start.

A window that leaves the drain out flatters a rule that postpones long prompts. So some figures are of the whole run,
whatever the window: its steps' tokens a second, its seconds, and the shares of what no rule can pass (`ceiling`), by
seconds of steps, by the time from the first arrival to the last end, and by energy. So is goodput: tokens a second of
the requests that were served within the limits of `Slo`.

Intervals: consecutive steps are far from independent, so the window is cut into 20 batches of equal length and a
Student interval is put around the batch means. It is None where the window has fewer than 40 steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.simulator.ceiling import ceilings
from lbopt.statistics import Interval, batch_ratios, interval_around

if TYPE_CHECKING:
    from lbopt.simulator.run import Run


NUM_BATCHES = 20


@dataclass(frozen=True, slots=True)
class Window:
    """Steps first..last, both included, counted from 1."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise InputError(f"window {self.first}..{self.last} is not first <= last with steps counted from 1")

    @property
    def rows(self) -> slice:
        """The same as a slice of the step columns."""
        return slice(self.first - 1, self.last)


def default_window(start_step: NDArray[np.int64], num_steps: int) -> Window:
    """Return steps 1 to the step of the last admission (the drain is left out); all steps if that is step 0."""
    cut = int(start_step.max())
    return Window(1, cut if cut >= 1 else num_steps)


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a run was like. Units are in the names; `*_interval` are 95 % batch-means intervals."""

    first_step: int
    last_step: int
    imbalance_tokens: float
    imbalance_tokens_interval: Interval | None
    spread_tokens: float
    spread_tokens_interval: Interval | None
    idle_share: float
    idle_share_interval: Interval | None
    throughput_tokens_per_second: float
    throughput_tokens_per_second_interval: Interval | None
    whole_run_tokens_per_second: float
    whole_run_share_of_ceiling: float | None
    elapsed_share_of_ceiling: float | None
    energy_share_of_ceiling: float | None
    whole_run_seconds: float
    slo_share: float | None
    goodput_tokens_per_second: float | None
    tpot_mean_seconds: float
    tpot_p50_seconds: float
    tpot_p95_seconds: float
    tpot_p99_seconds: float
    waiting_mean_steps: float
    waiting_p99_steps: float
    waiting_max_steps: int
    first_token_mean_seconds: float
    first_token_p99_seconds: float
    energy_joules: float
    mean_load_tokens: float
    occupancy: float
    real_choice_share: float
    over_capacity_share: float
    active_experts: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def measure(run: Run, window: Window | None) -> Metrics:
    """Measure `run`. With the default window TPOT, waiting and first token are over all requests, as in the paper;
    with a stated one over the requests that start in it.
    """
    chosen = window or run.window
    if chosen.last > run.num_steps:
        raise InputError(f"window {chosen.first}..{chosen.last} goes beyond the run's {run.num_steps} steps")
    step = {name: values[chosen.rows] for name, values in run.steps.items()}
    fleet = run.setting.fleet
    G = fleet.num_workers
    imbalance = G * step["read_max"] - step["read_sum"]
    spread = step["read_max"] - step["read_min"]
    idle = 1 - step["read_sum"] / (G * np.maximum(step["read_max"], 1))  # 1 where nothing is resident
    ones = np.ones(imbalance.size)

    request, output = run.requests, run.trace.output
    whole = float(run.steps["seconds"].sum())
    of_ceiling = _shares_of_ceiling(run, whole)
    made = step.get("made", step["active"])  # without detail every running request makes one token
    kept = None if run.setting.slo is None else run.setting.slo.kept(run)
    if window is not None:
        inside = (request["start_step"] >= chosen.first - 1) & (request["start_step"] < chosen.last)
        request = {name: values[inside] for name, values in request.items()}
        output = output[inside]
    tpot = (request["finish_clock"] - request["start_clock"]) / output
    waiting = request["start_step"] - request["reveal_step"]
    first_token = request["first_token_clock"] - request["reveal_clock"]
    tpot_quantiles = _quantiles(tpot, (0.5, 0.95, 0.99))
    return Metrics(
        first_step=chosen.first,
        last_step=chosen.last,
        imbalance_tokens=float(imbalance.mean()),
        imbalance_tokens_interval=batch_interval(imbalance, ones),
        spread_tokens=float(spread.mean()),
        spread_tokens_interval=batch_interval(spread, ones),
        idle_share=float(idle.mean()),
        idle_share_interval=batch_interval(idle, ones),
        throughput_tokens_per_second=float(made.sum() / step["seconds"].sum()),
        throughput_tokens_per_second_interval=batch_interval(made, step["seconds"]),
        whole_run_tokens_per_second=float(run.trace.output.sum() / whole),
        whole_run_share_of_ceiling=of_ceiling.steps,
        elapsed_share_of_ceiling=of_ceiling.elapsed,
        energy_share_of_ceiling=of_ceiling.energy,
        whole_run_seconds=whole,
        slo_share=None if kept is None else float(kept.mean()),
        goodput_tokens_per_second=None if kept is None else float(run.trace.output[kept].sum() / whole),
        tpot_mean_seconds=_mean(tpot),
        tpot_p50_seconds=tpot_quantiles[0],
        tpot_p95_seconds=tpot_quantiles[1],
        tpot_p99_seconds=tpot_quantiles[2],
        waiting_mean_steps=_mean(waiting),
        waiting_p99_steps=_quantiles(waiting, (0.99,))[0],
        waiting_max_steps=int(waiting.max()) if waiting.size else 0,
        first_token_mean_seconds=_mean(first_token),
        first_token_p99_seconds=_quantiles(first_token, (0.99,))[0],
        energy_joules=float((step["watts"] * step["seconds"]).sum()),
        mean_load_tokens=float(step["read_sum"].mean() / G),
        occupancy=float(step["active"].mean() / run.setting.num_slots),
        real_choice_share=run.real_choices / run.decisions if run.decisions else 0.0,
        over_capacity_share=float(step["over_capacity"].mean() / G),
        active_experts=None if run.trace.experts is None else float(step["experts"].mean()),
    )


class _Shares(NamedTuple):
    """Shares of the ceilings that a run reaches; None where there is no ceiling."""

    steps: float | None = None
    elapsed: float | None = None
    energy: float | None = None


def _shares_of_ceiling(run: Run, seconds: float) -> _Shares:
    """Return the shares that a run whose steps take so many seconds reaches."""
    detail = run.setting.detail
    if detail is not None and detail.draft:
        return _Shares()  # how many steps a request takes is a matter of chance
    least = ceilings(run.trace, run.setting)
    elapsed = float(run.steps["clock"][-1] - run.requests["reveal_clock"].min())
    joules = float((run.steps["watts"] * run.steps["seconds"]).sum())
    return _Shares(
        steps=least.seconds / seconds,
        elapsed=least.elapsed_seconds / elapsed,
        energy=None if least.joules is None or joules == 0 else least.joules / joules,
    )


def batch_interval(numerator: NDArray[Any], denominator: NDArray[Any]) -> Interval | None:
    """Return the 95 % interval of sum(numerator) / sum(denominator) from the ratios of equal batches of steps."""
    ratios = batch_ratios(numerator, denominator, NUM_BATCHES)
    return None if ratios is None else interval_around(float(numerator.sum() / denominator.sum()), ratios)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _quantiles(values: NDArray[Any], levels: tuple[float, ...]) -> list[float]:
    if values.size == 0:
        return [float("nan")] * len(levels)
    return [float(q) for q in np.quantile(values, levels)]
