"""``lbopt hardware``: what devices are, and what they take."""

from __future__ import annotations

import typer

from lbopt.cli.hardware_measure import measure

app = typer.Typer(no_args_is_help=True, help="Devices, and what a step costs on them.")
app.command()(measure)


@app.callback()
def hardware() -> None:
    """Devices, and what a step costs on them."""
