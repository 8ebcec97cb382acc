"""Routing rules. A policy sees a read-only `Observation` and never the truth; `make_policy` builds one by name."""

from lbopt.policies.observation import Observation
from lbopt.policies.policy import Admission, CompiledPolicy, DecidingPolicy, Policy
from lbopt.policies.table import POLICIES, make_policy

__all__ = ["POLICIES", "Admission", "CompiledPolicy", "DecidingPolicy", "Observation", "Policy", "make_policy"]
