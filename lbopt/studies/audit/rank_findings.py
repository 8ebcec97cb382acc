"""What loads of ranks mean, in sentences; and what to log so that a rule can be recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lbopt.instances.rank_log import RankSeries
from lbopt.numbers import tokens
from lbopt.studies.audit.rank_loads import ROOM, Barrier, Idle, Loads, Stuck, mean_of, median_of

#: A wait below this share of a step is none to speak of.
_LITTLE = 0.03
#: Fewer prompt tokens than this for an output token are no prefill to speak of.
_LITTLE_PREFILL = 0.1
#: So many names of ranks are written out.
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the loads show: its kind, and a sentence."""

    kind: str
    sentence: str


def findings_of(
    series: RankSeries, loads: Loads, idle: Idle, barrier: Barrier, stuck: Stuck | None, shares: Sequence[Any]
) -> list[Finding]:
    """Return what the loads mean, the most important first.

    Parameters
    ----------
    series, loads
        What was read.
    idle, barrier, stuck
        What was found.
    shares
        The wait's share of time by law, with `low` and `high`.
    """
    if len(series.ranks) < 2:
        return [Finding("one rank", _one_rank(series))]
    found = [Finding("barrier", _barrier(series, barrier))]
    if idle.share > _LITTLE:
        found.append(Finding("cause", _cause(series, loads, idle)))
        if loads.unit != "requests" and idle.counts == idle.counts:
            found.append(Finding("lengths", _lengths(series, loads, idle)))
    if stuck is not None:
        found.append(Finding("stuck", _stuck(series, stuck)))
    found += [Finding("prefill", sentence) for sentence in _prefill(series)]
    found += [Finding("slow rank", sentence) for sentence in _slow(series, loads, barrier)]
    if idle.spoken == idle.spoken and abs(idle.spoken - idle.share) > 0.02:
        found.append(
            Finding(
                "silent ranks",
                f"In the moments in which every rank wrote a line, the wait by tokens is {_percent(idle.spoken)}; with "
                f"silent ranks as idle ones it is {_percent(idle.share)}",
            )
        )
    found.append(Finding("bound", _bound(barrier, shares)))
    return found


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _ranks(series: RankSeries, numbers: Sequence[int]) -> str:
    names = [series.ranks[g] for g in numbers[:_NAMED]]
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(names)}{more}"


def _one_rank(series: RankSeries) -> str:
    way = "TensorRT-LLM writes rank 0 alone unless TLLM_PROFILE_LOG_RANKS names others; " * any(
        "TensorRT" in one for one in series.formats
    )
    return f"The log has one rank, so nothing can be out of balance in it; {way}give the logs of all ranks together"


def _barrier(series: RankSeries, barrier: Barrier) -> str:
    paces = [f"{one:.3g}" for one in barrier.paces[~np.isnan(barrier.paces)]]
    shown = ", ".join(paces) if len(paces) <= _NAMED else f"{min(paces, key=float)} to {max(paces, key=float)}"
    if barrier.verdict == "yes":
        return f"The ranks make steps together: {shown} tokens a second per running request, alike whatever they hold"
    if barrier.verdict == "no":
        return (
            f"The ranks do not look as if they met at a barrier: {shown} tokens a second per running request. Engines "
            "of a dense model step by themselves; then a loaded rank is slow for its own requests alone"
        )
    return (
        "The log does not tell whether the ranks meet at a barrier"
        + (f" ({shown} tokens a second per running request)" if paces else " (no tokens a second in it)")
        + "; ranks of a model with experts in parallel do, engines of a dense model do not"
    )


def _cause(series: RankSeries, loads: Loads, idle: Idle) -> str:
    share = min(idle.staying / idle.share, 1.0)
    held = loads.loads[~np.isnan(loads.loads).any(axis=1)]
    heaviest = held[held.max(axis=1) > 0].argmax(axis=1)
    often = np.bincount(heaviest, minlength=len(series.ranks)) / heaviest.size
    worst = int(often.argmax())
    who = f"{_ranks(series, [worst])} is the heaviest in {100 * often[worst]:.0f} % of the moments"
    if share > 0.5:
        return (
            f"Placement that stays: {_percent(idle.staying)} of the {_percent(idle.share)} are left when every rank "
            f"has its mean load, and {who}"
        )
    return (
        f"Loads that come and go: {_percent(idle.staying)} of the {_percent(idle.share)} are left when every rank has "
        f"its mean load, and {who}; over time the ranks get about as much, but not at the same time"
    )


