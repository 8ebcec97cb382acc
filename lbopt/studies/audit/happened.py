"""What happened in the logged time: how full the fleet was, how uneven, how long it waited at the barrier.

Loads are read at the begin of a step, after admission, and averaged over steps in which anything runs:

    imbalance = G max_g L_g - sum_g L_g,        idle = 1 - sum_g L_g / (G max_g L_g).

Where one worker is slower or faster than the others, its tokens count as many times as long as it needs for them.

The idle share of the fleet's time also counts the fixed part of a step, in which no worker waits:

    per_token (max_g L_g - mean_g L_g) / (fixed + per_token max_g L_g), over the time of steps.

How far single decisions of the log were from the best: the explanation, not the headline.

Placing the requests of one step best is not what saves time over a run; it says whether the rule is at fault, or the
requests. A sampled decision is the loads and free slots just before some requests started, and these requests. The best
placement of the same requests is found exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.model import Conditions, Eligibility, StepProblem
from lbopt.solvers import solve
from lbopt.studies.audit.course import Floats
from lbopt.studies.audit.law_from_log import Reconstruction
from lbopt.studies.grid import Row
from lbopt.studies.progress import Progress, Silent

#: Windows of time, of equally many requests, in which the law is held against the log.
WINDOWS = 10
#: Stretches are a sixth of the mean output long, and at least this many steps.
_STRETCH, _LEAST_STRETCH = 1 / 6, 15.0
#: Standard errors of a correlation, and the share of a step's time, from which on drift is reported.
_SURE, _TRIFLE = 3.2, 0.003
_FEWEST_STRETCHES = 20
#: Logs that are drawn to see what noise alone does.
_DRAWS = 200


class Misfit(Row):
    """Where the law is off: the mean time per token by the law over that of the log, less 1.

    Parameters
    ----------
    mean, p95
        Over all requests that ran to their end.
    by_window, by_worker
        Over windows of equally many requests, and over the requests of each worker.
    drift, drift_likeness, drift_stretches
        Standard deviation of the error over stretches of steps, a fraction of a request's life long, the correlation of
        a stretch with the one before, and their number; zeros where the log does not show steps. The noise of steps is
        gone after some steps. Load that the log does not show stays as long as a request does.
    by_noise
        What `worst` and `worst_window` reach in one of 40 logs by the noise of steps alone; zeros where the log does
        not show steps, as noise is then not told from what the law misses.
    """

    @property
    def worst(self) -> float:
        """The larger of the errors of mean and 95 % quantile, without its sign."""
        return float(max(abs(self.mean), abs(self.p95)))

    @property
    def follows_something_unseen(self) -> bool:
        """Whether stretches beside each other are off alike, by more than chance and by more than a trifle."""
        sure = self.drift_likeness * math.sqrt(self.drift_stretches) > _SURE
        return bool(sure and self.drift > _TRIFLE)

    @property
    def worst_window(self) -> float:
        """The largest error in a window of time, without its sign."""
        return float(max(map(abs, self.by_window)))

    def within(self, most: float, most_of_a_window: float) -> bool:
        """Return whether the errors are below limits, or are what the noise of steps alone makes of the right law."""
        whole, window = self.by_noise
        return bool(self.worst <= max(most, whole) and self.worst_window <= max(most_of_a_window, window))


class Happened(Row):
    """What the log says of its fleet; times in seconds, loads in tokens, its length also in lifetimes of requests."""

    @property
    def wait_may_grow(self) -> tuple[float, float]:
        """By how much mean wait and 99 % quantile may grow, seconds: a request that comes waits for the step that runs.

        One in a hundred comes in a long one, so that the quantile's limit is the 99 % quantile of the time per token.
        """
        return self.mean_step_seconds, max(self.mean_step_seconds, self.tpot_p99)


def modelled_tpot(found: Reconstruction) -> Floats:
    """Return the seconds per token that the law gives each attempt at the loads of the log, (N,); NaN for none."""
    course, output = found.course, found.log.output
    counted = course.over_requests(found.steps)
    loads = course.over_requests(found.steps * course.heaviest)
    rows = (counted > 0) & (output > 0)
    mean_load = np.where(rows, loads / np.where(rows, counted, 1.0), np.nan)
    return np.asarray(found.law.fixed + found.law.per_token * mean_load)


def modelled_seconds(found: Reconstruction) -> float:
    """Return the seconds that the law gives all steps of the log at its loads."""
    steps = np.where(found.course.is_busy, found.steps, 0.0)
    return float(found.law.fixed * steps.sum() + found.law.per_token * (steps @ found.course.heaviest))


def without_noise(found: Reconstruction, times: Floats) -> Floats:
    """Return the log's times on a clock by which its steps take what the law says; idle time passes as it did.

    The noise of steps decides who meets whom: requests that arrive in a long step start together. Other rules are given
    the same arrivals by this clock, so that they meet the same steps as the log did, and are not compared with a fleet
    that was luckier.

    Parameters
    ----------
    times
        Any shape, seconds.
    """
    course = found.course
    lasted = np.where(course.is_busy, found.law.seconds(course.heaviest) * found.steps, course.seconds)
    clock = course.begin[0] + np.concatenate([np.zeros(1), np.cumsum(lasted)])
    boundaries = np.append(course.begin, course.end[-1])
    return np.asarray(np.interp(times, boundaries, clock) + np.minimum(times - boundaries[0], 0))


def logged_tpot(found: Reconstruction) -> Floats:
    """Return the seconds per token of each attempt that ran to its end, (N,); NaN for the others."""
    log = found.log
    rows = log.is_finished & (log.output > 0)
    return np.where(rows, (log.finish - log.start) / np.maximum(log.output, 1), np.nan)


def what_happened(found: Reconstruction, slots: int) -> Happened:
    """Return the figures of a reconstructed log."""
    log, course, law, steps = found.log, found.course, found.law, found.steps
    G = len(log.workers)
    heaviest = np.maximum(course.heaviest, course.work / G)
    count = max(float(steps.sum()), 1e-12)
    seconds = law.seconds(heaviest) * steps
    share = np.where(heaviest > 0, 1 - course.work / (G * np.maximum(heaviest, 1e-12)), 0.0)
    waiting = law.per_token * (heaviest - course.work / G)
    done = log.is_finished
    tpot, waited = logged_tpot(found)[done], (log.start - log.arrival)[done]
    busy = float(course.seconds[course.is_busy].sum())
    return Happened(
        attempts=len(log),
        finished=int(done.sum()),
        workers=G,
        slots=slots,
        span_seconds=log.span,
        busy_share=busy / max(log.span, 1e-12),
        steps=round(count),
        mean_step_seconds=busy / count,
        occupancy=float(course.running @ steps) / (count * G * slots),
        mean_load=float(course.at_begin @ steps) / (count * G),
        imbalance=float((G * heaviest - course.work) @ steps) / count,
        idle_share=float(share @ steps) / count,
        idle_time_share=float(waiting @ steps) / max(float(seconds.sum()), 1e-12),
        idle_seconds_per_step=float(waiting @ steps) / count,
        tokens_per_second=float(log.output[done].sum()) / max(busy, 1e-12),
        tpot_mean=float(tpot.mean()),
        tpot_p50=float(np.quantile(tpot, 0.5)),
        tpot_p95=float(np.quantile(tpot, 0.95)),
        tpot_p99=float(np.quantile(tpot, 0.99)),
        wait_mean=float(waited.mean()),
        wait_p99=float(np.quantile(waited, 0.99)),
        wait_max=float(waited.max()),
        lifetimes=log.span / max(float(np.quantile((log.finish - log.start)[done], 0.95)), 1e-12),
        misfit=_misfit(found),
    )


def _misfit(found: Reconstruction) -> Misfit:
    logged, modelled = logged_tpot(found), modelled_tpot(found)
    rows = np.flatnonzero(np.isfinite(logged) & np.isfinite(modelled))
    windows = [part for part in np.array_split(rows, WINDOWS) if part.size]
    workers = [rows[found.log.worker[rows] == g] for g in range(len(found.log.workers))]
    return Misfit(
        mean=_off(logged, modelled, rows),
        p95=_off_p95(logged, modelled, rows),
        by_window=tuple(_off(logged, modelled, part) for part in windows),
        by_noise=_by_noise(found, modelled, windows),
        by_worker=tuple(_off(logged, modelled, part) if part.size else 0.0 for part in workers),
        **_drift(found),
    )


def _by_noise(found: Reconstruction, modelled: Floats, windows: list[NDArray[np.int64]]) -> tuple[float, float]:
    """Return what the noise of steps makes of the right law: the 97.5 % quantiles over drawn logs."""
    if found.law.by != "steps":
        return 0.0, 0.0
    course, steps = found.course, np.maximum(found.steps, 0.0)
    seconds = found.law.seconds(course.heaviest)
    rows, output = np.concatenate(windows), np.maximum(found.log.output, 1)
    draw, worst = np.random.default_rng(0), []
    for _ in range(_DRAWS):
        more = found.law.noise * seconds * np.sqrt(steps) * draw.standard_normal(steps.size) * course.is_busy
        logged = modelled + course.over_requests(more) / output
        whole = max(abs(_off(logged, modelled, rows)), abs(_off_p95(logged, modelled, rows)))
        worst.append((whole, max(abs(_off(logged, modelled, part)) for part in windows)))
    whole, window = np.quantile(worst, 0.975, axis=0)
    return float(whole), float(window)


def _off_p95(logged: Floats, modelled: Floats, rows: NDArray[np.int64]) -> float:
    return float(np.quantile(modelled[rows], 0.95) / np.quantile(logged[rows], 0.95) - 1)


def _drift(found: Reconstruction) -> dict[str, Any]:
    course = found.course
    steps = np.where(course.is_busy, np.maximum(np.round(found.steps), 1.0), 0.0)
    length = max(_LEAST_STRETCH, _STRETCH * float(found.log.output[found.log.is_finished].mean()))
    stretch = (np.cumsum(steps) // length).astype(np.int64)
    modelled = np.bincount(stretch, found.law.seconds(course.heaviest) * steps)
    logged = np.bincount(stretch, course.seconds * course.is_busy)
    off = modelled[logged > 0] / logged[logged > 0] - 1
    if found.law.by != "steps" or off.size < _FEWEST_STRETCHES or not off[1:].std() * off[:-1].std() > 0:
        return {"drift": 0.0, "drift_likeness": 0.0, "drift_stretches": int(off.size)}
    likeness = float(np.corrcoef(off[1:], off[:-1])[0, 1])
    return {"drift": float(off.std()), "drift_likeness": likeness, "drift_stretches": int(off.size)}


def _off(logged: Floats, modelled: Floats, rows: NDArray[np.int64]) -> float:
    return float(modelled[rows].mean() / logged[rows].mean() - 1)


class OneStepGaps(Row):
    """Sampled decisions; loads in tokens.

    Parameters
    ----------
    sampled, proved
        Decisions that were sampled, and those whose best placement is proved.
    best
        Decisions in which the log's own placement was as good as the best.
    logged, optimum
        Mean imbalance G max - sum after the decision, as logged and at best, over proved decisions.
    seconds
        Mean time that the best placement saves in the step after it.
    """


def one_step_gaps(
    found: Reconstruction,
    slots: int,
    count: int,
    time_limit: float,
    seed: int = 0,
    progress: Progress | None = None,
    served: Eligibility | None = None,
) -> OneStepGaps:
    """Sample decisions of the log, and solve them.

    Parameters
    ----------
    count
        Decisions.
    time_limit
        Seconds for each.
    served
        Which workers serve each request of the log; None = all serve all.
    """
    shown = progress or Silent()
    sample = _sample(found, count, seed)
    loads, running = loads_before(found, sample)
    shown.begin("decisions", len(sample))
    logged, optimum = [], []
    for column, boundary in enumerate(sample):
        mine = np.flatnonzero(found.attempts.first == boundary)
        sizes, placed = found.log.prompt[mine], found.log.worker[mine]
        free = np.maximum(slots - running[:, column], np.bincount(placed, minlength=running.shape[0]))
        problem = StepProblem.now(loads[:, column].tolist(), free.tolist(), sizes.tolist())
        if served is not None:
            problem = problem.under(Conditions(allowed=served.allowed[served.kind[mine]]))
        result = solve(problem, time_limit=time_limit)
        after = loads[:, column] + np.bincount(placed, sizes, running.shape[0]).astype(np.int64)
        if result.status == "optimal" and result.objective is not None:
            logged.append(int(after.size * after.max() - after.sum()))
            optimum.append(int(result.objective))
        shown.advance()
    before, best = np.array(logged, dtype=np.float64), np.array(optimum, dtype=np.float64)
    saved = (before - best) / len(found.log.workers) * found.law.per_token
    return OneStepGaps(
        sampled=len(sample),
        proved=len(logged),
        best=int((before == best).sum()),
        logged=float(before.mean()) if logged else float("nan"),
        optimum=float(best.mean()) if logged else float("nan"),
        seconds=float(saved.mean()) if logged else float("nan"),
    )


def _sample(found: Reconstruction, count: int, seed: int) -> list[int]:
    """Return boundaries at which something starts, spread over the log."""
    starts = np.unique(found.attempts.first[found.attempts.last > found.attempts.first])
    starts = starts[starts > 0]
    if starts.size > count:
        starts = np.sort(np.random.default_rng(seed).choice(starts, count, replace=False))
    return [int(boundary) for boundary in starts]


def loads_before(found: Reconstruction, sample: list[int]) -> tuple[Any, Any]:
    """Return whole tokens and requests of each worker at these boundaries before anything starts, (G, S) each."""
    attempts, G = found.attempts, len(found.log.workers)
    loads, running = np.zeros((2, G, len(sample)), dtype=np.int64)
    at = np.array(sample, dtype=np.int64)
    for g in range(G):
        count, at_zero, slope = attempts.of_worker(g)
        mine = attempts.worker == g
        new = np.bincount(attempts.first[mine], minlength=attempts.times.size)[at]
        tokens = np.bincount(attempts.first[mine], attempts.prompt[mine], attempts.times.size)[at]
        clock = attempts.clock[at]
        loads[g] = np.maximum(np.round(at_zero[at] + slope[at] * clock - tokens), 0)
        running[g] = np.maximum(count[at] - new, 0)
    return loads, running
