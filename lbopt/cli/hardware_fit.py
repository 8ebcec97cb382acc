"""`lbopt hardware fit`: what do measured rows say a token of imbalance costs, and which law do they support?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options


def fit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A CSV with a header, or `published:NAME` for a shipped table such as `published:balance-route`.",
        ),
    ],
    x: Annotated[
        str | None, typer.Option("--x", help="Column of the load [default: imbalance, spread, max_load, loads].")
    ] = None,
    y: Annotated[
        str | None, typer.Option("--y", help="Column to explain [default: step_time, tpot, throughput].")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="Column that tells groups apart [default: group, if there].")
    ] = None,
    hold_out: Annotated[
        str | None, typer.Option("--hold-out", help="Group to predict from the others, or **all** in turn.")
    ] = None,
    residuals: Annotated[bool, typer.Option("--residuals", help="Print the residuals of every row.")] = False,
    out: options.Out = None,
) -> None:
    """Fit laws of step time or throughput to rows, and say which of them the rows can tell apart.

    A header's ending is its unit: _ms, _us, _seconds; _tokens, _ktokens; _tok_s. Laws are compared by the error of
    predicting each row from the others. With --out, writes fits.csv, residuals.csv, comparisons.csv, pictures (png,
    svg) and run.json.

    Example: `lbopt hardware fit published:balance-route --hold-out all --residuals --out my-fit`
    """
    from lbopt.cli.console import command_line, print_table, say
    from lbopt.hardware.fit import calibrate, read_rows
    from lbopt.report.fit_tables import fit_tables
    from lbopt.report.folder import check_target

    folder = Path(out) if out else None
    if folder is not None:
        from lbopt.report.fit_folder import FORMAT, write_fit_folder

        check_target(folder, FORMAT)
    calibration = calibrate(read_rows(file, x=x, y=y, group=group), hold_out)
    if folder is not None:  # before anything is printed: a closed pipe must not cost the result
        write_fit_folder(calibration, folder, command_line())
    for table in fit_tables(calibration, residuals):
        print_table(table)
    if folder is not None:
        say(f"tables and picture: {folder}")
