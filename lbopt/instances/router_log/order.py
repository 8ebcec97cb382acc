"""Whether a log can be believed: times in order, tokens that the times follow; and notes for its reader.

Few rows may be out of order; what spoils many of them is named.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances.router_log.cells import Table
from lbopt.instances.router_log.guess import Chooser
from lbopt.instances.router_log.quantities import Clock, read_counts
from lbopt.instances.router_log.times import Plan, Times

#: Seconds by which a time may lie before the one that it follows.
TOLERANCE = 1e-3

#: Share of rows out of order from which on the log is refused.
LARGEST_SHARE = 1e-3

#: Tokens per second of one request; more or less is no decoding.
PACES = (0.2, 5000.0)
_LARGEST_ODD = 0.05

_QUARTER = 900.0

# Requests that tell swapped tokens, and the spread of the time of a token (of its logarithm) that no engine has.
_FEWEST = 20
_UNSTEADY = 0.3

# Correlation of the logarithms of seconds and steps below which a log is refused, or remarked on; seconds that spread
# by less than this share of the spread of steps are constant.
_UNRELATED = 0.35
_LOOSE = 0.6
_CONSTANT = 0.1


def out_of_order(table: Table, times: Times, kept: NDArray[np.bool_], clocks: dict[str, Clock]) -> NDArray[np.bool_]:
    """Return bool (N,), rows whose times are out of order, where they are few.

    Parameters
    ----------
    kept
        bool (N,), the rows to look at.
    clocks
        Columns of "arrival", "begin" and "end", for errors.

    Raises
    ------
    InputError
        Where more than `LARGEST_SHARE` of the rows are out of order, or a whole number of quarter hours lies between
        two columns.
    """
    pairs = (
        ("arrival", "begin", times.start - times.arrival, "start"),
        ("begin", "end", times.finish - times.start, "finish"),
    )
    broken = np.zeros(len(table), dtype=bool)
    for earlier, later, gap, word in pairs:
        there = kept & ~np.isnan(gap)
        if not there.any():
            continue
        _refuse_zones(table, gap[there], clocks[earlier], clocks[later])
        late = there & (gap < -TOLERANCE)
        share = float(late.sum() / there.sum())
        last = bool(late[-1]) and table.ends_open
        if share > LARGEST_SHARE or last:
            row = int(np.argmax(late)) if share > LARGEST_SHARE else len(table) - 1
            before = "arrival" if word == "start" else "start"
            raise InputError(
                f"{table.where(row)}: {word} ({clocks[later].name}) lies {-gap[row]:.6g} s before {before} "
                f"({clocks[earlier].name}), as in {int(late.sum()):,} of {int(there.sum()):,} rows; "
                f"{_cause(gap[there], share)}{table.hint_at(row)}"
            )
        broken |= late
    return broken


def _cause(gap: NDArray[np.float64], share: float) -> str:
    if share > 0.99:
        return "the two columns are swapped or count in different units; name them with --column"
    if np.sum(gap < -TOLERANCE) < 3:
        return "correct or remove the row; rows that are few in a thousand are left out and counted"
    if float(np.ptp(gap[gap < -TOLERANCE])) < 60.0:
        return "the clocks of two machines differ; correct one, or name columns of one machine with --column"
    return "expected arrival <= start <= finish; name the columns with --column"


def _refuse_zones(table: Table, gap: NDArray[np.float64], earlier: Clock, later: Clock) -> None:
    """Refuse two columns of date-times between which a time zone lies.

    Parameters
    ----------
    gap
        float64, seconds from the one to the other.
    earlier, later
        The two columns.
    """
    if earlier.unit != "date-time" or later.unit != "date-time" or gap.size < 3 or earlier.name == later.name:
        return
    low, high = float(np.min(gap)), float(np.quantile(gap, 0.9))
    quarters = int(np.floor((low + TOLERANCE) / _QUARTER))
    if quarters == 0 or high - quarters * _QUARTER > _QUARTER or abs(quarters) > 14 * 4:
        return
    minutes = abs(quarters) * 15
    side = "behind" if quarters > 0 else "before"
    raise InputError(
        f"{table.source}: column {later.name!r} lies {minutes // 60} h {minutes % 60:02} min {side} column "
        f"{earlier.name!r} in every row; their zones differ: write both with a zone, or both in UTC"
    )


def refuse_swapped_tokens(
    table: Table, took: NDArray[np.float64], prompt: NDArray[np.int64], output: NDArray[np.int64]
) -> None:
    """Refuse a log in which decoding takes as long as prompts are long, rather than outputs.

    Parameters
    ----------
    took
        float64 (K,), seconds of decoding of the finished requests.
    prompt, output
        int64 (K,), their tokens.
    """
    seen = (took > 0) & (prompt > 0)
    if seen.sum() < _FEWEST:
        return
    by_prompt, by_output = (float(np.std(np.log(took[seen] / tokens[seen]))) for tokens in (prompt, output))
    if by_output > _UNSTEADY and by_prompt < by_output / 2:
        raise InputError(
            f"{table.source}: requests take as long to decode as their prompts are long, whatever their output; the "
            "columns of prompt and output are swapped: name them, --column prompt=NAME --column output=NAME"
        )


def loose_lengths(table: Table, took: NDArray[np.float64], output: NDArray[np.int64]) -> str | None:
    """Refuse a log in which longer outputs do not take longer to decode; return a note where they hardly do.

    Parameters
    ----------
    table, took, output
        As in `refuse_swapped_tokens`.
    """
    seen = took > 0
    steps, times = np.log(output[seen]), np.log(took[seen])
    if seen.sum() < _FEWEST or np.std(steps) < _UNSTEADY:
        return None
    varies = float(np.std(times)) > _CONSTANT * float(np.std(steps))
    follows = float(np.corrcoef(times, steps)[0, 1]) if varies else 0.0
    if follows < _UNRELATED:
        raise InputError(
            f"{table.source}: the seconds from start to finish do not follow the output (correlation {follows:.2f}); a "
            "column counts in another unit or from another moment, or is none of this request: name it with --column"
        )
    return f"the seconds of decoding hardly follow the output (correlation {follows:.2f})" if follows < _LOOSE else None


def odd_paces(table: Table, times: Times, finished: NDArray[np.bool_], steps: NDArray[np.float64]) -> str | None:
    """Return a note about requests that decode absurdly fast or slowly; refuse the log where they are many.

    Parameters
    ----------
    finished
        bool (N,), the rows to look at.
    steps
        float64 (N,), decode steps.
    """
    if not finished.any():
        return None
    took = np.maximum(times.finish[finished] - times.start[finished], 1e-9)
    pace = steps[finished] / took
    odd = (pace < PACES[0]) | (pace > PACES[1])
    if odd.mean() > _LARGEST_ODD:
        row = int(np.flatnonzero(finished)[int(np.argmax(odd))])
        at_once = took[odd] < 1e-6
        if at_once.mean() > 0.5:
            raise InputError(
                f"{table.where(row)}: start and finish are the same moment, as in {int(at_once.sum()):,} of "
                f"{odd.size:,} requests; the times are too coarse: log them to the millisecond"
            )
        raise InputError(
            f"{table.where(row)}: {pace[odd][0]:,.4g} tokens a second, and {int(odd.sum()):,} of {odd.size:,} requests "
            f"decode outside {PACES[0]:g} to {PACES[1]:,.0f}; name the columns of start, finish and output: --column"
        )
    if odd.any():
        return f"{int(odd.sum()):,} requests decode outside {PACES[0]:g} to {PACES[1]:,.0f} tokens a second"
    return None


def remarks(
    chooser: Chooser, plan: Plan, times: Times, kept: NDArray[np.bool_], prompt: NDArray[np.int64], workers: int
) -> list[str]:
    """Return sentences about waits, clocks and caches.

    Parameters
    ----------
    chooser
        The table and its columns.
    plan
        The columns of the times.
    kept
        bool (N,), rows that are in the log.
    prompt
        int64 (N,), tokens of prompts as written.
    """
    notes = []
    if plan.arrival_is_start:
        notes.append("the log has no arrivals; the start of decoding stands for them, and waits cannot be judged")
    if plan.after_first_token:
        notes.append("decoding starts at the first token here, so that waits include prefill")
    if workers == 1:
        notes.append(
            "one worker served all requests; if it is a load balancer, name the column of the engines behind it"
        )
    if kept.sum() < len(chooser.table) / 2:
        notes.append(f"less than half of the rows are in the log: {int(kept.sum()):,} of {len(chooser.table):,}")
    stamps = np.concatenate([times.start[kept], times.finish[kept]])
    stamps = stamps[~np.isnan(stamps)]
    from_clocks = stamps.size > 10 and plan.end == "finish" and plan.begin in ("start", "first_token")
    if from_clocks and np.all(np.abs(stamps - np.rint(stamps)) < 1e-9):
        notes.append("times are whole seconds; shorter waits and steps cannot be judged")
    if cached := chooser.find("cached"):
        hits, _ = read_counts(chooser, cached)
        total = int(prompt[kept].sum())
        if np.any(hits[kept] > prompt[kept]):
            notes.append(
                f"column '{cached.name}' exceeds the prompt in some rows; prompts may be without cached tokens"
            )
        elif total:
            notes.append(f"{100 * int(hits[kept].sum()) / total:.0f} % of the prompt tokens were cached")
    return notes
