"""The race: several solvers on the same step problems, timed alike, each in a process of its own.

`gather_instances` says on what, `measure` is one run, `run_race` makes all runs through a store that can be resumed,
and `RaceOutcome` is what is known afterwards: who was how quick, and who contradicted whom.
"""

from lbopt.studies.race.config import RaceConfig
from lbopt.studies.race.contradictions import Contradiction
from lbopt.studies.race.instances import RaceInstance, gather_instances
from lbopt.studies.race.outcome import RaceOutcome
from lbopt.studies.race.race import run_race
from lbopt.studies.race.record import RaceRecord

__all__ = [
    "Contradiction",
    "RaceConfig",
    "RaceInstance",
    "RaceOutcome",
    "RaceRecord",
    "gather_instances",
    "run_race",
]
