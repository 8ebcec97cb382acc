"""What a staggering study found: rows by item and seed, and what is printed beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbopt.studies.staggered.claims import Judged, claims
from lbopt.studies.staggered.config import StaggeredConfig
from lbopt.studies.staggered.rows import Averaged, Rows, averaged


@dataclass(slots=True)
class StaggeredOutcome:
    """Everything that has ended.

    Parameters
    ----------
    rows
        By item and seed.
    """

    config: StaggeredConfig
    rows: dict[str, dict[int, Rows]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def averaged(self, item: str) -> list[Averaged]:
        """Return the rows of an item over seeds."""
        return averaged(self.rows.get(item, {}).values())

    def judged(self) -> list[Judged]:
        """Return every printed statement that the runs can be held against."""
        found = []
        for claim in claims():
            told = [claim.figure(rows) for rows in self.rows.get(claim.item, {}).values()]
            values = tuple(value for value in told if value is not None)
            if values:
                found.append(Judged(claim, values))
        return found
