"""``lbopt hardware``: step-time laws from rows of measurements."""

from __future__ import annotations

import typer

from lbopt.cli.hardware_fit import fit

app = typer.Typer(no_args_is_help=True, help="Calibrate step times from measured or published rows.")
app.command("fit")(fit)
