"""What a live router knows of its fleet: pure and synchronous, times are arguments, nothing is sent or read."""

from lbopt.serving.state.fleet import FleetState
from lbopt.serving.state.group import BarrierGroup, Dispatch, Sight
from lbopt.serving.state.pool import Pool
from lbopt.serving.state.prefiller import Engine, Prefiller
from lbopt.serving.state.request import Ending, RequestTracker, Stage
from lbopt.serving.state.worker import Health, WorkerMirror

__all__ = [
    "BarrierGroup",
    "Dispatch",
    "Ending",
    "Engine",
    "FleetState",
    "Health",
    "Pool",
    "Prefiller",
    "RequestTracker",
    "Sight",
    "Stage",
    "WorkerMirror",
]
