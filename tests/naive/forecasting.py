"""What samples say of one request, and one request's forecast between refreshes (balance_route.md 4.2 (a), 4.3)."""

from collections.abc import Callable, Sequence
from fractions import Fraction

Answer = tuple[Fraction | float, Fraction | float]


def ends_within(outputs: Sequence[int], age: int, horizon: int) -> tuple[Fraction, Fraction]:
    """p and mu by counting the samples beyond the age; p = 0 and mu = H where none ends inside the window."""
    beyond = [output for output in outputs if output > age]
    inside = [output - age for output in beyond if output <= age + horizon]
    if not inside:
        return Fraction(0), Fraction(horizon)
    return Fraction(len(inside), len(beyond)), Fraction(sum(inside), len(inside))


class RequestForecast:
    """The forecast of one request, which is told how many tokens it has made and refreshes itself when it is time.

    `ask(age)` gives p and mu. A refresh is due at the first sight, when `period` tokens were made since the last one,
    and when less than the floor is left although the request runs. In between a token takes one step off, except from
    a forecast that said "outlives the window" where such a one is held.
    """

    def __init__(
        self,
        ask: Callable[[int], Answer],
        horizon: int,
        period: int,
        gate: float,
        floor: float,
        hold_anchor: bool,
    ) -> None:
        self.ask = ask
        self.horizon = horizon
        self.period = period
        self.gate = gate
        self.floor = floor
        self.hold_anchor = hold_anchor
        self.age: int | None = None
        self.refreshed_at = 0
        self.remaining = 0.0
        self.anchored = False
        self.refreshes = 0

    def see(self, age: int) -> float:
        """Return the forecast at this age; ages must not fall."""
        if self.age is None:
            self._refresh(age)
        else:
            for _ in range(age - self.age):
                if not (self.anchored and self.hold_anchor):
                    self.remaining -= 1.0
            if age - self.refreshed_at >= self.period or self.remaining < self.floor:
                self._refresh(age)
        self.age = age
        return self.remaining

    def _refresh(self, age: int) -> None:
        p, mu = self.ask(age)
        value = float(self.horizon)
        if p >= self.gate:
            value = min(max(float((1 - p) * self.horizon + p * mu), 0.0), float(self.horizon))
        self.anchored = p < self.gate or p == 0
        self.remaining = max(value, self.floor)
        self.refreshed_at = age
        self.refreshes += 1
