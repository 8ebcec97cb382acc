"""A table of any item of a staggering study that has none of its own: its keys, then its quantities."""

from __future__ import annotations

from lbopt.report import numbers
from lbopt.report.gap_tables import Table
from lbopt.studies.staggered import Averaged, StaggeredOutcome

#: More rows than this are for the file.
SHOWN = 40


def other_tables(outcome: StaggeredOutcome, item: str) -> list[Table]:
    """Return a table for each kind of row, means over seeds; keys that are the same everywhere are in the caption."""
    kinds: dict[tuple[str, ...], list[Averaged]] = {}
    for row in outcome.averaged(item):
        kinds.setdefault(tuple(sorted(row.keys)), []).append(row)
    return [_table(outcome, item, rows) for rows in kinds.values()]


def _table(outcome: StaggeredOutcome, item: str, rows: list[Averaged]) -> Table:
    keys = list(rows[0].keys)
    varied = [key for key in keys if len({row.keys[key] for row in rows}) > 1] or keys[:1]
    alike = ", ".join(f"{key} {rows[0].keys[key]}" for key in keys if key not in varied)
    quantities = list(dict.fromkeys(of for row in rows for of in row.values))
    seeds = len(outcome.rows[item])
    caption = [f"{'One seed' if seeds == 1 else f'Means over {seeds} seeds'}, intervals in {item}.csv. Times in s."]
    if alike:
        caption.append(f"Everywhere: {alike}.")
    if len(rows) > SHOWN:
        caption.append(f"The first {SHOWN} of {len(rows)} rows; {item}.csv has all.")
    return Table(
        item.capitalize(),
        " ".join(caption),
        (*varied, *(of.replace("_", " ") for of in quantities)),
        [(*(str(row.keys[key]) for key in varied), *(_mean(row, of) for of in quantities)) for row in rows[:SHOWN]],
    )


def _mean(row: Averaged, quantity: str) -> str:
    value = row.values.get(quantity)
    return numbers.UNKNOWN if value is None else numbers.three(value.mean)
