"""What a study of hindsight is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.policies import Policy, make_policy
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.scenario import Scenario
from lbopt.studies.training import refuse_logs_of_other_requests, with_training

DEFAULT_POLICIES = ("fcfs", "round-robin", "jsq-load", "max-min", "br-0", "auto")

#: Whose starts are those of first come, first served.
FIRST_COME = "fcfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class HindsightConfig:
    """Configuration of a study of hindsight.

    Parameters
    ----------
    scenario
        Requests, fleet, arrivals, step-time law; no workers in detail.
    policies
        Rules to judge, as `make_policy` reads them.
    seed
        Of the requests, the runs and the search.
    effort
        Exchanges of chains that the search for a placement tries, for each step of a timetable; and, without a limit
        of time, seconds of the exact search of a small run (`lbopt.hindsight.optimum`).
    time_limit
        Seconds of both searches for each timetable; None = none. A search that it ends may differ from run to run.
    """

    scenario: Scenario = field(default_factory=Scenario)
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule to judge, e.g. `auto`; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
        ),
    ] = DEFAULT_POLICIES
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    effort: Annotated[
        int,
        Option(
            "Exchanges that the search tries, for each step of a run; without a time limit also seconds for the exact "
            "search of a small run.",
            first=True,
        ),
    ] = 20
    time_limit: Annotated[
        float | None, Option("Seconds of search for each timetable.", first=True, shown="no limit")
    ] = None

    def __post_init__(self) -> None:
        if self.scenario.detail is not None:
            raise InputError(
                f"detail is '{self.scenario.detail}': where workers pre-empt, draft or leave, how long a request runs "
                "depends on its worker, and there is no timetable; leave detail out"
            )
        if not self.policies:
            raise InputError("no policies given; expected at least one")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")
        if self.effort < 1:
            raise InputError(f"effort is {self.effort}; expected 1 exchange for each step, or more")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"time_limit is {self.time_limit}; expected seconds above 0, or none")
        chosen = self.build()
        refuse_logs_of_other_requests(self.scenario.requests, chosen)
        object.__setattr__(self, "scenario", with_training(self.scenario, chosen))

    def build(self) -> list[Policy]:
        """Return the policies, built anew."""
        return [make_policy(spec) for spec in self.policies]

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"scenario": self.scenario.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "the configuration") -> HindsightConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a study of hindsight", source=source, parts={"scenario": Scenario.from_dict})