def _lengths(series: RankSeries, loads: Loads, idle: Idle) -> str:
    running = series.of("running")
    pairs = [(mean_of(held), mean_of(runs)) for held, runs in zip(loads.loads.T, running.T, strict=True)]
    per = np.array([held / runs for held, runs in pairs if runs > 0 and held == held])
    each = ""
    if loads.unit == "tokens" and per.size > 1:
        each = (
            f": a request holds {tokens(float(per.min()))} tokens on one rank and {tokens(float(per.max()))} on another"
        )
    if idle.counts < 0.5 * idle.share:
        return (
            f"Counts of requests are not the cause: if all were equally long, {_percent(idle.counts)} would wait"
            f"{each}; a rule that counts tokens has something to win, one that counts requests has not"
        )
    return f"Counts of requests differ: if all were equally long, {_percent(idle.counts)} would wait{each}"


def _stuck(series: RankSeries, stuck: Stuck) -> str:
    share, running = series.of("share"), series.of("running")
    free = f"{_ranks(series, stuck.free)} had room and no queue"
    used = share[:, list(stuck.free)]
    if not np.isnan(used).all():
        free += f" ({100 * float(np.nanmean(used)):.0f} % of the KV cache in use)"
    fits = ""
    with np.errstate(invalid="ignore", divide="ignore"):
        size = median_of(np.where(running > 0, share / running, np.nan))
    if np.isfinite(size) and size > 0 and not np.isnan(used).all():
        room = int(np.nansum(np.maximum(ROOM - used, 0.0).mean(axis=0)) / size)
        fits = (
            f"; some {min(room, round(stuck.waiting)):,} of them would have fitted there at the usual size of a request"
        )
    return (
        f"Stuck: in {100 * stuck.moments:.0f} % of the moments {stuck.waiting:.0f} requests in the mean waited at "
        f"{_ranks(series, stuck.ranks)} while {free}{fits}. They were bound to a rank on arrival; a queue before the "
        "ranks would have sent them on"
    )


def _prefill(series: RankSeries) -> list[str]:
    prefill = np.nansum(series.of("prefill"), axis=0)
    made = np.nansum(series.of("made")) * (series.period if series.period > 0 else 1.0)
    if prefill.sum() <= _LITTLE_PREFILL * made or prefill.sum() <= 0:
        return []
    share = prefill / prefill.sum()
    worst = int(share.argmax())
    if share[worst] * len(series.ranks) < 1.5:
        return [
            f"Prefill is spread evenly: the ranks computed {_percent(share.min())} to {_percent(share.max())} of it"
        ]
    return [
        f"Prefill is uneven: {_ranks(series, [worst])} computed {_percent(share[worst])} of the prompt tokens (an even "
        f"part is {_percent(1 / len(series.ranks))}). While one rank of a barrier computes a prompt, all wait; how "
        "long is not in these lines"
    ]


def _slow(series: RankSeries, loads: Loads, barrier: Barrier) -> list[str]:
    if barrier.verdict != "no":
        if barrier.verdict == "yes":
            return ["One slow rank would not show: ranks of a barrier all go at the pace of the slowest"]
        return []
    held = np.array([mean_of(column) for column in loads.loads.T])
    slow = int(np.nanargmin(barrier.paces))
    if held[slow] > np.nanmedian(held):
        return []
    return [
        f"{_ranks(series, [slow]).capitalize()} is slow without a heavy load: {barrier.paces[slow]:.3g} tokens a "
        f"second per running request, and {np.nanmedian(barrier.paces):.3g} in the middle: a slow device or host"
    ]


def _bound(barrier: Barrier, shares: Sequence[Any]) -> str:
    low, high = min(one.low for one in shares), max(one.high for one in shares)
    span = f"{_percent(high)} of the time, what perfectly level loads would"
    if high - low > 5e-4:
        span += f"; by another law of step time no more than {_percent(low)}"
    if barrier.verdict == "no":
        return f"If the ranks did meet at a barrier, no rule could save more than {span}"
    return f"No rule can save more than {span}"


def to_log(series: RankSeries) -> list[str]:
    """Return what to log in addition, for a recommendation and for sharper figures here."""
    engines = " ".join(series.formats)
    more = [
        "For a rule to be recommended lbopt needs requests: one row each with arrival, start of decoding, finish, "
        "prompt and output tokens, and the rank that served it (a router's log, spans, or the record of lbopt serve)"
    ]
    if "vLLM" in engines:
        more.append(
            "vLLM: --otlp-traces-endpoint writes such spans, VLLM_LOG_STATS_INTERVAL=1 the lines once a second; "
            "the line 'GPU KV cache size' of the start makes tokens of shares"
        )
    if "SGLang" in engines:
        more.append("SGLang: --decode-log-interval 1 writes every step, --enable-metrics and --enable-trace requests")
    if "TensorRT" in engines:
        more.append(
            "TensorRT-LLM: print_iter_log with TLLM_PROFILE_LOG_RANKS for all ranks, return_perf_metrics for requests"
        )
    return more
