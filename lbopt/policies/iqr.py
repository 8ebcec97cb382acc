"""iqr, the decode rule of staggered batch scheduling (arXiv 2512.16134, algorithm 3)."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies.policy import CompiledPolicy, checked_admission

LARGEST_MULTIPLIER = 1000
#: The percentile conventions that are offered, under NumPy's names.
PERCENTILES = {
    "linear": codes.PERCENTILE_LINEAR,
    "lower": codes.PERCENTILE_LOWER,
    "higher": codes.PERCENTILE_HIGHER,
    "nearest": codes.PERCENTILE_NEAREST,
    "weibull": codes.PERCENTILE_WEIBULL,
}


def iqr(multiplier: float = 1.5, percentile: str = "linear", admission: str = "pooled") -> CompiledPolicy:
    """Return the rule.

    Parameters
    ----------
    multiplier
        k: a worker is masked whose load exceeds Q3 + k (Q3 - Q1). Rounded to 0.001, in which it is exact.
    percentile
        Which percentile Q1 and Q3 are, by NumPy's names; the paper does not say. "linear" is NumPy's default.
    admission
        "pooled": the oldest U of the pool, longest first, each to a worker with a free slot. "immediate": each request
        when it becomes known, to any worker; requests and tokens that are queued there count.
    """
    if multiplier is None or not 0 <= multiplier <= LARGEST_MULTIPLIER:
        raise InputError(f"policy 'iqr': multiplier is {multiplier}; expected 0 to {LARGEST_MULTIPLIER}")
    if percentile not in PERCENTILES:
        raise InputError(f"policy 'iqr': percentile is '{percentile}'; expected {' or '.join(PERCENTILES)}")
    binds = checked_admission("iqr", admission)
    thousandths = round(1000 * multiplier)
    changed = []
    if thousandths != 1500:
        changed.append(f"multiplier={thousandths / 1000:g}")
    if percentile != "linear":
        changed.append(f"percentile={percentile}")
    if binds != "pooled":
        changed.append(f"admission={binds}")
    return CompiledPolicy(
        name="iqr" + (f":{','.join(changed)}" if changed else ""),
        admission=binds,
        code=codes.IQR,
        parameters={"thousandths": thousandths, "percentile": PERCENTILES[percentile]},
    )
