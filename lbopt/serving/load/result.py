"""What a run of the load generator measured: latencies with intervals, tokens a second, errors, and its own lag.

* TTFT: from the intended time of a request to its first token. TPOT: from its first to its last token, over the tokens
  after the first. E2E: from the intended time to the end of the answer. All are over requests that went well.
* Percentiles have 95 % intervals by batches: requests are cut into batches in the order of their times, and the
  Student interval of the batches' percentiles is put around the percentile of all. A batch has so many requests that
  the percentile has one above it; with fewer than `FEWEST_BATCHES` batches there is no interval. The interval is
  about one run on one set of requests.
* Requests that were to be sent in the first `warm_up` seconds load the server, and are in none of these.
* Tokens a second: tokens that came from the warm-up until the last request was to be sent, so neither ramp nor drain is
  in it; a stream's tokens are spread evenly from its first to its last one. For the interval the time is cut into 20
  parts. *Of the whole run*: tokens of all answers over the time until the last one ended.

Runs of the load generator as a table, one column a run, so that two rules stand side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.serving.load.client import UNFINISHED, Outcome
from lbopt.serving.load.config import LoadConfig
from lbopt.statistics import Interval, interval_around
from lbopt.table import Table

#: s, the P99 of the generator's lag above which a comparison of two runs is void.
LARGEST_LAG = 0.005

MOST_BATCHES, FEWEST_BATCHES = 20, 5
PERCENTILES = (50, 95, 99)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and its interval, None where there is too little to go by."""

    value: float
    interval: Interval | None

    def shown(self, scale: float) -> str:
        """Return it times `scale`, with its interval in brackets."""
        text = f"{self.value * scale:,.1f}"
        return (
            text if self.interval is None else f"{text} [{', '.join(f'{end * scale:,.1f}' for end in self.interval)}]"
        )


@dataclass(frozen=True)
class LoadResult:
    """What was measured.

    Parameters
    ----------
    config, trace, planned
        What was to be sent, the trace's name, and how many requests it has.
    outcomes
        One a request that was begun.
    delays
        s by which probes of the loop were late.
    seconds
        From the first request to the end of the run.
    cpu_seconds
        Of the generator's process; None on a virtual clock.
    interrupted
        Whether it was ended before its time.
    """

    config: LoadConfig
    trace: str
    planned: int
    outcomes: tuple[Outcome, ...]
    delays: tuple[float, ...]
    seconds: float
    cpu_seconds: float | None
    interrupted: bool

    @cached_property
    def served(self) -> list[Outcome]:
        """Requests that went well, in the order of their times."""
        return [one for one in self.outcomes if not one.error and one.end is not None]

    @cached_property
    def measured(self) -> list[Outcome]:
        """Those of them that came after the warm-up."""
        return [one for one in self.served if one.intended >= self.config.warm_up_seconds]

    @cached_property
    def errors(self) -> dict[str, int]:
        """Requests that did not, by kind, the most frequent kind first."""
        kinds = Counter(one.error for one in self.outcomes if one.error and one.error != UNFINISHED)
        return dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))

    @property
    def unfinished(self) -> int:
        """Requests whose answer was not waited for."""
        return sum(one.error == UNFINISHED for one in self.outcomes)

    @cached_property
    def ttft(self) -> Floats:
        """Time to the first token of each measured stream, s."""
        return _array(one.first - one.intended for one in self.measured if one.first is not None)

    @cached_property
    def tpot(self) -> Floats:
        """Time per token after the first of each measured stream of two tokens or more, s."""
        return _array(
            (one.last - one.first) / (one.tokens - 1)
            for one in self.measured
            if one.first is not None and one.last is not None and one.tokens > 1
        )

    @cached_property
    def e2e(self) -> Floats:
        """Time to the end of each measured answer, s."""
        return _array(one.end - one.intended for one in self.measured if one.end is not None)

    @cached_property
    def lag(self) -> Floats:
        """By how much the generator was late: with each request, and with each probe, s."""
        return _array([*(one.sent - one.intended for one in self.outcomes if one.sent is not None), *self.delays])

    @property
    def comparable(self) -> bool:
        """Whether the lag is small enough for a comparison with another run."""
        return self.lag.size > 0 and float(np.quantile(self.lag, 0.99)) <= LARGEST_LAG

    @cached_property
    def tokens_per_second(self) -> Figure | None:
        """Tokens that came a second from the warm-up until the last request was to be sent."""
        until = max((one.intended for one in self.outcomes), default=0.0)
        begin = self.config.warm_up_seconds
        streams = [(one.first or one.intended, one.last or one.end, one.tokens) for one in self.served]
        if until <= begin or not streams:
            return None
        first, last, tokens = (np.array(column, dtype=np.float64) for column in zip(*streams, strict=True))
        edges = np.linspace(begin, until, MOST_BATCHES + 1)
        length = np.maximum(last - first, 1e-9)
        reached = np.clip((edges[:, None] - first) / length, 0.0, 1.0) @ tokens
        value = float((reached[-1] - reached[0]) / (until - begin))
        enough = len(streams) >= 2 * MOST_BATCHES
        return Figure(value, interval_around(value, np.diff(reached) / np.diff(edges)) if enough else None)

    @cached_property
    def whole_run_tokens_per_second(self) -> float | None:
        """Tokens of all answers over the time until the last one ended."""
        end = max((one.end for one in self.served if one.end is not None), default=0.0)
        return sum(one.tokens for one in self.served) / end if end else None

    def figures(self) -> dict[str, Any]:
        """Return everything as plain data."""
        found: dict[str, Any] = {
            "requests": {
                "planned": self.planned,
                "sent": len(self.outcomes),
                "served": len(self.served),
                "unfinished": self.unfinished,
                "errors": self.errors,
            },
            "seconds": self.seconds,
            "requests_per_second": len(self.served) / self.seconds if self.seconds else 0.0,
            "tokens": sum(one.tokens for one in self.served),
            "prompt_tokens": sum(one.prompt_tokens or 0 for one in self.served),
            "tokens_per_second": _plain(self.tokens_per_second),
            "whole_run_tokens_per_second": self.whole_run_tokens_per_second,
        }
        for name, values in (("ttft", self.ttft), ("tpot", self.tpot), ("e2e", self.e2e)):
            found[f"{name}_seconds"] = {
                "count": int(values.size),
                "mean": float(values.mean()) if values.size else None,
                **{f"p{level}": _plain(percentile(values, level)) for level in PERCENTILES if values.size},
            }
        lag = self.lag
        found["lag_seconds"] = {f"p{level}": float(np.percentile(lag, level)) for level in PERCENTILES if lag.size}
        found["comparable"] = self.comparable
        found["cpu_seconds"] = self.cpu_seconds
        found["interrupted"] = self.interrupted
        return found


