"""`lbopt study export`: the results of a store as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    store: Annotated[Path, typer.Argument(help="Store that a study filled, such as scaling.sqlite.")],
    to: Annotated[str, typer.Option(help="**parquet** or **csv**.")] = "csv",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File of the table [default: that of the store, other ending].")
    ] = None,
) -> None:
    """Write the results of a store as a table, one row a task: parameters, seed, answer or failure, time, versions.

    Works while a run goes on.

    Example: `lbopt study export scaling.sqlite --to parquet`
    """
    from lbopt.cli.console import say
    from lbopt.exceptions import InputError
    from lbopt.files import called, check_name
    from lbopt.runner import export_store

    for path in filter(None, (store, out)):
        check_name(path, f"'{called(path)}'")
    if not store.name:
        raise InputError(f"'{called(store)}' is a folder; expected the file of a store")
    place, rows = export_store(store, to, out)
    say(f"{rows} rows: {place}")
