"""The race as one of the studies: gathers the instances, then lets solvers race on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lbopt.studies.progress import Progress, Silent
from lbopt.studies.race.config import RaceConfig
from lbopt.studies.race.instances import gather_instances
from lbopt.studies.race.outcome import RaceOutcome
from lbopt.studies.race.race import run_race
from lbopt.studies.study import Study


def race(config: RaceConfig, progress: Progress | None = None, *, store: Callable[[], Path]) -> RaceOutcome:
    """Run the race; `store` makes the file of results, and is called once the instances have been read."""
    shown = progress or Silent()
    instances = gather_instances(config, shown)
    return run_race(config, instances, store(), shown)


STUDY = Study(
    name="race",
    format="lbopt-race",
    config=RaceConfig,
    run=race,
    tables=("results",),
    figures=("profile", "profile_by_group", "ratios"),
    store="race.sqlite",
    facts=lambda outcome: {"finished": not outcome.interrupted},
    account=(),
    holds=lambda outcome: not any(one.grave for one in outcome.contradictions),
    timings=("seconds", "building_seconds"),
    timed_figures=True,
)
