"""Does routing by expert locality pay? ELDR's evaluation on a synthetic workload, beside what was printed."""

from lbopt.studies.locality.plan import BALANCERS, ITEMS, POOLS, RATE, ROUTERS, WIDTHS, WORKERS, PlannedRun, eldr_at
from lbopt.studies.locality.questions import questions
from lbopt.studies.locality.study import WORKLOADS, LocalityConfig, LocalityOutcome, run_locality
from lbopt.studies.printed import Judged, Question

__all__ = [
    "BALANCERS",
    "ITEMS",
    "POOLS",
    "RATE",
    "ROUTERS",
    "WIDTHS",
    "WORKERS",
    "WORKLOADS",
    "Judged",
    "LocalityConfig",
    "LocalityOutcome",
    "PlannedRun",
    "Question",
    "eldr_at",
    "questions",
    "run_locality",
]
