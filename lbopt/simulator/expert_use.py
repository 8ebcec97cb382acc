"""What the compiled loop needs to know of experts: who uses which, and which worker a request would rather go to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.model import RequestExperts, Trace
from lbopt.policies.policy import CompiledPolicy, Policy

#: A chance of 1 is taken for this much less: its logarithm has to be finite, and an estimate of 1 is one of nearly 1.
_SURELY = 2.0**-24


def unused_logs(experts: RequestExperts | None) -> NDArray[np.float32]:
    """Return the log of the chance that a step of a profile does not use an expert, float32 (M, L * E), or (0, 0)."""
    if experts is None:
        return np.zeros((0, 0), dtype=np.float32)
    chance = np.minimum(experts.decode.reshape(len(experts.decode), -1).astype(np.float64), 1 - _SURELY)
    return np.log1p(-chance).astype(np.float32)


def preference_of(policy: Policy, trace: Trace, num_workers: int, training: Trace | None) -> NDArray[np.float64]:
    """Return what the guide of a policy says of every profile and worker, float64 (M, G); (0, 0) without a guide.

    Parameters
    ----------
    policy
        The rule.
    trace
        Requests that are run.
    num_workers
        G.
    training
        Requests that the guide learns from.
    """
    if not isinstance(policy, CompiledPolicy) or policy.guide is None:
        return np.zeros((0, 0))
    return np.ascontiguousarray(policy.guide.preferences(trace, num_workers, training), dtype=np.float64)
