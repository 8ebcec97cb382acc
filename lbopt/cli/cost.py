"""`lbopt cost`: what does imbalance cost, in milliseconds, joules and money?"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from lbopt.cli.carry_out import carry_out
from lbopt.cli.from_config import UsageError, as_verb, settled
from lbopt.cli.study_verb import OUT
from lbopt.exceptions import InputError
from lbopt.report.cost_question import read_question
from lbopt.studies.cost import CostConfig
from lbopt.studies.cost.source import LoadsAsked

if TYPE_CHECKING:
    from lbopt.studies.cost import CostOutcome
    from lbopt.studies.progress import Progress


def _cost(**given: Any) -> None:
    """Price a fleet's imbalance on devices: today's router against better ones and against perfect balance.

    With --out, writes report.html, cost.csv, sensitivities.csv, pictures (png, svg) and run.json.

    Examples: `lbopt cost my-gap --device h800 --what-if workers=16,32` and
    `lbopt cost --mean-load 85000 --imbalance 200000 --workers 8 --running 35`
    """
    question = read_question(given)
    carry_out("cost", question.config, given["out"], run=question.price)


cost = as_verb(_cost, "cost", _cost.__doc__ or "", (LoadsAsked, CostConfig), {"out": OUT})


def run_command(command: str, progress: Progress, *, allow_code: bool = False) -> CostOutcome:
    """Price again what a stored command line names; paths in it are as seen from the present folder.

    Parameters
    ----------
    allow_code
        Whether policy files that the command's folder names may be run; what the command itself says does not count.
    """
    from lbopt.cli.lazy import load

    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if words[:2] != ["lbopt", "cost"]:
        raise InputError(f"the loads are named by the command of a cost folder, and this is not one: {command}")
    try:
        given = load("cost", "lbopt.cli.cost:cost").make_context("cost", words[2:]).params
        given |= settled((LoadsAsked, CostConfig), given["set"] or ())
    except UsageError as error:
        raise InputError(f"the command '{command}' is not one of this version: {error.format_message()}") from None
    return read_question(given | {"allow_code": allow_code}).price(progress)
