"""What a policy that goes by experts takes from a trace: which experts requests use, and a capture to learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import RequestExperts, Trace

if TYPE_CHECKING:  # compiled code is imported when a rule is used, not when it is named
    from lbopt.locality import ExpertActivity

#: Prompts that a table is fitted to; as many as the source of ELDR took.
CALIBRATION = 1000


def experts_of(policy: str, trace: Trace) -> RequestExperts:
    """Return which experts the requests use; refuse a trace that does not say."""
    if trace.experts is None:
        raise InputError(
            f"policy '{policy}' goes by the experts that requests use, and trace '{trace.name}' does not say which; "
            "expected a family such as moe-task, or a capture"
        )
    return trace.experts


def measured(experts: RequestExperts, transform: str) -> NDArray[np.generic]:
    """Return what a transform is made of, (M, L, E)."""
    from lbopt.locality.signature import TRANSFORMS

    if TRANSFORMS[transform] == "counts":
        return experts.chosen
    if transform == "gate-prob" and experts.gate_prob is not None:
        return experts.gate_prob
    raise InputError(f"transform '{transform}' needs scores of the gate, which these requests do not come with")


def calibration(experts: RequestExperts) -> ExpertActivity:
    """Return the first different prompts of requests as what a capture of them would hold."""
    from lbopt.locality import ExpertActivity

    rows = experts.profiles_of_first(CALIBRATION)
    return ExpertActivity(
        counts=experts.chosen[rows].astype(np.int64),
        gate_prob=None if experts.gate_prob is None else experts.gate_prob[rows].astype(np.float64),
        gate_logit=None,
        decode=experts.decode[rows].astype(np.float64),
        domain=experts.domain[rows],
    )
