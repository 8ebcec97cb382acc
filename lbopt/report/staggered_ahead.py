"""Rules that send ahead of the end of a pass as tables: time to first token by latency and load, wait on devices."""

from __future__ import annotations

from lbopt import numbers
from lbopt.report.staggered_words import AHEAD_SAID, interval_said, mean_of, share, values_of
from lbopt.studies.staggered import STAGGERED, StaggeredOutcome
from lbopt.studies.staggered.contenders import AHEAD
from lbopt.studies.staggered.items.ahead import BASELINES
from lbopt.studies.staggered.rows import Key, Rows
from lbopt.table import Table

#: Rules that wait for the end of a pass, with columns of their own.
_SHOWN = ("staggered", "staggered-whole")
_milliseconds = numbers.fixed(0, 1e3)


def ahead_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return two tables a class of fleets."""
    fleets = values_of(outcome, "ahead", "fleet")
    return [table for fleet in fleets for table in (_service(outcome, fleet), _device(outcome, fleet))]


def against_better(rows: Rows, contender: str, keys: dict[str, Key]) -> float | None:
    """Return by how many percent the mean time to first token of a rule exceeds that of the better baseline."""
    ours = rows.value("ttft", **keys, contender=contender)
    others = [rows.value("ttft", **keys, contender=base) for base in BASELINES]
    told = [value for value in others if value is not None]
    return None if ours is None or len(told) < len(others) else 100 * (ours / min(told) - 1)


def without_latency(rows: Rows, keys: dict[str, Key]) -> float | None:
    """Return the same of the best staggered rule where there is no latency."""
    alike = keys | {"latency": 0.0}
    found = [against_better(rows, rule, alike) for rule in STAGGERED]
    return min((value for value in found if value is not None), default=None)


def _cases(outcome: StaggeredOutcome, fleet: Key) -> list[dict[str, Key]]:
    latencies, loads = (values_of(outcome, "ahead", key) for key in ("latency", "load"))
    return [{"fleet": fleet, "latency": latency, "load": load} for latency in latencies if latency for load in loads]


def _heads(keys: dict[str, Key]) -> tuple[str, str]:
    return numbers.fixed(0, 1e3)(float(keys["latency"])), share(keys["load"])


def _service(outcome: StaggeredOutcome, fleet: Key) -> Table:
    rows = []
    for keys in _cases(outcome, fleet):
        means = (mean_of(outcome, "ahead", "ttft", keys | {"contender": base}) for base in BASELINES)
        bound = outcome.mean("ahead", lambda rows, keys=keys: without_latency(rows, keys))  # type: ignore[misc]
        changes = [
            outcome.mean("ahead", lambda rows, rule=rule, keys=keys: against_better(rows, rule, keys))  # type: ignore[misc]
            for rule in (*_SHOWN, *AHEAD)
        ]
        cells = (numbers.with_interval(change, numbers.fixed(1), signed=True) for change in (bound, *changes))
        rows.append((*_heads(keys), *(numbers.with_interval(mean, _milliseconds) for mean in means), *cells))
    return Table(
        f"{fleet}: mean time to first token by latency and load",
        "Rules as change in % against the better of the two baselines, seed by seed; load: of saturation. "
        f"At 0 ms: the best staggered rule where there is no latency. {interval_said(outcome, 'ahead')}{AHEAD_SAID}",
        ("ms", "load", *(f"{base} (ms)" for base in BASELINES), "at 0 ms", *_SHOWN, *AHEAD),
        rows,
    )


def _device(outcome: StaggeredOutcome, fleet: Key) -> Table:
    names = (*BASELINES, "pooled", *_SHOWN, *AHEAD)
    rows = [
        (
            *_heads(keys),
            *(_milliseconds_of(outcome, keys | {"contender": name}) for name in names),
        )
        for keys in _cases(outcome, fleet)
    ]
    return Table(
        f"{fleet}: wait on the device by latency and load",
        "Mean time from the moment a prompt reaches its instance to the start of the first pass that serves it, ms.",
        ("ms", "load", *names),
        rows,
    )


def _milliseconds_of(outcome: StaggeredOutcome, keys: dict[str, Key]) -> str:
    return numbers.with_interval(mean_of(outcome, "ahead", "on_device", keys), _milliseconds)
