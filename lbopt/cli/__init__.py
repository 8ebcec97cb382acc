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
from lbopt.cli.caches import provide_caches
from lbopt.cli.lazy import CONTEXT, Verb, group
from lbopt.exceptions import LbOptError

_STUDIES, _LOOKUP, _LIVE = "Studies", "Problems, traces and hardware", "Live requests"

#: Every verb in the order of the help. A verb is imported when it is named.
VERBS = {
    "audit": Verb("study:audit", "Say from a router's log whether another rule would be faster.", _STUDIES),
    "gap": Verb("study:gap", "Measure how far routing rules are from the best placement.", _STUDIES),
    "simulate": Verb("study:simulation", "Run one policy over a trace and print its metrics.", _STUDIES),
    "hindsight": Verb("study:hindsight", "Bound what was possible with all lengths known.", _STUDIES),
    "prefill": Verb("study:prefill", "Compare rules that dispatch prompts to prefill instances.", _STUDIES),
    "predict": Verb("study:prediction", "Judge predictors of the remaining length on a trace.", _STUDIES),
    "cost": Verb("lbopt.cli.cost:cost", "Price a fleet's imbalance in time, energy and money.", _STUDIES),
    "check": Verb("lbopt.cli.check:check", "Check theorems and lemmas, as printed and as corrected.", _STUDIES),
    "study": Verb("lbopt.cli.study:app", "Questions that take many runs.", _STUDIES),
    "mock": Verb("lbopt.cli.mock:mock", "Run a fleet of mock engines with one barrier clock a group.", _LIVE),
    "load": Verb("lbopt.cli.load:load", "Send a trace's requests at their times and measure the answers.", _LIVE),
    "serve": Verb("lbopt.cli.serve:serve", "Route live requests by any rule, or decide beside your router.", _LIVE),
    "show": Verb("lbopt.cli.show:show", "Show rules, traces, problems, cards, claims, or a router's fleet.", _LOOKUP),
    "solve": Verb("lbopt.cli.solve:solve", "Solve a step problem from a file, or packaged ones.", _LOOKUP),
    "verify": Verb("lbopt.cli.verify:verify", "Check a result, repeat a study, or check a store.", _LOOKUP),
    "export": Verb("lbopt.cli.export:export", "Write a store, a problem, a record or a capture to files.", _LOOKUP),
    "fit": Verb("lbopt.cli.fit:fit", "Fit laws of step time to rows, or a routing table to a capture.", _LOOKUP),
    "measure": Verb("lbopt.cli.measure:measure", "Measure this machine, and write its card.", _LOOKUP),
    "warm": Verb("lbopt.cli.warm:warm", "Compile what verbs need ahead of their first use.", _LOOKUP),
}

#: How verbs were called, and how they are called; words that begin with -- may stand anywhere.
BEFORE = {
    "rerun": "verify",
    "store check": "verify",
    "study export": "export",
    "library export": "export",
    "serve seal": "export",
    "locality draw": "export",
    "locality fit": "fit",
    "hardware fit": "fit",
    "hardware measure": "measure",
    "library solve --all": "solve *",
    "library solve": "solve",
    "policies": "show policies",
    "library list": "show problems",
    "library show": "show problems",
    "traces list": "show traces",
    "traces describe": "show traces",
    "traces fetch": "show traces --fetch",
    "hardware devices": "show devices",
    "hardware device": "show devices",
    "hardware models": "show models",
    "hardware model": "show models",
    "locality show": "show tables",
    "top": "show fleet",
    "check --list": "show claims",
    "check --all": "check all",
    "gap --side prefill": "study batches",
    "gap --side decode": "gap",
    "library": "show problems",
    "traces": "show traces",
    "hardware": "show devices",
    "locality": "show tables",
    "store": "verify",
}

app = group(
    VERBS,
    BEFORE,
    name="lbopt",
    help="Exact and fast load balancing of LLM decode workers that meet at a barrier in every step.",
    add_completion=True,
    context_settings=CONTEXT,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"lbopt {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Exact and fast load balancing of LLM decode workers that meet at a barrier in every step."""


def main() -> None:
    """Run the command line; what lbopt raises on purpose becomes one sentence and exit code 2."""
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainLog("note: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("lbopt.kernels").setLevel(logging.INFO)  # says when kernels are compiled
    provide_caches()
    try:
        app()
    except LbOptError as error:
        _say_error(str(error))
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output has seen enough
        _drop_output()
        sys.exit(1)
    except OSError as error:  # of the terminal or the file that the output goes to: all others are sentences already
        named = f"'{error.filename}'" if error.filename else "the output"
        _say_error(f"{named} cannot be written: {error.strerror or error}")
        _drop_output()
        sys.exit(2)


class _PlainLog(logging.Formatter):
    """Lines of a log in which nothing commands the terminal: they hold names and reasons from engines and files."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        from lbopt.files import printable  # first needed here: the verbs that need no file start sooner

        return printable(super().format(record))


def _say_error(text: str) -> None:
    from lbopt.files import printable

    typer.echo(f"error: {printable(text)}", err=True)


def _drop_output() -> None:
    """Leave nothing to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
