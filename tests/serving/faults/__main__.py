"""Faults that routers survive: ``python -m tests.serving.faults [--row TEXT] [--router TEXT] [--at-once N]``.

Each row goes through every router that is here, before three engines of its own, of which one has the fault. All are
real processes that talk over loopback. `lbopt serve` is measured with two rules; `vllm-router` and `sglang-router` join
where their programs are in the path: ``PATH=$PATH:ENVIRONMENT/bin make faults``. The exit code is 1 where a client of
`lbopt serve` got something that no client may get, where an account does not add up, or where slots are still held.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.serving.faults.campaign import Account, measure
from tests.serving.faults.routers import Column, NotReadyError, columns
from tests.serving.faults.rows import ROWS, Row
from tests.serving.faults.verdict import KINDS, WHOLE

#: Seconds of the slowest client from which on the table tells them.
_SLOW = 2.0


def cell(account: Account) -> str:
    """Return an account in a few words: ``60``, or ``40 + 20 refused, 8 s``."""
    words = [f"{account.kinds[kind]:,} {kind}" for kind in KINDS if account.kinds[kind] and kind != WHOLE]
    if account.whole or not words:
        words.insert(0, f"{account.whole:,}")
    still = [f"{account.running:,} still computed"] if account.running else []
    still += [f"{account.held:,} still held"] if account.held else []
    seconds = f", {account.slowest:.0f} s" if account.slowest >= _SLOW else ""
    return " + ".join(words) + seconds + (f" ({', '.join(still)})" if still else "")


async def run(rows: list[Row], routers: list[Column], told: Console) -> tuple[list[list[str]], list[str]]:
    """Run rows one after another, each through all routers at once; return the cells and what must not be."""
    cells, complaints = [], []
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):  # all that runs ends with its block
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    for row in rows:
        began = time.monotonic()
        accounts = await asyncio.gather(*(measure(row, column) for column in routers))
        cells.append([row.name, *map(cell, accounts)])
        for column, account in zip(routers, accounts, strict=True):
            if column.ours:
                complaints += [f"{row.name}, {column.name}: {what}" for what in account.complaints(row)]
        told.print(f"{', '.join(cells[-1])}; {time.monotonic() - began:.0f} s", style="dim")
    return cells, complaints


def markdown(heads: list[str], cells: list[list[str]]) -> str:
    """Return the table as the manual has it."""
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(line) + " |" for line in cells)]) + "\n"


def main() -> int:
    """Run, print and write the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.serving.faults", description=__doc__)
    parser.add_argument("--row", action="append", help="rows whose names begin so; may be repeated")
    parser.add_argument("--router", action="append", help="routers whose names hold this; may be repeated")
    parser.add_argument("--policy", default="round_robin", help="of the routers of others, as both call it")
    parser.add_argument("--at-once", type=int, help="clients at the same time, instead of the rows' own number")
    parser.add_argument("--out", type=Path, help="file for the table in Markdown")
    given = parser.parse_args()
    rows = [row for row in ROWS if not given.row or any(row.name.startswith(text) for text in given.row)]
    if given.at_once is not None:
        rows = [replace(row, at_once=given.at_once) for row in rows]
    routers = [c for c in columns(given.policy) if not given.router or any(text in c.name for text in given.router)]
    if not rows:
        parser.error(f"no row begins with {' or '.join(given.row)}; there are: {', '.join(row.name for row in ROWS)}")
    if not routers:
        parser.error(f"no router that is here holds {' or '.join(given.router)} in its name")
    if given.at_once is not None and given.at_once < 1:
        parser.error(f"--at-once is {given.at_once}; expected 1 or more")
    told, out = Console(stderr=True), Console(width=200)
    try:
        cells, complaints = asyncio.run(run(rows, routers, told))
    except asyncio.CancelledError:
        return 130
    except NotReadyError as error:
        told.print(f"error: {error}", soft_wrap=True)
        return 2
    heads = [f"of {ROWS[0].requests} clients", *(column.name for column in routers)]
    table = Table(*heads, box=None)
    for line in cells:
        table.add_row(*line)
    out.print(table)
    out.print(
        f"a number alone: whole answers; s: of the slowest client, where it took {_SLOW:.0f} or more; "
        f"{os.cpu_count()} cores, {platform.machine()}, {time.strftime('%F')}"
    )
    if all(column.ours for column in routers):
        out.print("for vllm-router and sglang-router beside it: PATH=$PATH:ENVIRONMENT/bin, where they are installed")
    for complaint in complaints:
        out.print(f"must not be: {complaint}")
    if given.out is not None:
        given.out.write_text(markdown(heads, cells), encoding="utf-8")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
