"""The record of one run: what a solver reached on an instance, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lbopt.runner import Row

#: How a run ended. "proved": value and bound meet, and the bound is lbopt's own and checked. "searched": it is the word
#: of lbopt's search, and the time was not enough to check it. "claimed": the solver says so and nobody has checked.
#: "open": the solver did not come to an end within the limit, or to one where value and bound are apart. "refuted": a
#: placement is known that its bound excludes. "failed": no answer. "missing": not run yet.
STATUSES = ("proved", "searched", "claimed", "open", "refuted", "failed", "missing")

#: Those that count as solved.
CLOSED = ("proved", "searched", "claimed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceRecord:
    """One run.

    Parameters
    ----------
    instance, group, digest
        Name and group of the instance, digest of its problem.
    solver, answered_by
        Who was asked, and who answered: "exact" and "auto" may pass a problem on.
    status
        One of `STATUSES`.
    value, bound
        Imbalance of the placement, checked and re-scored; the bound, the solver's word included (tokens).
    barrier
        G * sum_h M_h of the placement, tokens.
    claim
        The bound exactly as the solver claimed it, rounded up; None where it claimed none.
    seconds
        Wall time of the solver proper; None where it did not run to an end.
    building_seconds
        Wall time of writing the model down, which is not in `seconds`.
    stop, native_status
        Why it ended, in lbopt's word and in the solver's.
    trusted
        Whether the problem lies in the range in which the solver's claims were found to hold.
    version
        Of the solver's code.
    failure
        Why there is no answer; empty where there is one.
    """

    instance: str
    group: str
    digest: str
    solver: str
    status: str
    answered_by: str = ""
    value: int | None = None
    bound: int | None = None
    barrier: int | None = None
    claim: int | None = None
    seconds: float | None = None
    building_seconds: float | None = None
    stop: str = ""
    native_status: str = ""
    trusted: bool | None = None
    version: str = ""
    failure: str = ""

    @property
    def closed(self) -> bool:
        """Whether it is proved, or claimed and not refuted."""
        return self.status in CLOSED

    @property
    def gap(self) -> int | None:
        """Value minus bound, tokens; None where there is none."""
        return None if self.value is None or self.bound is None else self.value - self.bound

    @property
    def gap_share(self) -> float | None:
        """The gap as a share of G * sum_h M_h."""
        if self.gap is None or self.barrier is None:
            return None
        return self.gap / self.barrier if self.barrier else 0.0

    @classmethod
    def of_row(cls, row: Row | None, *, instance: str, group: str, digest: str, solver: str) -> RaceRecord:
        """Return the record of a row of the store; None stands for a run that was not made.

        Parameters
        ----------
        row
            Row of the store.
        instance, group
            Name of the instance and of its group.
        digest
            Digest of the problem.
        solver
            Name of the solver.
        """
        who: dict[str, Any] = {"instance": instance, "group": group, "digest": digest, "solver": solver}
        if row is None:
            return cls(**who, status="missing")
        version = str(row.task.parameters["version"])
        if row.failure is not None:
            why = f"{row.failure.exception} {row.failure.message}".strip()
            return cls(**who, status="failed", stop=row.failure.kind, version=version, failure=why)
        return cls(**who, version=version, **row.answer)
