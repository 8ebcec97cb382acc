"""`lbopt gap`: how far is each rule from the best placement, of decode steps or of prefill batches?"""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from lbopt.cli.brief_help import HelpAll, brief
from lbopt.cli.carry_out import carry_out
from lbopt.cli.from_config import joined, parameters, signature
from lbopt.cli.study_verb import option
from lbopt.exceptions import InputError
from lbopt.spec import unknown
from lbopt.studies.batches import BatchesConfig
from lbopt.studies.configuration import from_words
from lbopt.studies.gap import GapConfig
from lbopt.studies.gap.config import with_training

SIDES = ("decode", "prefill")
#: What `--help` shows, beside `--help` and `--help-all` themselves.
FIRST = ("side", "requests", "workers", "slots", "policy", "states", "horizon", "seed", "time_limit", "out")

_DECODE, _PREFILL = parameters(GapConfig), parameters(BatchesConfig)
_OWN = {
    "side": option(
        "side",
        Annotated[
            str,
            typer.Option(
                help="**decode**: where requests start; **prefill**: units for the prompts of a batch.",
                rich_help_panel="Study",
            ),
        ],
        "decode",
    ),
    "out": option(
        "out",
        Annotated[
            str | None,
            typer.Option(
                "--out",
                "-o",
                help="Output folder [default: lbopt-gap; prefill: lbopt-batch-gap].",
                rich_help_panel="Output",
            ),
        ],
        None,
    ),
    "help_all": option("help_all", HelpAll, False),
}


def gap(context: typer.Context, **given: Any) -> None:
    """Sample decode steps, solve each to optimality, and measure how far every policy stays behind.

    Writes gap.csv, long_runs.csv, differences.csv, steps.jsonl, pictures, report.html and run.json; with --side prefill
    batches.csv, gap.csv, batches.jsonl, a picture and run.json.

    Example: `lbopt gap burstgpt-like --requests 3000 --states 20 --out demo-gap`
    """
    side, out = given["side"], given["out"]
    _check_side(side, context)
    if side == "prefill":
        carry_out("batches", from_words(BatchesConfig, given), "lbopt-batch-gap" if out is None else out)
        return
    frozen = given["problems"] is not None
    config = from_words(GapConfig, given | {"long_runs": given["long_runs"] and not frozen})
    carry_out("gap", with_training(config), "lbopt-gap" if out is None else out)


def _check_side(side: str, context: typer.Context) -> None:
    """Refuse a side that does not exist, and options that mean nothing on the chosen side."""
    if side not in SIDES:
        raise unknown("side", side, SIDES)
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in _OWN or (name in _DECODE) == (name in _PREFILL):
            continue
        if source is None or source.name.startswith("DEFAULT"):
            continue
        concerns = "prefill" if name in _PREFILL else "decode"
        if concerns != side:
            raise InputError(
                f"{parameter.opts[0]} concerns the {concerns} side; expected --side {concerns}, or a command without it"
            )


_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
gap.__signature__ = signature(  # type: ignore[attr-defined]
    [_CONTEXT, *(joined(_DECODE, _PREFILL, "Prefill") | _OWN).values()]
)
gap.__annotations__ = {}
gap.brief = brief(frozenset(FIRST))  # type: ignore[attr-defined]
