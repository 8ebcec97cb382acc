"""What a race is asked to do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.solvers import check_solver

DEFAULT_SOLVERS = ("exact", "highs", "cp-sat")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceConfig:
    """Configuration of a race.

    Parameters
    ----------
    solvers
        "exact", "auto" or names of `BACKENDS`, in the order in which tables show them.
    time_limit
        Seconds for the solver proper; building its model is not counted.
    seed
        Passed to every solver.
    reference
        The solver that times are divided by; None for the first.
    instances
        Names or kinds of the packaged library, "all", or problem files (.json, or .jsonl with a problem a line).
    states, count, shift, data
        Classes of steady states, how many states of each, what is added to their seeds, and the folder of the traces.
    jobs
        Runs at a time. One, unless timings may be of neighbours.
    retry_failures
        Whether runs whose failure is stored are made again.
    """

    solvers: tuple[str, ...] = DEFAULT_SOLVERS
    time_limit: float = 20.0
    seed: int = 0
    reference: str | None = None
    instances: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    count: int = 20
    shift: int = 0
    data: str | None = None
    jobs: int = 1
    retry_failures: bool = False

    def __post_init__(self) -> None:
        if not self.solvers:
            raise InputError("no solver takes part; name some, such as exact,highs,cp-sat")
        for solver in self.solvers:
            check_solver(solver, self.time_limit)
        if (doubled := repeated(self.solvers)) is not None:
            raise InputError(f"solver '{doubled}' is named twice")
        if not self.time_limit < float("inf"):
            raise InputError(f"time_limit is {self.time_limit}; a race needs a finite number of seconds")
        if self.reference is not None and self.reference not in self.solvers:
            raise InputError(
                f"reference '{self.reference}' takes no part in the race; expected one of {', '.join(self.solvers)}"
            )
        for name, least in (("count", 1), ("jobs", 1), ("seed", 0), ("shift", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least {least}")

    @property
    def base(self) -> str:
        """The solver that times are divided by."""
        return self.reference or self.solvers[0]
