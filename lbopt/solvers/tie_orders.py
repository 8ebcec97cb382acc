"""Names of the tie orders of lbopt's own search; what they mean is in `lbopt.solvers.exact.tie_orders`.

They are checked where Numba is not loaded yet, hence this file.
"""

from __future__ import annotations

from lbopt.exceptions import InputError

TIE_ORDERS = ("oldest", "newest", "random")


def check_tie_order(tie: str, who: str) -> None:
    """Refuse a tie order that is none."""
    if tie not in TIE_ORDERS:
        raise InputError(f"{who}: tie order is '{tie}'; expected {', '.join(TIE_ORDERS[:-1])} or {TIE_ORDERS[-1]}")
