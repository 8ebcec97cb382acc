"""How many bytes of bodies and answers the router may hold at once, over all clients.

A client decides how much it sends and when it reads, so without a bound in all the memory is the clients'. Bytes are
counted as they come, whatever a header announces, and are free again when the request has ended or needs them no more.
"""

from __future__ import annotations

from types import TracebackType

#: A request that holds no more than this may use all of the budget; larger ones leave an eighth of it to those.
_SMALL = 2**16


class OverBudgetError(Exception):
    """The bytes have no room."""


class Budget:
    """Bytes of the whole process.

    Parameters
    ----------
    most
        Bytes at most.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0

    def share(self) -> Share:
        """Return the share of one request, which it gives back when it is left: `with budget.share() as share`."""
        return Share(self)


class Share:
    """What one request holds."""

    __slots__ = ("_budget", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0

    def take(self, size: int) -> None:
        """Hold some bytes more.

        Raises
        ------
        OverBudgetError
            Where there is no room for them.
        """
        budget = self._budget
        room = budget.most if self.held + size <= _SMALL else budget.most - budget.most // 8
        if budget.held + size > room:
            raise OverBudgetError
        budget.held += size
        self.held += size

    def give(self, size: int) -> None:
        """Hold some bytes less."""
        self._budget.held -= size
        self.held -= size

    def add(self, other: Share) -> None:
        """Hold what another share held."""
        self.held += other.held
        other.held = 0

    def __enter__(self) -> Share:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give(self.held)
