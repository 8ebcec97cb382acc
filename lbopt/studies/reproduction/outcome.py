"""What the reproductions found: rows in the order of the items."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbopt.display import Displayed
from lbopt.studies.reproduction.config import ReproductionConfig
from lbopt.studies.reproduction.question import Row


@dataclass(slots=True, repr=False)
class ReproductionOutcome(Displayed):
    """All rows whose runs have ended."""

    config: ReproductionConfig
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<ReproductionOutcome {len(self.rows)} published figures>"

    def of(self, item: str) -> list[Row]:
        """Return the rows of one item."""
        return [row for row in self.rows if row.question.item == item]
