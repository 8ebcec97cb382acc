"""The pool-bypass form of BR-0 (arXiv 2605.06113): bound at once, by virtual load, below a cap on requests."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies.policy import LARGEST_OPTION, CompiledPolicy

TIES = ("load", "index")
_DEFAULT_OVERBOOKING = 2


def br_0_bypass(overbooking: int | None = _DEFAULT_OVERBOOKING, ties: str = "load") -> CompiledPolicy:
    """Return the rule.

    Parameters
    ----------
    overbooking
        Requests that may be bound to a worker beyond its B slots; where every worker holds B + overbooking, running
        and queued, the next request is held at the router until one ends. The paper says "a small fixed margin"
        without its value, and nothing of what happens then. None = any number.
    ties
        Among workers of equal F: "load", the one of smallest virtual load; "index", the first, as in a plain argmax.
        With "index" the lowest-numbered workers collect the requests that fit their margins.
    """
    if overbooking is not None and not 0 <= overbooking <= LARGEST_OPTION:
        raise InputError(
            f"policy 'br-0-bypass': overbooking is {overbooking}; expected 0 to {LARGEST_OPTION} requests, or none"
        )
    if ties not in TIES:
        raise InputError(f"policy 'br-0-bypass': ties is '{ties}'; expected {' or '.join(TIES)}")
    changed = []
    if overbooking != _DEFAULT_OVERBOOKING:
        changed.append(f"overbooking={'none' if overbooking is None else overbooking}")
    if ties != TIES[0]:
        changed.append(f"ties={ties}")
    return CompiledPolicy(
        name="br-0-bypass" + (f":{','.join(changed)}" if changed else ""),
        admission="immediate",
        code=codes.BR_0_BYPASS,
        parameters={
            "overbooking": -1 if overbooking is None else overbooking,
            "ties_by_number": int(ties == "index"),
        },
    )
