"""Live with a policy over time: the loop, its state, the recorder, and metrics over a stated window."""

from lbopt.simulator.ceiling import Ceilings, ceilings
from lbopt.simulator.decoders import DecoderRun, simulate_decoders
from lbopt.simulator.detail import Detail, make_detail
from lbopt.simulator.metrics import Metrics, Window
from lbopt.simulator.recorder import Telemetry, make_telemetry
from lbopt.simulator.run import Run
from lbopt.simulator.sampling import NEW, FrozenRequests, FrozenView, SampledState, sample_states
from lbopt.simulator.setting import EVENT_ORDERS, ClosedLoop, EventOrder, SimulationSetting, Slo, TraceTimes, make_slo
from lbopt.simulator.simulate import simulate

__all__ = [
    "EVENT_ORDERS",
    "NEW",
    "Ceilings",
    "ClosedLoop",
    "DecoderRun",
    "Detail",
    "EventOrder",
    "FrozenRequests",
    "FrozenView",
    "Metrics",
    "Run",
    "SampledState",
    "SimulationSetting",
    "Slo",
    "Telemetry",
    "TraceTimes",
    "Window",
    "ceilings",
    "make_detail",
    "make_slo",
    "make_telemetry",
    "sample_states",
    "simulate",
    "simulate_decoders",
]


def __dir__() -> list[str]:
    return sorted(__all__)
