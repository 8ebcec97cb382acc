"""What the theorems assume, checked: a parameter outside is refused by the name of the claim and of the assumption."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.theory.laws.slot_law import LONGEST

#: Workers, and slots of each: beyond, numbers leave the range of floats or of memory in ways that say less.
MOST = 10**9


def require(claim: str, holds: bool, assumes: str, found: str) -> None:
    """Refuse what the claim does not speak of: ``theorem-2 assumes 0 < p < 1; p is 1.2``.

    Parameters
    ----------
    holds
        Whether the hypothesis holds.
    """
    if not holds:
        raise InputError(f"{claim} assumes {assumes}; {found}")


def require_fleet(claim: str, G: int, B: int) -> None:
    """Refuse a fleet that no theorem speaks of."""
    require(claim, G >= 2, "at least G = 2 workers", f"G is {G}")
    require(claim, G <= MOST, f"at most {MOST:,} workers", f"G is {G}")
    require_slots(claim, B)


def require_slots(claim: str, B: int) -> None:
    """Refuse slots that no theorem speaks of."""
    require(claim, B >= 1, "at least B = 1 slot a worker", f"B is {B}")
    require(claim, B <= MOST, f"at most {MOST:,} slots a worker", f"B is {B}")


def require_geometric(claim: str, p: float) -> None:
    """Refuse an end probability outside (0, 1)."""
    require(claim, 0 < p < 1, "outputs of law Geo(p) with 0 < p < 1", f"p is {p}")


def require_prompts(claim: str, s_max: int) -> None:
    """Refuse prompts that do not vary: every statement divides by their spread."""
    require(claim, s_max >= 2, "prompts that vary, so s_max of at least 2", f"s_max is {s_max}")
    require(claim, s_max <= LONGEST, f"prompts of at most {LONGEST:,} tokens", f"s_max is {s_max}")
