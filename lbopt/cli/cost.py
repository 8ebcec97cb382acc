"""`lbopt cost`: what does imbalance cost, in milliseconds, joules and money?"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from lbopt.cli.carry_out import carry_out
from lbopt.cli.from_config import first_of, parameters
from lbopt.cli.study_verb import as_verb
from lbopt.exceptions import InputError
from lbopt.studies.configuration import from_words
from lbopt.studies.cost import CostConfig, parse_change, run_cost
from lbopt.studies.cost.source import LoadsAsked, of_numbers

if TYPE_CHECKING:
    from lbopt.studies.cost import CostOutcome
    from lbopt.studies.cost.source import CostSource
    from lbopt.studies.progress import Progress


def cost(**given: Any) -> None:
    """Price a fleet's imbalance on devices: today's router against better ones and against perfect balance.

    With --out, writes report.html, cost.csv, sensitivities.csv, pictures (png, svg) and run.json.

    Examples: `lbopt cost my-gap --device h800 --what-if workers=16,32` and
    `lbopt cost --mean-load 85000 --imbalance 200000 --workers 8 --running 35`
    """
    question = read_question(given)
    carry_out("cost", question.config, given["out"], run=question.price)


as_verb(
    cost,
    "cost",
    cost.__doc__ or "",
    (parameters(LoadsAsked) | parameters(CostConfig)).values(),
    first_of(LoadsAsked) | {"device", "model"},
)


class Question(NamedTuple):
    """What is to be priced: load points, on what, and which other fleets."""

    config: CostConfig
    found: CostSource
    change: tuple[str, list[int]] | None
    allow_code: bool = False

    def price(self, progress: Progress) -> CostOutcome:
        """Return the cost; the outcome says where its loads are from."""
        if self.found.rerun is None:  # no policy is run, and none is imported: that takes a third of a second
            outcome = self._run(progress)
        else:
            from lbopt.policies.python_file import refused_code

            with refused_code(self.found.title, allowed=self.allow_code):
                outcome = self._run(progress)
        outcome.source = self.found.title
        outcome.notes = [*self.found.notes, *outcome.notes]
        return outcome

    def _run(self, progress: Progress) -> CostOutcome:
        found = self.found
        return run_cost(found.points, self.config, progress, self.change, found.rerun, found.step_time)


def read_question(given: dict[str, Any]) -> Question:
    """Read the options of the command, by their names."""
    config, asked = from_words(CostConfig, given), from_words(LoadsAsked, given)
    plain = {"--loads": asked.loads, "--mean-load": asked.mean_load, "--imbalance": asked.imbalance}
    plain |= {"--workers": asked.workers, "--running": asked.running}
    named = [name for name, value in plain.items() if value is not None]
    if asked.source is not None and named:
        raise InputError(f"the loads come from '{asked.source}'; leave {', '.join(named)} out")
    if asked.source is None and asked.router is not None:
        raise InputError(f"router '{asked.router}' is one of a gap report; give its folder")
    if asked.source is not None:
        from lbopt.report.cost_sources import read_cost_source

        found = read_cost_source(asked.source, asked.router, allow_code=asked.allow_code)
    else:
        found = of_numbers(asked.loads, asked.mean_load, asked.imbalance, asked.workers, asked.running)
    change = None if asked.what_if is None else parse_change(asked.what_if, found.rerun)
    return Question(config, found, change, asked.allow_code)


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
    except _UsageError as error:
        raise InputError(f"the command '{command}' is not one of this version: {error.format_message()}") from None
    return read_question(given | {"allow_code": allow_code}).price(progress)


#: What typer raises where a command line is wrong; the class that it derives from has no name of its own there.
_UsageError: Any = typer.BadParameter.__base__
