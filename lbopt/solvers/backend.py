"""What a solver backend is, what each can do (as data), and the table of them.

A backend gets a `Task` and answers with a `RawAnswer`: values or an assignment, perhaps a bound it claims, and why it
stopped. It neither rounds, nor checks, nor decides what is optimal: `solve` does that once for all.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.model.formulation import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What is known of a backend.

    Parameters
    ----------
    name
        As the user writes it.
    package
        The package that has to be installed; None where lbopt needs nothing.
    extra
        The extra of lbopt that brings the package; None where it comes with lbopt.
    module
        Where its `minimise` lives; imported on first use.
    gives_bound
        Whether it also names a bound when it stops early.
    supports_hint
        Whether it starts from a given assignment.
    exhaustive
        Whether a finished run is a proof by lbopt itself rather than a claim.
    leximax
        Whether it breaks ties by itself rather than through the stages of `leximax`.
    largest_safe_total
        Largest `Program.total` up to which its claims are used; None means any.
    largest_total
        Largest `Program.total` with which it is started at all; None means any.
    """

    name: str
    module: str
    package: str | None = None
    extra: str | None = None
    gives_bound: bool = True
    supports_hint: bool = True
    exhaustive: bool = False
    leximax: bool = False
    largest_safe_total: int | None = None
    largest_total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run: a program, values to start from (all columns), a time limit in seconds and a seed.

    The limit counts from when the task was made, so that writing the program down for a solver is part of it.
    """

    program: Program
    hint: Sequence[int] | None = None
    time_limit: float | None = None
    seed: int = 0
    tie: str = "any"
    begun: float = field(default_factory=time.perf_counter, compare=False)

    def remaining(self) -> float | None:
        """Return the seconds that are left, zero or less where none are; None without a limit."""
        return None if self.time_limit is None else float(self.time_limit) - (time.perf_counter() - self.begun)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """What a backend says, unchecked.

    `values` are those of the program's columns, `bound` is a claimed lower bound on ``cost . x`` (no offset, program
    units), `stop` is "done", "time", "interrupted" or "failed", and `tie` is the tie-breaking that was completed.
    """

    values: Sequence[float] | None
    bound: float | None
    stop: str
    native_status: str
    tie: str = "any"


#: The answer of a backend that had no time left when the program was written down.
NOT_STARTED = RawAnswer(values=None, bound=None, stop="time", native_status="not started")


class Backend(Protocol):
    """A module with one function."""

    def minimise(self, task: Task) -> RawAnswer:
        """Minimise the program of `task`."""
        ...


# The safe totals were measured against exhaustion, on problems of 2-4 workers, 4-10 requests and 1-4 columns:
#   CP-SAT 9.15: 300 problems at each of the totals 5e7, 5e10, 5e13, 5e15: no wrong claim; held at 2**31, above which
#     other programs of its kind went wrong (or-tools#5293).
#   HiGHS 1.13.1: 1,000 problems at each of 2e4, 1e5, 5e5: no wrong claim; 150 at 1e7: two wrong bounds, of programs
#     with total 1.2e6 and 1.8e6 (the second "Optimal" at 367832, true 367829); at 5e9 wrong by factors. On sizes
#     that are alike (within 50 of 10,000) it is wrong from totals of 30,003 on, see
#     tests/solvers/exact/test_soundness.py. Held at 2**14.
#     From entries near 1e9 on, 5 of 57 runs never ended, deaf to the time limit and to cancelSolve; none of 1,200 with
#     entries to 1e6 did. Not started above 2**26.
#   CBC 2.10 through PuLP: with default options a wrong "Optimal" (13087, true 11447) on a program of five columns with
#     total 3e4. With its integer preprocessing off that one is right, and 5,510 problems with totals to 1.9e5 and 524
#     to 2.7e5 gave no wrong claim; from 1e6 on there are many. Held at 2**17.
BACKENDS: dict[str, Capabilities] = {
    "brute-force": Capabilities(
        name="brute-force", module="lbopt.solvers.brute_force", gives_bound=False, exhaustive=True, leximax=True
    ),
    "cp-sat": Capabilities(
        name="cp-sat",
        module="lbopt.solvers.cp_sat",
        package="ortools",
        extra="cp-sat",
        largest_safe_total=2**31,
        largest_total=2**53,
    ),
    "highs": Capabilities(
        name="highs",
        module="lbopt.solvers.highs",
        package="highspy",
        extra="highs",
        largest_safe_total=2**14,
        largest_total=2**26,
    ),
    "pulp": Capabilities(
        name="pulp",
        module="lbopt.solvers.pulp_cbc",
        package="pulp",
        extra="pulp",
        gives_bound=False,
        supports_hint=False,
        largest_safe_total=2**17,
        largest_total=10**12,
    ),
}

#: What `solve` answers without a backend of that name: its own search, and the choice of a backend.
OWN = ("exact", "auto")

#: The order in which "auto" looks for a solver where exhaustion is too long.
AUTO_ORDER = ("highs", "cp-sat", "pulp")


def is_available(name: str) -> bool:
    """Return whether the backend's package is installed; nothing is imported."""
    package = capabilities(name).package
    return package is None or find_spec(package) is not None


def capabilities(name: str) -> Capabilities:
    """Return what is known of backend `name`."""
    if not isinstance(name, str) or name not in BACKENDS:
        near = difflib.get_close_matches(str(name), [*OWN, *BACKENDS], n=2, cutoff=0.5)
        meant = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        raise InputError(f"solver is {name!r}{meant}; expected one of {', '.join([*OWN, *BACKENDS])}")
    return BACKENDS[name]


def require(name: str) -> Capabilities:
    """Return what is known of backend `name`, or say how to install it."""
    known = capabilities(name)
    if not is_available(name):
        command = f'pip install "lbopt[{known.extra}]"' if known.extra else f"pip install {known.package}"
        raise BackendUnavailableError(f"solver '{name}' needs the package {known.package}, which is absent: {command}")
    return known


def load(name: str) -> Backend:
    """Import the backend's module and return it."""
    return cast(Backend, import_module(require(name).module))
