"""The prefill side: gated passes of instances with several units, and policies that hold requests back or do not."""

from lbopt.prefill.allocations import ALLOCATIONS, Allocation, make_allocation, pbaa
from lbopt.prefill.pace import AdaptiveInterval
from lbopt.prefill.policies import PREFILL_POLICIES, DispatchPolicy, make_prefill_policy
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.run import PrefillMetrics, PrefillRun
from lbopt.prefill.setting import PassTime, PrefillSetting
from lbopt.prefill.simulate import Simulation, simulate_prefill

__all__ = [
    "ALLOCATIONS",
    "PREFILL_POLICIES",
    "AdaptiveInterval",
    "Allocation",
    "DispatchPolicy",
    "PassTime",
    "PrefillMetrics",
    "PrefillRequests",
    "PrefillRun",
    "PrefillSetting",
    "Simulation",
    "make_allocation",
    "make_prefill_policy",
    "pbaa",
    "simulate_prefill",
]


def __dir__() -> list[str]:
    return sorted(__all__)
