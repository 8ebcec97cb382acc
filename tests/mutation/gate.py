"""The table of a mutation run, and whether the tests reach the goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.mutation.operators import Mutant
from tests.mutation.records import KILLED, SURVIVED, TIMEOUT, Record
from tests.mutation.scope import Room, is_equivalent


@dataclass(frozen=True, slots=True)
class Row:
    """One room: mutants tried, what became of them, and those that survived without a reason."""

    room: Room
    tried: int
    killed: int
    timeouts: int
    equivalents: int
    survivors: tuple[Record, ...]

    @property
    def share(self) -> float:
        """Share killed of the mutants that are not equivalent; 1 where there are none."""
        real = self.tried - self.equivalents
        return 1.0 - len(self.survivors) / real if real else 1.0

    @property
    def passes(self) -> bool:
        """Whether the room reaches its goal."""
        return len(self.survivors) <= self.room.may_survive(self.tried - self.equivalents)


def row_of(room: Room, mutants: Iterable[Mutant], find: Callable[[Mutant], Record | None]) -> Row:
    """Count what became of the mutants of a room; those without a record are left out.

    Parameters
    ----------
    room
        The room.
    mutants
        Its mutants.
    find
        Returns the record of a mutant, or None.
    """
    found = [(mutant, record) for mutant in mutants if (record := find(mutant)) is not None]
    survived = [(mutant, record) for mutant, record in found if record.outcome == SURVIVED]
    return Row(
        room,
        len(found),
        sum(record.outcome == KILLED for _, record in found),
        sum(record.outcome == TIMEOUT for _, record in found),
        sum(is_equivalent(mutant) for mutant, _ in survived),
        tuple(record for mutant, record in survived if not is_equivalent(mutant)),
    )


def table(rows: list[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| room | mutants | killed by a test | by the time limit | equivalent | survivors | killed | goal |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        counts = [row.tried, row.killed, row.timeouts, row.equivalents, len(row.survivors)]
        cells = [f"`{row.room.folder}`", *map(str, counts), f"{row.share:.1%}", f"{row.room.goal:.0%}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
