"""Which forecast a policy asks for: predictor, window, and how often it is made anew."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError

#: Windows longer than any output make no difference.
LONGEST_HORIZON = 1_000_000


@dataclass(frozen=True, slots=True)
class Foresight:
    """What a policy wants to know of the future; BalanceRoute, section 4.3.

    Parameters
    ----------
    horizon
        H, steps, zero or more.
    predictor
        A text for `make_predictor`.
    refresh
        Tokens between two refreshes of a request's forecast (the paper's Delta T, not known); None = the predictor's.
    gate
        Chance to end within the window below which a request counts as outliving it (not known; 0.5 is "the natural
        decision boundary").
    floor
        Least remaining steps of a running request.
    hold_anchor
        Whether a forecast of H stays H between refreshes; else it falls by a step a token, as the paper's text has it.
    """

    horizon: int
    predictor: str = "survival"
    refresh: int | None = None
    gate: float = 0.5
    floor: float = 1.0
    hold_anchor: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.horizon <= LONGEST_HORIZON:
            raise InputError(f"horizon is {self.horizon}; expected 0 to {LONGEST_HORIZON} steps")
        if self.refresh is not None and not 1 <= self.refresh <= 2**31:
            raise InputError(f"refresh is {self.refresh}; expected at least 1 token between two refreshes")
        if not 0 <= self.gate <= 1:
            raise InputError(f"gate is {self.gate}; expected a chance, 0 to 1")
        if not 0 <= self.floor <= LONGEST_HORIZON:
            raise InputError(f"floor is {self.floor}; expected 0 to {LONGEST_HORIZON} steps")
