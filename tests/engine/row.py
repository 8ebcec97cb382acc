"""A line of the table, and the table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Row:
    """What one check found.

    Parameters
    ----------
    check, found
        Both in a few words.
    detail
        More of it, for the file.
    ok
        Whether it is as it has to be; None where the check only tells.
    """

    check: str
    found: str
    detail: list[str] = field(default_factory=list)
    ok: bool | None = None


#: How a table says whether a row is as it has to be.
SAYS = {True: "yes", False: "NO", None: ""}


def markdown(columns: dict[str, list[Row]]) -> str:
    """Return one table in Markdown: a row for each check, a column for each fleet; details follow it.

    Parameters
    ----------
    columns
        Rows of each fleet; a check that a fleet lacks is an empty cell.
    """
    checks = list(dict.fromkeys(row.check for rows in columns.values() for row in rows))
    found = {(name, row.check): row for name, rows in columns.items() for row in rows}
    lines = ["| check | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for check in checks:
        cells = [found.get((name, check)) for name in columns]
        lines.append(f"| {check} | " + " | ".join(cell(row) for row in cells) + " |")
    details = [f"* {name}, {check}: {one}" for (name, check), row in found.items() for one in row.detail]
    return "\n".join([*lines, "", *details]) + "\n"


def cell(row: Row | None) -> str:
    """Return what a row found, marked where it is not as it has to be."""
    if row is None:
        return ""
    return f"**{row.found}**" if row.ok is False else row.found
