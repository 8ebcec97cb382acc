"""What loads of ranks over time say: the wait at the barrier, if there is one, where it comes from, and stuck queues.

**The wait.** By tokens a fleet of G ranks idles for 1 − sum L / (G max L) of a moment. That is the most: it is the
share of time if a step's time is in proportion to the tokens of its heaviest rank. A law with a fixed part gives less.

**Whether there is a barrier.** Ranks of one barrier make steps alike, so tokens a second for each running request agree
between them, whatever they hold. Ranks that step by themselves are the slower the more they hold.

**Where it comes from.** What is left when every rank has its mean load over time stays; the rest are fluctuations.
Whether the ranks' means differ by more than chance is an analysis of variance over blocks of time. What is left when
every request has the same length is the count of requests; the rest are lengths.

**A slow rank.** Where ranks step by themselves, the steps of each are compared with a line through those of the others,
against tokens held and prompt tokens computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from lbopt.instances.rank_log import RankSeries
from lbopt.statistics import student_quantile

Floats = NDArray[np.float64]

#: Spread of the ranks' paces, largest less smallest over the middle one, below and above which it decides.
TOGETHER, APART = 0.12, 0.25
#: A rank with less of its cache in use than this has room.
ROOM = 0.9
#: Requests that wait beside a free rank, by those that run, from which they are worth a word.
_LEAST_STUCK = 0.02
#: The ranks that hold this share of what waits are named.
_MOST_OF_THEM = 0.8
#: Blocks of time over which ranks' means are compared, and the chance below which they differ.
_BLOCKS, _CHANCE = 5, 0.01
#: A rank is slow if its steps take so many times what those of others would at its load, plus so many standard errors:
#: twice the usual three, as moments are not independent.
_SLOW, _ERRORS = 1.25, 6.0
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
    lasting
        Whether these means differ by more than chance; False too where moments are too few to tell.
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
    lasting: bool
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
        lasting=_lasting(loads[known], series.group),
        counts=mean_of(_idle(series.of("running"), series.group)),
        moments=int(known.sum()),
    )


def _lasting(loads: Floats, group: NDArray[np.int64]) -> bool:
    """Return whether the ranks' means differ by more than their blocks of time do."""
    if len(loads) < 2 * _BLOCKS:
        return False
    for one in np.unique(group):
        mine = loads[:, group == one]
        parts = np.array_split(mine - mine.mean(axis=1, keepdims=True), _BLOCKS)
        blocks = np.array([part.mean(axis=0) for part in parts])
        between, within = _BLOCKS * blocks.mean(axis=0).var(), blocks.var(axis=0, ddof=1).mean()
        G = mine.shape[1]
        if between > 0 and fdtrc(G - 1, G * (_BLOCKS - 1), between * G / (G - 1) / max(within, 1e-300)) < _CHANCE:
            return True
    return False


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
        Numbers of the ranks at which most of them wait, and of the others with room in half of such moments or more.
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
    """Return who is stuck; None where hardly anything waits beside a rank with room, or queues are not in the log."""
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
    held = np.where(stuck, waiting, 0.0)
    if held.sum() <= _LEAST_STUCK * np.nansum(running):
        return None
    at, by_rank = stuck.any(axis=1), held.sum(axis=0)
    order = np.argsort(-by_rank, kind="stable")
    ranks = order[: int(np.searchsorted(np.cumsum(by_rank[order]), _MOST_OF_THEM * by_rank.sum())) + 1]
    often = np.where(np.isin(np.arange(by_rank.size), ranks), 0.0, free[at].mean(axis=0))
    return Stuck(
        ranks=tuple(sorted(ranks.tolist())),
        free=tuple(np.flatnonzero(often >= min(0.5, max(often.max(), 1e-9))).tolist()),
        moments=float(at.mean()),
        waiting=float(held[at].sum(axis=1).mean()),
    )


@dataclass(frozen=True, slots=True)
class Slow:
    """A rank whose steps take longer than those of others would at its load: its number, and how many times as long."""

    rank: int
    times: float


def slow_of(series: RankSeries, loads: Loads) -> Slow | None:
    """Return the slowest rank of ranks that step by themselves; None where each is as fast as its load lets it be."""
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(series.of("made") > 0, series.of("running") / series.of("made"), np.nan)
    prompts = np.nan_to_num(series.of("prefill"))
    known = ~np.isnan(each) & ~np.isnan(loads.loads)
    found = []
    for g in range(known.shape[1]):
        others = known & (np.arange(known.shape[1]) != g)
        columns = [np.ones(known.shape), loads.loads, *([prompts] if prompts[others].any() else [])]
        design = np.stack([one[others] for one in columns], axis=1)
        if known[:, g].sum() < _BLOCKS or np.linalg.matrix_rank(design) < len(columns) < len(design):
            return None
        law, left, *_ = np.linalg.lstsq(design, each[others], rcond=None)
        mine = np.array([one[known[:, g], g].mean() for one in columns])
        spread = left.sum() / (len(design) - len(columns)) * (mine @ np.linalg.inv(design.T @ design) @ mine)
        usual = max(float(mine @ law), float(np.median(each[others]))) + _ERRORS * math.sqrt(spread)
        found.append(Slow(g, float(np.mean(each[known[:, g], g])) / usual))
    slowest = max(found, key=lambda one: one.times)
    return slowest if slowest.times > _SLOW else None


def prompts_of(series: RankSeries) -> float:
    """Return the prompt tokens that were computed for each output token; NaN where no output tokens are in the log."""
    step = series.of("step")
    made = np.nansum(series.of("made") * np.where(np.isnan(step), series.period, step))
    return float(np.nansum(series.of("prefill")) / made) if made > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class OwnLaw:
    """The wait's share of time by a law that was fitted to the log's own steps, with its 95 % interval."""

    low: float
    high: float
    step: float


def own_law(loads: Loads, series: RankSeries, barrier: Barrier) -> OwnLaw | None:
    """Return the wait by seconds of steps against the heaviest load; None where the log does not tell it.

    A step's seconds are written (TensorRT-LLM), or running requests over tokens a second: with speculative tokens that
    is off by a factor, which cancels in the share. Moments in which a rank computed prompts do not count, since all
    waited for that, too.
    """
    running, made, step = series.of("running"), series.of("made"), series.of("step")
    if loads.unit == "requests" or barrier.verdict == "no" or np.unique(series.group).size > 1:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(made > 0, running / made, np.nan) if np.isnan(step).all() else step
    known = ~np.isnan(each).all(axis=1) & ~np.isnan(loads.loads).any(axis=1)
    known &= np.nansum(series.of("prefill"), axis=1) == 0
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
    low, high = (float((found[1] + sign * half) * saved) for sign in (-1, 1))
    if high < 0 or low > most:  # something else that goes with the load moves the steps
        return None
    return OwnLaw(max(low, 0.0), min(high, most), float(seconds.mean()))
