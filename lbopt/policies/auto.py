"""auto: the rule that lbopt recommends where a router keeps a pool; see the manual, *One rule*."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies.policy import CompiledPolicy, check_age_bound

_DEFAULT_WEIGHT = 0.3
_LARGEST_WEIGHT = 1000.0


def auto(age_weight: float = _DEFAULT_WEIGHT, age_bound: int | None = None) -> CompiledPolicy:
    """Return the rule.

    Parameters
    ----------
    age_weight
        What waiting counts, from 0 to 1,000, rounded to 0.001: a request that has waited as long as the mean of all is
        preferred to a new one that fits better by at most this share of the mean size. Larger is closer to first come,
        first served. The default was found on two traces and frozen.
    age_bound
        Steps after which a waiting request is placed before all others, oldest first; None = never.
    """
    if not 0 <= age_weight <= _LARGEST_WEIGHT:
        raise InputError(f"policy 'auto': age_weight is {age_weight:g}; expected 0 to {_LARGEST_WEIGHT:g}")
    check_age_bound("auto", age_bound)
    thousandths = round(1000 * age_weight)
    changed = []
    if thousandths != round(1000 * _DEFAULT_WEIGHT):
        changed.append(f"age_weight={thousandths / 1000:g}")
    if age_bound is not None:
        changed.append(f"age_bound={age_bound}")
    return CompiledPolicy(
        name="auto" + (f":{','.join(changed)}" if changed else ""),
        admission="pooled",
        code=codes.AUTO,
        parameters={"age_thousandths": thousandths, "age_bound": -1 if age_bound is None else age_bound},
    )
