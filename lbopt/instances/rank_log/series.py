"""`RankSeries`: what every rank of a fleet held at common moments, and how lines of different moments become these.

**Who is a rank.** A line names its rank; a file or a collector's prefix may name a host. Where a rank's number is
written by one host alone, or by several one after another (rotated logs, restarts), it is one rank. Where several hosts
write it at the same time, they are different ranks.

**Moments.** Lines are put in the order of their times, or of the file where they have none. A moment ends when a rank
that has spoken speaks again. A rank that did not speak in a moment has its last value, if that is no older than one and
a half of its own usual periods. After that it counts as without work, because engines write such lines only while they
run something; these entries are marked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances.rank_log.lines import RankLine

Floats = NDArray[np.float64]

#: Quantities that begin a new moment where a rank says them again.
_OF_A_MOMENT = ("running", "tokens", "share", "made", ".made", "step")
#: Quantities that add up within a moment.
_SUMMED = ("prefill", "preempted", "retracted")
#: Periods of its own for which the last value of a rank stands.
_KEPT_PERIODS = 1.5
#: Seconds that a step takes at least.
_LEAST_STEP = 5e-4
#: Entries, moments times ranks, that any log may have.
_MOST_ENTRIES = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankSeries:
    """Loads of G ranks at T common moments; an entry that is not known is NaN.

    Parameters
    ----------
    source
        The files, as errors call them.
    seconds
        float64 (T,), from the first moment; numbers of moments where lines have no time.
    clocked
        Whether lines have times.
    ranks
        (G,), names.
    group
        int64 (G,), barrier group of each rank: ranks of one model on one fleet.
    values
        By quantity, float64 (T, G): ``tokens`` held, ``share`` of the KV cache, ``running`` and ``waiting`` requests,
        ``made`` (output tokens a second), ``prefill`` (prompt tokens), ``step`` (seconds), where they are known.
    silent
        bool (T, G), where a rank counts as without work because it wrote nothing.
    capacity
        float64 (G,), tokens that a rank's KV cache holds; NaN where no line says it.
    period
        Usual seconds between two moments; NaN without times.
    formats
        Lines by format.
    unused
        Lines that were not used.
    notes
        What was concluded while reading.
    """

    source: str
    seconds: Floats
    clocked: bool
    ranks: tuple[str, ...]
    group: NDArray[np.int64]
    values: dict[str, Floats]
    silent: NDArray[np.bool_]
    capacity: Floats
    period: float
    formats: dict[str, int] = field(default_factory=dict)
    unused: int = 0
    notes: tuple[str, ...] = ()

    def of(self, quantity: str) -> Floats:
        """Return a quantity, float64 (T, G); NaN where the log does not say it."""
        return self.values.get(quantity, np.full(self.silent.shape, np.nan))


def align(lines: Sequence[tuple[str, RankLine]], source: str) -> RankSeries:
    """Return the series of lines, each with the name of its file.

    Raises
    ------
    InputError
        Where no line says what a rank holds.
    """
    spoken = [(file, line) for file, line in lines if line.rank != "*" and any(k in line.values for k in _OF_A_MOMENT)]
    if not spoken:
        raise InputError(
            f"{source} has no line that says what a rank holds while it decodes (running requests, tokens or share of "
            "the KV cache); prefill lines alone do not"
        )
    clocked = all(line.seconds is not None for _, line in spoken)
    names, models = _names(spoken, clocked)
    ranks = sorted({names[_key(one)] for one in spoken}, key=_natural)
    at = {name: g for g, name in enumerate(ranks)}
    placed = [(at[names[_key(one)]], one[1]) for one in lines if names.get(_key(one)) in at]
    rows, when = _moments(placed, clocked)
    clocked = clocked and (len(rows) < 2 or when[-1] > when[0])
    shape = len(rows), len(ranks)
    if shape[0] * shape[1] > _MOST_ENTRIES:
        raise InputError(f"{source} has {shape[0]:,} moments of {shape[1]:,} ranks; give a shorter part of the log")
    values = _table(rows, shape)
    notes = _without_false_steps(values)
    seconds = np.array(when) if clocked else np.arange(shape[0], dtype=np.float64)
    _to_rates(values, seconds)
    silent = _keep(values, seconds)
    groups = sorted(set(models.values()))
    told = [models[name] for name in ranks]
    if len(groups) > 1:
        notes.append(f"ranks of different models or servers do not wait for each other: {', '.join(groups)}")
    if lost := sum("prefill" in one.values and names.get(_key((file, one))) is None for file, one in lines):
        notes.append(f"{lost:,} prefill lines are of ranks that never decode, and do not count")
    if not clocked:
        notes.append("lines have no times, or one alone: moments are told apart by a rank that speaks again")
    gaps = np.diff(seconds)
    return RankSeries(
        source=source,
        seconds=seconds - seconds[0],
        clocked=clocked,
        ranks=tuple(ranks),
        group=np.array([groups.index(one) for one in told], dtype=np.int64),
        values=values,
        silent=silent,
        capacity=_capacities(lines, names, at),
        period=float(np.median(gaps)) if clocked and gaps.size else float("nan"),
        notes=tuple(notes),
    )


_Key = tuple[str, str, str, str]


def _key(one: tuple[str, RankLine]) -> _Key:
    file, line = one
    return file, line.host, line.model, line.rank


def _names(lines: Sequence[tuple[str, RankLine]], clocked: bool) -> tuple[dict[_Key, str], dict[str, str]]:
    """Return the name of each rank by who wrote it, and the barrier group of each name."""
    spans: dict[_Key, tuple[float, float]] = {}
    for place, one in enumerate(lines):
        now = one[1].seconds if clocked and one[1].seconds is not None else float(place)
        low, high = spans.get(_key(one), (now, now))
        spans[_key(one)] = min(low, now), max(high, now)
    rivals: defaultdict[tuple[str, str], list[_Key]] = defaultdict(list)
    for key in spans:
        rivals[key[2], key[3]].append(key)
    apart = {of: clocked and _one_after_another([spans[key] for key in keys]) for of, keys in rivals.items()}
    several_models = len({key[2] for key in spans}) > 1
    hosts = defaultdict(set)
    for file, host, model, rank in spans:
        hosts[file, host, model].add(rank)
    names, models = {}, {}
    for key in spans:
        file, host, model, rank = key
        own = len(rivals[model, rank]) == 1 or apart[model, rank]
        where = "" if own and rank else host or file
        name = "/".join(part for part in (model if several_models else "", where, rank) if part) or "0"
        # Servers that number several ranks each have a barrier each; servers of one rank may be ranks of one barrier.
        alone = own or len(hosts[file, host, model]) == 1
        names[key], models[name] = name, model + ("" if alone else f" on {host or file}")
    return names, models


def _one_after_another(spans: list[tuple[float, float]]) -> bool:
    ordered = sorted(spans)
    return all(one[1] <= other[0] for one, other in pairwise(ordered))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


_Row = dict[tuple[int, str], float]


def _moments(placed: list[tuple[int, RankLine]], clocked: bool) -> tuple[list[_Row], list[float]]:
    """Return what each moment holds, by rank and quantity, and when it began."""
    if clocked:
        placed = [one for one in placed if one[1].seconds is not None]
        before: defaultdict[tuple[int, float, str], int] = defaultdict(int)
        order = []
        for place, (g, line) in enumerate(placed):
            assert line.seconds is not None
            key = g, line.seconds, next(iter(line.values))
            order.append((line.seconds, before[key], place))  # of lines in one second, the first of every rank first
            before[key] += 1
        placed = [placed[place] for _, _, place in sorted(order)]
    rows: list[_Row] = []
    when: list[float] = []
    for g, line in placed:
        if "capacity" in line.values:
            continue
        if not rows or any(name in _OF_A_MOMENT and (g, name) in rows[-1] for name in line.values):
            rows.append({})
            when.append(line.seconds or 0.0)
        for name, value in line.values.items():
            if name in _OF_A_MOMENT and not any(other in _OF_A_MOMENT for _, other in rows[-1]):
                when[-1] = line.seconds or 0.0
            kept = rows[-1].get((g, name), 0.0) if name in _SUMMED else 0.0
            rows[-1][g, name] = value + kept
    return rows, when


def _table(rows: list[_Row], shape: tuple[int, int]) -> dict[str, Floats]:
    values = {name: np.full(shape, np.nan) for name in {name for row in rows for _, name in row}}
    for t, row in enumerate(rows):
        for (g, name), value in row.items():
            values[name][t, g] = value
    return values


def _without_false_steps(values: dict[str, Floats]) -> list[str]:
    """Leave out times of steps that no step takes (changed in place); return what is to be said of it."""
    step = values.get("step")
    if step is None or not np.nanmedian(step) < _LEAST_STEP:
        return []
    del values["step"]
    values.pop("made", None)
    return [
        f"half of the iterations took less than {1e3 * _LEAST_STEP:g} ms by the log, which is what the host waited for "
        "them under asynchronous scheduling; times of steps are left out"
    ]


def _to_rates(values: dict[str, Floats], seconds: Floats) -> None:
    """Turn counters into rates and sums between a rank's scrapes, and vLLM's rates of prompts into tokens.

    Parameters
    ----------
    values
        Quantities; those that begin with a dot are counters (changed in place).
    """
    for name in [one for one in values if one.startswith(".")]:
        counter = values.pop(name)
        found = np.full(counter.shape, np.nan)
        for g in range(counter.shape[1]):
            at = np.flatnonzero(~np.isnan(counter[:, g]))
            grown, took = np.diff(counter[at, g]), np.diff(seconds[at])
            per = np.where(took > 0, took, np.nan) if name == ".made" else 1.0
            found[at[1:], g] = np.where(grown >= 0, grown / per, np.nan)
        values.setdefault(name[1:], found)
    if "prefill_rate" in values:
        gaps = np.diff(seconds)
        values.setdefault("prefill", values.pop("prefill_rate") * (float(np.median(gaps)) if gaps.size else 1.0))


def _keep(values: dict[str, Floats], seconds: Floats) -> NDArray[np.bool_]:
    """Let the last values of a rank stand for its own period, then count it as without work; return where.

    Parameters
    ----------
    values
        Quantities (changed in place).
    """
    levels = [name for name in ("running", "tokens", "share", "waiting", "made", "step") if name in values]
    spoke = ~np.all([np.isnan(values[name]) for name in levels], axis=0)
    loads = [name for name in ("running", "tokens", "share") if name in values]
    loaded = ~np.all([np.isnan(values[name]) for name in loads], axis=0) if loads else spoke
    prefills = values.get("prefill", np.zeros(spoke.shape)) > 0
    silent: NDArray[np.bool_] = np.zeros(spoke.shape, dtype=np.bool_)
    for g in range(spoke.shape[1]):
        at = np.flatnonzero(loaded[:, g])
        if not at.size:
            continue
        gaps = np.diff(seconds[at]) if at.size > 1 else np.diff(seconds)
        usual = max(float(np.median(gaps)) if gaps.size else 1.0, 1.0)
        before = np.searchsorted(at, np.arange(spoke.shape[0]), side="right") - 1
        for t in np.flatnonzero(~loaded[:, g]):
            last = at[before[t]] if before[t] >= 0 else None
            if last is not None and (seconds[t] - seconds[last] <= _KEPT_PERIODS * usual or prefills[t, g]):
                for name in levels:
                    if np.isnan(values[name][t, g]):
                        values[name][t, g] = values[name][last, g]
            elif last is None and seconds[at[0]] - seconds[t] <= _KEPT_PERIODS * usual:
                continue  # the log begins in the midst of a moment
            else:
                silent[t, g] = True
                for name in levels:
                    values[name][t, g] = 0.0 if name in ("running", "tokens", "share", "waiting") else np.nan
    return silent


def _capacities(lines: Sequence[tuple[str, RankLine]], names: dict[_Key, str], at: dict[str, int]) -> Floats:
    """Return the tokens that each rank's cache holds; what is said without a rank holds for all that say nothing."""
    found, common = np.full(len(at), np.nan), np.nan
    for one in lines:
        if "capacity" in one[1].values:
            g = at.get(names.get(_key(one), ""))
            if g is None:
                common = one[1].values["capacity"]
            else:
                found[g] = one[1].values["capacity"]
    return np.where(np.isnan(found), common, found)
