"""Two solvers that cannot both be right: a bound of one above a placement of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tests.benchmarks.race.instances import RaceInstance
from tests.benchmarks.race.record import RaceRecord

LIBRARY = "the library"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A placement is checked and re-scored in exact integers, so it is the bound that is wrong.

    Parameters
    ----------
    instance
        Where.
    solver, bound
        Whose bound, tokens.
    proved
        Whether lbopt itself vouches for that bound; else it is the solver's word.
    trusted
        Whether the instance lies in the range in which the solver's word was found to hold.
    refuted_by, value
        Whose placement, and its imbalance in tokens.
    """

    instance: str
    solver: str
    bound: int
    proved: bool
    trusted: bool
    refuted_by: str
    value: int

    @property
    def grave(self) -> bool:
        """Whether somebody relies on that bound; else it is a claim that lbopt would not have used anyway."""
        return self.proved or self.trusted

    def __str__(self) -> str:
        whose = "proved" if self.proved else "claimed" if self.trusted else "claimed, outside its safe range,"
        return (
            f"{self.instance}: {self.solver} {whose} that nothing is below {self.bound:,} tokens, "
            f"but {self.refuted_by} has a placement of {self.value:,}"
        )


def find_contradictions(
    records: Sequence[RaceRecord], instances: Iterable[RaceInstance]
) -> tuple[list[RaceRecord], list[Contradiction]]:
    """Return the records, those that are wrong marked "refuted" and without their bound, and what refutes them."""
    best: dict[str, tuple[int, str]] = {}
    for record in records:
        if record.value is not None:
            best[record.digest] = min(
                best.get(record.digest, (record.value, record.solver)), (record.value, record.solver)
            )
    found = []
    for one in instances:
        digest = one.problem.digest
        if one.best is not None and (digest not in best or one.best < best[digest][0]):
            best[digest] = (one.best, LIBRARY)
        if one.bound is not None and digest in best and one.bound > best[digest][0]:
            value, who = best[digest]
            found.append(_contradiction(one.name, LIBRARY, one.bound, value, who, proved=True, trusted=True))
    marked = []
    for record in records:
        bound = max((b for b in (record.claim, record.bound) if b is not None), default=None)
        value, who = best.get(record.digest, (0, ""))
        if bound is None or bound <= value:
            marked.append(record)
            continue
        proved = record.status == "proved"
        found.append(
            _contradiction(
                record.instance, record.solver, bound, value, who, proved=proved, trusted=record.trusted is not False
            )
        )
        marked.append(replace(record, status="refuted", bound=None))
    return marked, found


def _contradiction(
    instance: str, solver: str, bound: int, value: int, who: str, *, proved: bool, trusted: bool
) -> Contradiction:
    return Contradiction(
        instance=instance, solver=solver, bound=bound, proved=proved, trusted=trusted, refuted_by=who, value=value
    )
