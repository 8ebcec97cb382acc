"""What is to be priced, read from words of the command line or of Python; plain numbers load no policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lbopt.exceptions import InputError
from lbopt.studies.configuration import from_words
from lbopt.studies.cost import CostConfig, CostOutcome, parse_change, run_cost
from lbopt.studies.cost.source import CostSource, LoadsAsked, of_numbers

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress


class Question(NamedTuple):
    """What is to be priced: load points, on what, and which other fleets."""

    config: CostConfig
    found: CostSource
    change: tuple[str, list[int]] | None
    allow_code: bool = False

    def price(self, progress: Progress | None) -> CostOutcome:
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

    def _run(self, progress: Progress | None) -> CostOutcome:
        found = self.found
        return run_cost(found.points, self.config, progress, self.change, found.rerun, found.step_time)


def read_question(given: Mapping[str, Any]) -> Question:
    """Read what is to be priced from words of the command line or of Python, by the names of fields."""
    config, asked = from_words(CostConfig, given), from_words(LoadsAsked, given)
    numbers = ("loads", "mean_load", "imbalance", "workers", "running")
    named = [name for name in numbers if getattr(asked, name) is not None]
    if asked.source is not None and named:
        raise InputError(f"the loads come from '{asked.source}'; leave {', '.join(named)} out")
    if asked.source is None and asked.router is not None:
        raise InputError(f"router '{asked.router}' is one of a gap report; give its folder")
    if asked.source is not None:
        from lbopt.report.cost_sources import read_cost_source

        found = read_cost_source(asked.source, asked.router, allow_code=asked.allow_code)
    else:
        found = of_numbers(asked)
    change = None if asked.what_if is None else parse_change(asked.what_if, found.rerun)
    return Question(config, found, change, asked.allow_code)
