"""Runs tasks once: each result goes into a store as it ends, and a rerun computes only what is missing.

A `Task` is a function path, parameters and a seed; its key is their hash. A `Store` is one SQLite file. `run_tasks`
brings the two together on an engine. Nothing here knows what the tasks are about.
"""

from lbopt.runner.engines import ENGINES, Dask, Engine, Isolated, Joblib, Serial, make_engine
from lbopt.runner.export import export_store
from lbopt.runner.row import DamagedRow, DamagedRowError, EngineError, Failure, Outcome, Row, StoreError
from lbopt.runner.run import Collection, Progress, Summary, collect, run_tasks
from lbopt.runner.store import Store
from lbopt.runner.task import Task, canonical_json

__all__ = [
    "ENGINES",
    "Collection",
    "DamagedRow",
    "DamagedRowError",
    "Dask",
    "Engine",
    "EngineError",
    "Failure",
    "Isolated",
    "Joblib",
    "Outcome",
    "Progress",
    "Row",
    "Serial",
    "Store",
    "StoreError",
    "Summary",
    "Task",
    "canonical_json",
    "collect",
    "export_store",
    "make_engine",
    "run_tasks",
]


def __dir__() -> list[str]:
    return sorted(__all__)