def percentile(values: Floats, level: int) -> Figure | None:
    """Return a percentile of values in the order of their times, with its interval by batches; None of no value.

    Parameters
    ----------
    values
        float64 (n,).
    """
    if not values.size:
        return None
    value = float(np.percentile(values, level))
    least = max(2, round(100 / (100 - level)))  # so that a batch has one value above its percentile
    batches = min(MOST_BATCHES, values.size // least)
    if batches < FEWEST_BATCHES:
        return Figure(value, None)
    of_batches = np.array([np.percentile(part, level) for part in np.array_split(values, batches)])
    low, high = interval_around(value, of_batches)
    return Figure(value, (max(low, 0.0), high))


def _plain(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {"value": figure.value, "interval": None if figure.interval is None else list(figure.interval)}


def _array(values: Any) -> Floats:
    return np.fromiter(values, dtype=np.float64)


def load_table(runs: Mapping[str, LoadResult]) -> Table:
    """Return the figures of runs by the names of their columns."""
    rows: list[tuple[str, Callable[[LoadResult], str]]] = [
        ("requests served", lambda run: f"{len(run.served):,} of {len(run.outcomes):,} sent"),
        ("errors", _errors),
        ("tokens a second", lambda run: _shown(run.tokens_per_second)),
        ("of the whole run", lambda run: _shown(_exact(run.whole_run_tokens_per_second))),
        ("TTFT P50 (ms)", lambda run: _shown(percentile(run.ttft, 50), 1000)),
        ("TTFT P95 (ms)", lambda run: _shown(percentile(run.ttft, 95), 1000)),
        ("TTFT P99 (ms)", lambda run: _shown(percentile(run.ttft, 99), 1000)),
        ("TPOT P50 (ms)", lambda run: _shown(percentile(run.tpot, 50), 1000)),
        ("TPOT P95 (ms)", lambda run: _shown(percentile(run.tpot, 95), 1000)),
        ("TPOT P99 (ms)", lambda run: _shown(percentile(run.tpot, 99), 1000)),
        ("E2E P50 (ms)", lambda run: _shown(percentile(run.e2e, 50), 1000)),
        ("E2E P99 (ms)", lambda run: _shown(percentile(run.e2e, 99), 1000)),
        ("lag of the generator, P99 (ms)", lambda run: _lag(run.lag)),
        ("seconds", lambda run: f"{run.seconds:,.1f}"),
    ]
    first = next(iter(runs.values()))
    late = [name for name, run in runs.items() if not run.comparable]
    caption = "latency counts from the time at which a request was to be sent; in brackets 95 % intervals by batches"
    if late:
        caption += f"; not to be compared: the generator was late by more than {LARGEST_LAG * 1000:g} ms at P99" + (
            f" under {', '.join(late)}" if len(runs) > 1 else ""
        )
    return Table(
        title=f"{first.trace}: {first.planned:,} requests",
        caption=caption,
        headers=("", *runs),
        rows=[(label, *(show(run) for run in runs.values())) for label, show in rows],
    )


def _errors(run: LoadResult) -> str:
    kinds = [f"{count:,} {kind}" for kind, count in run.errors.items()]
    if run.unfinished:
        kinds.append(f"{run.unfinished:,} not waited for")
    return ", ".join(kinds) or "0"


def _exact(value: float | None) -> Figure | None:
    return None if value is None else Figure(value, None)


def _shown(figure: Figure | None, scale: float = 1.0) -> str:
    return "-" if figure is None else figure.shown(scale)


def _lag(values: Floats) -> str:
    return f"{np.percentile(values, 99) * 1000:,.2f}" if values.size else "-"
