"""BR-0, BalanceRoute without lookahead (arXiv 2605.06113, algorithm 2); what the paper leaves open is a field."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies.policy import LARGEST_OPTION, CompiledPolicy, check_age_bound

WINDOW_ORDERS = ("size", "arrival")
KEYS = ("lexicographic", "product")

_DEFAULTS: dict[str, int | str | None] = {
    "stage_switch": 7,
    "window": 4,
    "window_order": "size",
    "key": "lexicographic",
    "age_bound": None,
}


def br_0(
    stage_switch: int = 7,
    window: int = 4,
    window_order: str = "size",
    key: str = "lexicographic",
    age_bound: int | None = None,
) -> CompiledPolicy:
    """Return BR-0.

    Parameters
    ----------
    stage_switch
        S_greedy: stage 1 works while more than this many slots are free. The paper's value is not known; 7 is that
        of the authors' earlier simulator. 0 = stage 1 alone.
    window
        R_max: requests that stage 2 looks at, 1 to 16; 4 in the deployment.
    window_order
        "size": the largest waiting requests; "arrival": the oldest. The paper sorts by prompt length.
    key
        Which worker stage 2 serves next: "lexicographic" (free slots, then margin) or their "product".
    age_bound
        Steps after which a waiting request is placed before all others, oldest first; None = never.
    """
    if stage_switch is None or not 0 <= stage_switch <= LARGEST_OPTION:
        raise InputError(f"policy 'br-0': stage_switch is {stage_switch}; expected 0 to {LARGEST_OPTION}")
    if window is None or not 1 <= window <= codes.LARGEST_WINDOW:
        raise InputError(f"policy 'br-0': window is {window}; expected 1 to {codes.LARGEST_WINDOW}")
    if window_order not in WINDOW_ORDERS:
        raise InputError(f"policy 'br-0': window_order is '{window_order}'; expected {' or '.join(WINDOW_ORDERS)}")
    if key not in KEYS:
        raise InputError(f"policy 'br-0': key is '{key}'; expected {' or '.join(KEYS)}")
    check_age_bound("br-0", age_bound)
    given = {
        "stage_switch": stage_switch,
        "window": window,
        "window_order": window_order,
        "key": key,
        "age_bound": age_bound,
    }
    changed = ",".join(f"{name}={value}" for name, value in given.items() if value != _DEFAULTS[name])
    return CompiledPolicy(
        name="br-0" + (f":{changed}" if changed else ""),
        admission="pooled",
        code=codes.BR_0,
        parameters={
            "stage_switch": stage_switch,
            "window_size": window,
            "window_by_arrival": int(window_order == "arrival"),
            "key_product": int(key == "product"),
            "age_bound": -1 if age_bound is None else age_bound,
        },
    )
