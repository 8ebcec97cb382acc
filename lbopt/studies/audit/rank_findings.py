"""What loads of ranks mean, in sentences; and what to log so that a rule can be recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lbopt.instances.rank_log import RankSeries
from lbopt.numbers import tokens
from lbopt.studies.audit.rank_loads import (
    ROOM,
    Barrier,
    Idle,
    Loads,
    Slow,
    Stuck,
    mean_of,
    median_of,
    prompts_of,
    slow_of,
)

#: A wait below this share of a step is none to speak of.
_LITTLE = 0.03
#: Shares of the wait that stay with each rank at its mean: up to which loads come and go, and from which they stay.
_PASSING, _PARTLY, _LASTING = 0.3, 0.5, 0.7
#: Fewer prompt tokens than this for an output token are no prefill to speak of.
_LITTLE_PREFILL = 0.1
#: Fewer moments than this deserve a longer look.
_FEW = 20
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
    found = [
        Finding("barrier", _barrier(series, barrier)),
        Finding("bound", _bound(series, loads, barrier, stuck, shares)),
    ]
    if stuck is not None:
        found.append(Finding("stuck", _stuck(series, stuck)))
    if idle.share > _LITTLE:
        found.append(Finding("cause", _cause(series, loads, idle)))
        if loads.unit != "requests" and idle.counts == idle.counts:
            found.append(Finding("lengths", _lengths(series, loads, idle)))
    found += [Finding("prefill", sentence) for sentence in _prefill(series)]
    if barrier.verdict == "no" and (slow := slow_of(series, loads)) is not None:
        found.append(Finding("slow rank", _slow(series, slow)))
    if idle.spoken == idle.spoken and abs(idle.spoken - idle.share) > 0.02:
        found.append(
            Finding(
                "silent ranks",
                f"In the moments in which every rank wrote a line, the wait by tokens is {_percent(idle.spoken)}; with "
                f"silent ranks as idle ones it is {_percent(idle.share)}",
            )
        )
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
    held = loads.loads[~np.isnan(loads.loads).any(axis=1)]
    heaviest = held[held.max(axis=1) > 0].argmax(axis=1)
    often = np.bincount(heaviest, minlength=len(series.ranks)) / heaviest.size
    worst = int(often.argmax())
    who = f"{_ranks(series, [worst])} is the heaviest in {100 * often[worst]:.0f} % of the moments"
    if len(series.seconds) < 2:
        return f"In this one moment {_ranks(series, [worst])} is the heaviest; whether that stays, more moments say"
    seconds = float(series.seconds[-1])
    span = f"the log's {seconds:,.0f} s" if series.clocked and seconds > 0 else f"{len(series.seconds):,} moments"
    left = f"with each rank at its mean over {span}, {_percent(idle.staying)} of the {_percent(idle.share)} would stay"
    stays = idle.staying / idle.share
    if stays <= _PASSING or (stays <= _PARTLY and not idle.lasting):
        return f"Loads come and go: {left}. The ranks get about as much, but not at the same time; {who}"
    if not idle.lasting:
        return f"Whether some ranks always get more, or it was chance, a log so short does not tell: {left}; {who}"
    if stays <= _LASTING:
        return f"In part the same ranks are heavy, in part loads come and go: {left}; {who}"
    return f"The same ranks are heavy all the time: {left}; {who}"


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
    if np.nansum(used) > 0:
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
    if prompts_of(series) <= _LITTLE_PREFILL or not prefill.any():
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


def _slow(series: RankSeries, slow: Slow) -> str:
    return (
        f"{_ranks(series, [slow.rank]).capitalize()} is slow: its steps take {slow.times:.2g} times as long as those "
        "of the others would at its load: a slow device or host"
    )


def _bound(series: RankSeries, loads: Loads, barrier: Barrier, stuck: Stuck | None, shares: Sequence[Any]) -> str:
    most, others = shares[0].high, shares[1:]
    text = "Level loads would save" if barrier.verdict != "no" else "If the ranks met at a barrier, level loads saved"
    text += f" at most {_percent(most)} of the time of decoding"
    if others:
        low, high = min(one.low for one in others), max(one.high for one in others)
        text += f", and {_percent(low)} to {_percent(high)} by the laws of step time"
    text += ", if all requests are equally long, which the log does not tell" * (loads.unit == "requests")
    more = ["waits while a rank computes a prompt"] * (prompts_of(series) > _LITTLE_PREFILL)
    more += ["what requests wait that are stuck"] * (stuck is not None)
    return f"{text}; no rule can save more of it" + (f". Not in it: {' and '.join(more)}" if more else "")


def to_log(series: RankSeries) -> list[str]:
    """Return what to log in addition, for a recommendation and for sharper figures here."""
    engines = " ".join(series.formats)
    more = [
        "For a rule to be recommended lbopt needs requests: one row each with arrival, start of decoding, finish, "
        "prompt and output tokens, and the rank that served it (a router's log, spans, or the record of lbopt serve)"
    ]
    if "Prometheus" in engines and len(series.seconds) < _FEW:
        more.append(
            "More moments: lbopt audit http://HOST:PORT/metrics --for 5m scrapes now, and counts tokens a second"
        )
    if "vLLM" in engines:
        more.append(
            "vLLM: --otlp-traces-endpoint writes such spans, VLLM_LOG_STATS_INTERVAL=1 the lines once a second, "
            "--enable-logging-iteration-details every step; the line 'GPU KV cache size' of the start makes tokens of "
            "shares"
        )
    if "SGLang" in engines:
        more.append(
            "SGLang: --decode-log-interval 1 writes every step, --enable-trace with --otlp-traces-endpoint such spans"
        )
    if "TensorRT" in engines:
        more.append(
            "TensorRT-LLM: print_iter_log with TLLM_PROFILE_LOG_RANKS=all, or enable_iter_perf_stats and /metrics, for "
            "every rank; return_perf_metrics for requests"
        )
    return more
