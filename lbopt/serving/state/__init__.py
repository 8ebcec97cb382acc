"""What a live router knows of its fleet: pure and synchronous, times are arguments, nothing is sent or read."""

from lbopt.serving.state.engines import Ending, Engine, Health, Prefiller, RequestTracker, Stage, WorkerMirror
from lbopt.serving.state.fleet import FleetState
from lbopt.serving.state.group import BarrierGroup, Dispatch, Pool, Sight

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
