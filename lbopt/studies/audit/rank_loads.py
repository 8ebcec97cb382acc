"""What loads of ranks over time say: the wait at the barrier, if there is one, where it comes from, and stuck queues.

**The wait.** By tokens a fleet of G ranks idles for 1 − sum L / (G max L) of a moment. That is the most: it is the
share of time if a step's time is in proportion to the tokens of its heaviest rank. A law with a fixed part gives less.

**Whether there is a barrier.** Ranks of one barrier make steps alike, so tokens a second for each running request agree
between them, whatever they hold. Ranks that step by themselves are the slower the more they hold.

**Where it comes from.** What is left when every rank has its mean load over time is placement that stays; the rest are
fluctuations. What is left when every request has the same length is the count of requests; the rest are lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.rank_log import RankSeries
from lbopt.statistics import student_quantile

Floats = NDArray[np.float64]

#: Spread of the ranks' paces, largest less smallest over the middle one, below and above which it decides.
TOGETHER, APART = 0.12, 0.25
#: A rank with less of its cache in use than this has room.
ROOM = 0.9
#: A law is fitted to at least so many moments, if the heaviest load varies by at least such a share.
_LEAST_MOMENTS, _LEAST_SPREAD = 20, 0.03


@dataclass(frozen=True, slots=True)
class Loads:
    """Loads of ranks in one unit.

    Parameters
    ----------
    loads
        float64 (T, G); NaN where not known.
    unit
        "tokens", "share of the KV cache" or "requests".
    how
        Where the numbers are from, in words.
    """

    loads: Floats
    unit: str
    how: str


def loads_of(series: RankSeries, capacity: int | None) -> Loads:
    """Return the loads: tokens where lines have them, else shares of the cache, in tokens if its size is known.

    Parameters
    ----------
    capacity
        Tokens that the KV cache of a rank holds; None takes what the log says.
    """
    tokens, share, running = (series.of(name) for name in ("tokens", "share", "running"))
    known = ~series.silent
    runs = np.nansum(running) > 0
    if not np.isnan(tokens[known]).any() and (tokens[known].any() or not runs):  # faked decoding runs and holds nothing
        return Loads(tokens, "tokens", "tokens as the engine counts them, exact")
    if not np.isnan(share[known]).all() and (np.nansum(share) > 0 or not runs):
        held = series.capacity if capacity is None else np.full(len(series.ranks), float(capacity))
        if not np.isnan(held).any():
            said = "the log's own" if capacity is None else "the given"
            return Loads(share * held, "tokens", f"inferred: share of the KV cache times {said} size in tokens")
        return Loads(
            share,
            "share of the KV cache",
            "shares of the KV cache, exact to their printed digits; loads relative to each other need no more if all "
            "caches are equally large, and --kv-capacity N makes tokens of them",
        )
    return Loads(running, "requests", "running requests alone: their lengths are not in the log, so this is a guess")


@dataclass(frozen=True, slots=True)
class Idle:
    """Shares of the fleet that wait at the barrier by tokens, means over moments.

    Parameters
    ----------
    share
        Of moments with any load.
    low, high
        5 and 95 % quantiles over moments.
    spoken
        Of the moments in which every rank wrote a line; NaN where there is none.
    staying
        What is left of it when every rank has its mean load.
    counts
        What it would be if all requests were equally long; NaN where running requests are not known.
    moments
        How many count.
    """

    share: float
    low: float
    high: float
    spoken: float
    staying: float
    counts: float
    moments: int


def idle_of(loads: Floats, series: RankSeries) -> Idle | None:
    """Return the idle shares, each barrier group weighted by its ranks; None where in no moment all loads are known.

    Parameters
    ----------
    loads
        float64 (T, G).
    """
    each = _idle(loads, series.group)
    known = ~np.isnan(each)
    if not known.any():
        return None
    spoken = known & ~series.silent.any(axis=1)
    low, high = np.quantile(each[known], (0.05, 0.95))
    return Idle(
        share=float(each[known].mean()),
        low=float(low),
        high=float(high),
        spoken=float(each[spoken].mean()) if spoken.any() else float("nan"),
        staying=float(_idle(loads[known].mean(axis=0, keepdims=True), series.group)[0]),
        counts=mean_of(_idle(series.of("running"), series.group)),
        moments=int(known.sum()),
    )


def _idle(loads: Floats, group: NDArray[np.int64]) -> Floats:
    """Return 1 − sum L / (G max L) of each moment, (T,); NaN where a load is not known or all are zero."""
    needed = np.zeros(loads.shape[0])
    for one in np.unique(group):
        mine = loads[:, group == one]
        needed += mine.shape[1] * mine.max(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(needed > 0, 1 - loads.sum(axis=1) / needed, np.nan)


def mean_of(values: Floats) -> float:
    """Return the mean of what is known; NaN where nothing is."""
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


@dataclass(frozen=True, slots=True)
class Barrier:
    """Whether ranks make steps together: "yes", "no" or "unknown"; pace of each rank, tokens a second per request."""

    verdict: str
    spread: float
    paces: Floats


def barrier_of(series: RankSeries) -> Barrier:
    """Return whether ranks make steps together, by their tokens a second for each running request."""
    running, made = series.of("running"), series.of("made")
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where((running >= 1) & (made > 0), made / running, np.nan)
    paces = np.array([median_of(column) for column in each.T])
    several = np.sum(~np.isnan(each), axis=1) > 1
    if not several.any():
        return Barrier("unknown", float("nan"), paces)
    relative = each[several] / np.nanmedian(each[several], axis=1, keepdims=True)
    middle = np.array([median_of(column) for column in relative.T])
    spread = float(np.nanmax(middle) - np.nanmin(middle))
    return Barrier("yes" if spread <= TOGETHER else "no" if spread >= APART else "unknown", spread, paces)


def median_of(values: Floats) -> float:
    """Return the median of what is known; NaN where nothing is."""
    return float(np.nanmedian(values)) if not np.isnan(values).all() else float("nan")


@dataclass(frozen=True, slots=True)
class Stuck:
    """Requests that wait at one rank while another of its group has room.

    Parameters
    ----------
    ranks, free
        Numbers of the ranks at which they wait, and of those with room, in most such moments.
    moments
        Share of moments.
    waiting
        Requests that wait so, mean over these moments.
    """

    ranks: tuple[int, ...]
    free: tuple[int, ...]
    moments: float
    waiting: float


def stuck_of(series: RankSeries) -> Stuck | None:
    """Return who is stuck; None where nothing waits beside a rank with room, or queues are not in the log."""
    waiting, share, running = (series.of(name) for name in ("waiting", "share", "running"))
    waits = waiting > 0
    usual = np.nanmax(np.where(np.isnan(running), 0.0, running), axis=1, keepdims=True)
    room = np.where(np.isnan(share), running < usual, share < ROOM) & (waiting == 0)
    stuck = np.zeros_like(waits)
    free = np.zeros_like(waits)
    for one in np.unique(series.group):
        mine = series.group == one
        stuck[:, mine] = waits[:, mine] & room[:, mine].any(axis=1, keepdims=True)
        free[:, mine] = room[:, mine] & waits[:, mine].any(axis=1, keepdims=True)
    at = stuck.any(axis=1)
    if not at.any():
        return None
    often = stuck[at].mean(axis=0)
    return Stuck(
        ranks=tuple(np.flatnonzero(often >= min(0.5, often.max())).tolist()),
        free=tuple(np.flatnonzero(free[at].mean(axis=0) >= min(0.5, free[at].mean(axis=0).max())).tolist()),
        moments=float(at.mean()),
        waiting=float(np.where(stuck, waiting, 0.0)[at].sum(axis=1).mean()),
    )


@dataclass(frozen=True, slots=True)
class OwnLaw:
    """The wait's share of time by a law that was fitted to the log's own steps, with its 95 % interval."""

    low: float
    high: float
    step: float


def own_law(loads: Loads, series: RankSeries, barrier: Barrier) -> OwnLaw | None:
    """Return the wait by seconds of steps against the heaviest load; None where the log does not tell it.

    A step's seconds are written (TensorRT-LLM), or running requests over tokens a second: with speculative tokens that
    is off by a factor, which cancels in the share.
    """
    running, made, step = series.of("running"), series.of("made"), series.of("step")
    if loads.unit == "requests" or barrier.verdict == "no" or np.unique(series.group).size > 1:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(made > 0, running / made, np.nan) if np.isnan(step).all() else step
    known = ~np.isnan(each).all(axis=1) & ~np.isnan(loads.loads).any(axis=1)
    if known.sum() < _LEAST_MOMENTS:
        return None
    seconds, held = np.nanmedian(each[known], axis=1), loads.loads[known]
    heaviest, together = held.max(axis=1), np.nansum(running[known], axis=1)
    if heaviest.std() < _LEAST_SPREAD * heaviest.mean():
        return None
    columns = [np.ones_like(heaviest), heaviest, *([together] if together.std() > 0 else [])]
    design = np.stack(columns, axis=1)
    found, _, rank, _ = np.linalg.lstsq(design, seconds, rcond=None)
    free = design.shape[0] - design.shape[1]
    if rank < design.shape[1] or free < 1:
        return None
    left = seconds - design @ found
    tied = float(np.clip(np.corrcoef(left[1:], left[:-1])[0, 1], 0.0, 0.95)) if left.std() > 0 else 0.0
    error = np.sqrt(np.linalg.inv(design.T @ design)[1, 1] * (left @ left) / free * (1 + tied) / (1 - tied))
    half = student_quantile(free) * float(error)
    saved = float((heaviest - held.mean(axis=1)).mean() / seconds.mean())
    most = float((1 - held.mean(axis=1) / heaviest).mean())
    low, high = (float(np.clip((found[1] + sign * half) * saved, 0.0, most)) for sign in (-1, 1))
    return OwnLaw(low, high, float(seconds.mean()))
