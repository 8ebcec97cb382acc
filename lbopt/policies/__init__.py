"""Routing rules. A policy sees a read-only `Observation` and never the truth; `make_policy` builds one by name."""

from lbopt.policies.observation import ActiveRequests, Memory, Observation
from lbopt.policies.policy import Admission, CompiledPolicy, DecidingPolicy, LookingAhead, Policy, foresight_of
from lbopt.policies.table import POLICIES, look_ahead, make_policy

__all__ = [
    "POLICIES",
    "ActiveRequests",
    "Admission",
    "CompiledPolicy",
    "DecidingPolicy",
    "LookingAhead",
    "Memory",
    "Observation",
    "Policy",
    "foresight_of",
    "look_ahead",
    "make_policy",
]


def __dir__() -> list[str]:
    return sorted(__all__)
