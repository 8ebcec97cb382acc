"""max-min: largest first, each to the lightest worker with a free slot (BF-IO, appendix A.1.1)."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies.paced_max_min import PacedMaxMin
from lbopt.policies.policy import CompiledPolicy

SCOPES = ("oldest", "pool")


def max_min(scope: str = "oldest", pace: bool = False) -> CompiledPolicy | PacedMaxMin:
    """Return the rule over the oldest U requests (starves no request) or over the whole pool (admits the U largest).

    With `pace` loads count by the speed of their workers, where it is known; that rule decides in Python.
    """
    if scope not in SCOPES:
        raise InputError(f"policy 'max-min' cannot use scope '{scope}'; expected {' or '.join(SCOPES)}")
    if pace:
        return PacedMaxMin(whole_pool=scope == "pool")
    return CompiledPolicy(
        name="max-min" if scope == "oldest" else f"max-min:scope={scope}",
        admission="pooled",
        code=codes.MAX_MIN,
        parameters={"whole_pool": int(scope == "pool")},
    )
