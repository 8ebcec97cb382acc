"""How a study says that it goes on, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Somebody who shows progress: a bar in a terminal, a log, or nobody."""

    def begin(self, what: str, total: int) -> None:
        """Say that a stage of `total` units begins."""

    def advance(self, units: int = 1) -> None:
        """Say that so many units of the present stage are done."""


class Silent:
    """Nobody listens."""

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def advance(self, units: int = 1) -> None:
        """Do nothing."""
