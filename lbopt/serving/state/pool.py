"""The pool of one model: prefilled requests in order of arrival, and the barrier groups that serve them.

A request that comes back, because its worker went before the first chunk, takes its old place; one that an engine
pre-empted joins the end as a new entry. Source: BalanceRoute (arXiv 2605.06113), section 5 (`PromptPool`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lbopt.serving.state.request import RequestTracker, Stage

if TYPE_CHECKING:
    from lbopt.serving.state.group import BarrierGroup


class Pool:
    """Requests that wait for a worker.

    Parameters
    ----------
    model
        The name under which clients ask for the model.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.groups: list[BarrierGroup] = []
        self._waiting: dict[int, RequestTracker] = {}
        self._next_ticket = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[RequestTracker]:
        return iter(self._waiting.values())

    def join(self, tracker: RequestTracker, at: float) -> None:
        """Put a request at the end."""
        tracker.ticket = self._next_ticket
        self._next_ticket += 1
        tracker.pooled_at = at
        tracker.revealed = [group.step for group in self.groups]
        tracker.stage = Stage.WAITING
        self._waiting[tracker.ticket] = tracker

    def rejoin(self, tracker: RequestTracker) -> None:
        """Put a request back where it was."""
        tracker.stage = Stage.WAITING
        tracker.revealed.extend(group.step for group in self.groups[len(tracker.revealed) :])
        behind = any(ticket > tracker.ticket for ticket in self._waiting)
        self._waiting[tracker.ticket] = tracker
        if behind:
            self._waiting = dict(sorted(self._waiting.items()))

    def leave(self, tracker: RequestTracker) -> None:
        """Take a request out."""
        del self._waiting[tracker.ticket]

    def reveal(self, group: BarrierGroup, after: int) -> int:
        """Let requests count as revealed at a group's present step.

        Parameters
        ----------
        group
            The group.
        after
            Ticket of the last request that was revealed to it before.

        Returns
        -------
        int
            The last ticket that has been given.
        """
        for ticket in reversed(self._waiting):
            if ticket <= after:
                break
            self._waiting[ticket].revealed[group.place] = group.step
        return self._next_ticket - 1

    def overdue(self, at: float, seconds: float) -> list[RequestTracker]:
        """Return the requests that have waited so many seconds or more, oldest first."""
        found = []
        for tracker in self._waiting.values():
            if at - tracker.pooled_at < seconds:
                break
            found.append(tracker)
        return found
