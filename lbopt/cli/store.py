"""`lbopt store`: look after the files in which studies keep their results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli.lazy import CONTEXT, Verb, group

app = group(
    {"check": Verb("lbopt.cli.store:check", "Check every row of a store against its hash.")},
    name="store",
    help="The stores in which studies keep their results.",
    add_completion=False,
    context_settings=CONTEXT,
)


@app.callback()
def store() -> None:
    """The stores in which studies keep their results."""


def check(
    path: Annotated[Path, typer.Argument(metavar="STORE", help="Store that a study filled, such as scaling.sqlite.")],
    rescue: Annotated[Path | None, typer.Option(help="New store for the rows that are sound.")] = None,
) -> None:
    """Check every row of a store against its hash, and name those that are damaged.

    Exit code 1 if one is, or if the file is damaged as a whole. Damaged rows are computed again by the command that
    filled the store.

    Example: `lbopt store check scaling.sqlite`
    """
    from lbopt.cli.console import remark, say
    from lbopt.runner.store_check import check_store
    from lbopt.runner.store_check import rescue as save

    found = check_store(path)
    for row in found.damaged:
        say(f"damaged: {row}")
    if found.structure is not None:
        say(f"damaged: the file as a whole ({found.structure}); rows may be missing altogether")
    say(f"{found.sound} rows are what was written, {len(found.damaged)} are damaged: {path}")
    if found.version == 1:
        remark("note: this store has no hashes of rows; the next run that writes to it adds them")
    if rescue is not None:
        save(found, rescue)
        say(f"saved {found.sound} rows: {rescue}")
    if not found.whole:
        raise typer.Exit(1)
