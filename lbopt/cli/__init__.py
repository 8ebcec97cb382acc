"""The command line: one file a verb; parse, call, print, nothing else.

Exit codes: 0 done, 1 the answer is no (a rerun differs, a claim is false), 2 wrong input, 130 interrupted.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

from lbopt import __version__
from lbopt.cli.check import check
from lbopt.cli.cost import cost
from lbopt.cli.gap import gap
from lbopt.cli.hardware import app as hardware
from lbopt.cli.library import app as library
from lbopt.cli.locality import app as locality
from lbopt.cli.predict import predict
from lbopt.cli.prefill import prefill
from lbopt.cli.race import race
from lbopt.cli.rerun import rerun
from lbopt.cli.simulate import simulate
from lbopt.cli.solve import solve
from lbopt.cli.study import app as study
from lbopt.cli.traces import app as traces
from lbopt.cli.verify import verify
from lbopt.exceptions import LbOptError

app = typer.Typer(
    name="lbopt",
    help="Exact and fast load balancing of LLM decode workers that meet at a barrier in every step.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(gap)
app.command()(simulate)
app.command()(prefill)
app.command()(solve)
app.command()(verify)
app.command()(race)
app.command()(predict)
app.command()(check)
app.command()(cost)
app.command()(rerun)
app.add_typer(traces, name="traces")
app.add_typer(library, name="library")
app.add_typer(hardware, name="hardware")
app.add_typer(locality, name="locality")
app.add_typer(study, name="study")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lbopt {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Exact and fast load balancing of LLM decode workers that meet at a barrier in every step."""


def main() -> None:
    """Run the command line; what lbopt raises on purpose becomes one sentence and exit code 2."""
    logging.basicConfig(level=logging.WARNING, format="note: %(message)s")
    try:
        app()
    except LbOptError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing to flush at exit
        sys.exit(1)
    except MemoryError:
        typer.echo("error: out of memory; use fewer requests, workers or states", err=True)
        sys.exit(2)
