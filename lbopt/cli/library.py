"""``lbopt library``: packaged problems with known optima and bounds, and how a solver fares against them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbopt.cli import options
from lbopt.exceptions import InputError

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="List, show, solve and export packaged problems with known bounds.")

_FORMATS = ("json", "mps", "lp")

Class = Annotated[str | None, typer.Option("--class", help="Only this class, e.g. steady; run: whole small runs.")]
Open = Annotated[bool, typer.Option("--open", help="Only entries whose optimum is not proved.")]
Name = Annotated[str, typer.Argument(help="Name of an entry; see: lbopt library list")]


@app.command("list")
def list_entries(
    kind: Class = None,
    workers: Annotated[int | None, typer.Option("--workers", "-G", help="Only problems of so many workers.")] = None,
    open: Open = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object per entry.")] = False,
) -> None:
    """List the entries: class, size, best known value, proved bound, status.

    Example: `lbopt library list --class steady --workers 16`
    """
    from lbopt.cli.console import print_table, say
    from lbopt.instances import library
    from lbopt.instances.library.runs import RUN_KIND
    from lbopt.report.library_tables import entry_facts, list_table, run_facts, run_table

    runs = [] if open or kind not in (None, RUN_KIND) else list(map(library.load_run, library.run_names()))
    names = [] if kind == RUN_KIND else library.names(kind)
    entries = [entry for entry in map(library.load, names) if not open or entry.status != "proved"]
    if workers is not None:
        sizes = sorted({entry.problem.num_workers for entry in entries} | {run.workers for run in runs})
        entries = [entry for entry in entries if entry.problem.num_workers == workers]
        runs = [run for run in runs if run.workers == workers]
        if not entries and not runs:
            others = f"there are some with {', '.join(map(str, sizes))}"
            others = others if sizes else "--class and --open leave no entry at all"
            raise InputError(f"no such entry has {workers} workers; {others}")
    if as_json:
        say(json.dumps([*map(entry_facts, entries), *map(run_facts, runs)], indent=2))
        return
    if kind != RUN_KIND:
        print_table(list_table(entries))
    if runs or kind == RUN_KIND:
        print_table(run_table(runs))


@app.command("show")
def show_entry(
    name: Name,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole entry as JSON.")] = False,
) -> None:
    """Show one entry: what it is for, where it comes from, what is known and on whose word.

    Example: `lbopt library show tiny-makespan`
    """
    from lbopt.cli.console import out, say
    from lbopt.instances import library
    from lbopt.instances.library.runs import RUN_KIND
    from lbopt.report.library_tables import entry_lines, run_explanation, run_lines

    if name.startswith(f"{RUN_KIND}-"):
        run = library.load_run(name)
        if as_json:
            say(json.dumps(run.to_dict()))
            return
        out.print(run.name, style="bold", soft_wrap=True)
        out.print(run_explanation(run), soft_wrap=True)
        out.print(_grid(run_lines(run)))
        return
    entry = library.load(name)
    if as_json:
        say(json.dumps(entry.to_dict()))
        return
    out.print(entry.name, style="bold", soft_wrap=True)
    out.print(entry.explanation, soft_wrap=True)
    out.print(_grid(entry_lines(entry)))


@app.command("solve")
def solve_entries(
    names: Annotated[list[str] | None, typer.Argument(help="Names of entries; or --all.")] = None,
    all: Annotated[bool, typer.Option("--all", help="All entries, or all that --class and --open leave.")] = False,
    kind: Class = None,
    open: Open = False,
    solver: options.Solver = "exact",
    time_limit: Annotated[float, typer.Option(help="Seconds per entry.")] = 10.0,
    seed: options.Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the results, NAME.result.json with certificates.")
    ] = None,
) -> None:
    """Solve entries from scratch and compare with what is known; exit code 1 where a proof and a value contradict.

    Example: `lbopt library solve --all --class tiny`
    """
    from lbopt.cli.console import ProgressBar, print_table, remark
    from lbopt.instances import library
    from lbopt.report.library_tables import attempt_table
    from lbopt.solvers import check_solver
    from lbopt.studies.library import Attempt, attempt, result_text
    from lbopt.whole_file import write_file

    chosen = [library.load(name) for name in _chosen(names or [], all, kind, open)]
    if open:
        chosen = [entry for entry in chosen if entry.status != "proved"]
    check_solver(solver, time_limit)
    if out is not None:
        _prepare(out)
    attempts: list[Attempt] = []
    interrupted = False
    with ProgressBar() as bar:
        bar.begin("solving", len(chosen))
        try:
            for entry in chosen:
                attempts.append(attempt(entry, solver=solver, time_limit=time_limit, seed=seed))
                if out is not None:
                    write_file(out / f"{entry.name}.result.json", result_text(attempts[-1]) + "\n")
                bar.advance()
        except KeyboardInterrupt:
            interrupted = True
    print_table(attempt_table(attempts, solver))
    wrong = [one for one in attempts if one.verdict == "contradiction"]
    for one in wrong:
        remark(f"contradiction: {one.entry.name}: {one.news}")
    if interrupted:
        remark(f"interrupted: {len(attempts)} of {len(chosen)} entries were solved")
        raise typer.Exit(130)
    if wrong:
        raise typer.Exit(1)


@app.command("export")
def export_entry(
    name: Name,
    format: Annotated[
        str | None, typer.Option(help="**json** (for `lbopt solve`), **mps** or **lp** (for other solvers).")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File [default: NAME.FORMAT].")] = None,
) -> None:
    """Write the problem of an entry to a file.

    Example: `lbopt library export tiny-makespan --format mps`
    """
    from lbopt.cli.console import say
    from lbopt.instances import library
    from lbopt.whole_file import write_file

    entry = library.load(name)
    ending = out.suffix.lower().removeprefix(".") if out is not None else "json"
    chosen = format or ending
    if chosen not in _FORMATS:
        raise InputError(f"the format is '{chosen}'; expected {', '.join(_FORMATS)}")
    target = out or Path(f"{name}.{chosen}")
    if chosen != "json" and target.suffix.lower() != f".{chosen}":
        raise InputError(f"the file is '{target}'; expected the ending .{chosen} for --format {chosen}")
    if chosen == "json":
        write_file(target, entry.problem.to_json() + "\n")
    else:
        entry.problem.write(target)
    say(f"written: {target}")


def _grid(lines: list[tuple[str, str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for what, is_so in lines:
        grid.add_row(Text(what, style="dim"), Text(is_so, overflow="fold"))
    return grid


def _chosen(given: list[str], everything: bool, kind: str | None, open: bool) -> list[str]:
    from lbopt.instances import library
    from lbopt.instances.library.runs import RUN_KIND

    if kind == RUN_KIND:
        raise InputError("whole runs are no step problems; `lbopt library show` shows one")
    if given and (everything or kind is not None or open):
        raise InputError("give names, or choose with --all, --class and --open, not both")
    if not given and not (everything or kind is not None or open):
        raise InputError("name an entry (see: lbopt library list), or give --all")
    return given or library.names(kind)


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder '{folder}': {error.strerror}") from None
