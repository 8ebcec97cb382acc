"""How a study reports its progress, without knowing how that is shown."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Shows progress: a bar in a terminal, lines in a log, or nothing."""

    def begin(self, what: str, total: int) -> None:
        """Begin a stage of `total` units."""

    def advance(self, units: int = 1) -> None:
        """Count `units` more units of the present stage as done."""


class Silent:
    """Shows nothing."""

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def advance(self, units: int = 1) -> None:
        """Do nothing."""
