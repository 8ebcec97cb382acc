"""bf-io: the BF-IO program at H = 0, solved exactly at every decision (arXiv 2601.17855, algorithm 1).

Exact answers cost milliseconds to seconds with general solvers, so this is for small fleets. What each decision was
worth, proved, claimed by a solver or left open at the time limit, is counted in `tally`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lbopt.model import StepProblem
from lbopt.policies.observation import Observation
from lbopt.policies.policy import Admission, check_age_bound
from lbopt.solvers import check_solver, solve


@dataclass(frozen=True, slots=True)
class BfIo:
    """The exact rule.

    Parameters
    ----------
    solver, time_limit
        Handed to `lbopt.solve`; after `time_limit` seconds the best known placement is used.
    age_bound
        Steps after which a waiting request must be admitted, oldest first; None = never.
    """

    solver: str = "exact"
    time_limit: float | None = 2.0
    age_bound: int | None = None
    tally: Counter[str] = field(default_factory=Counter, compare=False)

    def __post_init__(self) -> None:
        check_age_bound("bf-io", self.age_bound)
        check_solver(self.solver, self.time_limit)

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        defaults = BfIo()
        changed = [
            f"{option}={getattr(self, option)}"
            for option in ("solver", "time_limit", "age_bound")
            if getattr(self, option) != getattr(defaults, option)
        ]
        return ":".join(["bf-io", *([",".join(changed)] if changed else [])])

    @property
    def admission(self) -> Admission:
        """Pooled: which requests are admitted is half of the decision."""
        return "pooled"

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Return an optimal placement, or the best known one at the time limit."""
        problem = StepProblem.now(
            observation.loads,
            observation.free_slots,
            observation.sizes,
            must_admit=overdue(observation, self.age_bound),
        )
        result = solve(problem, solver=self.solver, time_limit=self.time_limit)
        assert result.assignment is not None, "solve starts from a greedy placement"
        if result.stop_reason == "interrupted":  # the solver has caught Ctrl-C; the run has to hear of it
            raise KeyboardInterrupt
        self.tally["proved" if result.proved else "claimed" if result.status == "optimal" else "open"] += 1
        return result.assignment


def overdue(observation: Observation, age_bound: int | None) -> NDArray[np.bool_]:
    """Return bool (n,): the requests that have waited `age_bound` steps or more, oldest first, at most U of them."""
    flags = np.zeros(observation.sizes.size, dtype=np.bool_)
    if age_bound is not None:
        late = np.flatnonzero(observation.waited >= age_bound)
        flags[late[: observation.num_admissible]] = True  # order of revelation is order of age
    return flags
