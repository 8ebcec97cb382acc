"""The engines: what each can do, as data. A new engine is a file of its own and an entry here.

Nothing is imported before an engine is created, so the table can be read without Numba and without solver packages.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from lbopt.compile_time import preparing
from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.solvers.engine import Engine, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What is known of an engine.

    Parameters
    ----------
    name
        Its key in `ENGINES`.
    solver
        Its name in `Result.solver`; several engines are the solver "exact".
    module
        Its file, imported on first use. It has the class `engine`, or a function `minimise` for integer programs.
    engine
        The class; `ProgramEngine` calls the function `minimise` of `module`.
    package
        The package that has to be installed; None where lbopt needs nothing.
    extra
        The extra of lbopt that installs the package; None where it comes with lbopt.
    largest_safe_total
        Largest `Program.total` up to which its claims are used; None means any.
    largest_total
        Largest `Program.total` with which it is started at all; None means any.
    """

    name: str
    solver: str
    module: str
    engine: str = "ProgramEngine"
    package: str | None = None
    extra: str | None = None
    largest_safe_total: int | None = None
    largest_total: int | None = None

    def trusts(self, total: int) -> bool:
        """Whether claims about a program of this total are used."""
        return self.largest_safe_total is None or total <= self.largest_safe_total


_OPENING, _EXACT = "lbopt.solvers.opening", "lbopt.solvers.exact.engines"

# The safe totals were measured against exhaustion, on problems of 2-4 workers, 4-10 requests and 1-4 columns:
#   CP-SAT 9.15: 300 problems at each of the totals 5e7, 5e10, 5e13, 5e15: no wrong claim; held at 2**31, above which
#     other programs of its kind went wrong (or-tools#5293).
#   HiGHS 1.13.1: 1,000 problems at each of 2e4, 1e5, 5e5: no wrong claim; 150 at 1e7: two wrong bounds, of programs
#     with total 1.2e6 and 1.8e6 (the second "Optimal" at 367832, true 367829); at 5e9 wrong by factors. On sizes
#     that are alike (within 50 of 10,000) it is wrong from totals of 30,003 on, see
#     tests/solvers/exact/test_soundness.py. Held at 2**14.
#     From entries near 1e9 on, 5 of 57 runs never ended and ignored both the time limit and cancelSolve; none of 1,200
#     with entries to 1e6 did. Not started above 2**26.
#   CBC 2.10 through PuLP: with default options a wrong "Optimal" (13087, true 11447) on a program of five columns with
#     total 3e4. With its integer preprocessing off that one is right, and 5,510 problems with totals to 1.9e5 and 524
#     to 2.7e5 gave no wrong claim; from 1e6 on there are many. Held at 2**17.
ENGINES: dict[str, Capabilities] = {
    "small": Capabilities(name="small", solver="exact", module=_OPENING, engine="Exhaustion"),
    "steps": Capabilities(name="steps", solver="exact", module=_EXACT, engine="Steps"),
    "windows": Capabilities(name="windows", solver="exact", module=_EXACT, engine="Windows"),
    "departures": Capabilities(name="departures", solver="exact", module=_EXACT, engine="Departures"),
    "conditions": Capabilities(
        name="conditions",
        solver="exact",
        module="lbopt.solvers.conditions.priced_search",
        engine="UnderConditions",
    ),
    "further": Capabilities(name="further", solver="exact", module=_OPENING, engine="Exhaustion"),
    "elementary": Capabilities(name="elementary", solver="none", module=_OPENING, engine="Elementary"),
    "brute-force": Capabilities(name="brute-force", solver="brute-force", module=_OPENING, engine="Exhaustion"),
    "cp-sat": Capabilities(
        name="cp-sat",
        solver="cp-sat",
        module="lbopt.solvers.cp_sat",
        package="ortools",
        extra="cp-sat",
        largest_safe_total=2**31,
        largest_total=2**53,
    ),
    "highs": Capabilities(
        name="highs",
        solver="highs",
        module="lbopt.solvers.highs",
        package="highspy",
        extra="highs",
        largest_safe_total=2**14,
        largest_total=2**26,
    ),
    "pulp": Capabilities(
        name="pulp",
        solver="pulp",
        module="lbopt.solvers.pulp_cbc",
        package="pulp",
        extra="pulp",
        largest_safe_total=2**17,
        largest_total=10**12,
    ),
}


#: lbopt's compiled searches, in the order in which they are asked: the one that knows less and is faster comes first.
OWN_SEARCHES = ("steps", "windows", "departures", "conditions")

#: The solvers of integer programs, which a user can name.
BACKENDS = {name: ENGINES[name] for name in ("brute-force", "cp-sat", "highs", "pulp")}

#: What a user can name besides: lbopt's own answers, its compiled searches alone, and the choice of a backend.
OWN = ("exact", "search", "auto")

#: Leaves up to which "brute-force" is started, and up to which "auto" exhausts at once: a fraction of a second.
LEAF_LIMIT, AUTO_LEAVES = 5_000_000, 20_000

#: The order in which "auto" looks for a solver where exhaustion takes too long.
AUTO_ORDER = ("highs", "cp-sat", "pulp")


def create(name: str, question: Question) -> Engine:
    """Import engine `name` and return it for the question."""
    return _engine(name)(ENGINES[name], question)


@cache
def _engine(name: str) -> Callable[[Capabilities, Question], Engine]:
    known = ENGINES[name]
    home = "lbopt.solvers.program_engine" if known.engine == "ProgramEngine" else known.module
    with preparing():  # the first import of a search loads the compiler: no solve pays for that
        return cast(Callable[[Capabilities, Question], Engine], getattr(import_module(home), known.engine))


def automatic(leaves: int | None, total: Callable[[], int]) -> str:
    """Return the backend that "auto" takes.

    It exhausts small problems and else takes the first whose claims can be used. Beyond all ranges it exhausts whatever
    can be exhausted, as Python integers have no range, and else takes the solver with the widest one, which still finds
    the best placements there.

    Parameters
    ----------
    leaves
        Of an exhaustion; None where there are too many choices after each other.
    total
        Returns `Program.total`; the program is written down only where it is asked, once.
    """
    if leaves is not None and leaves <= AUTO_LEAVES:
        return "brute-force"
    ready = [capabilities(name) for name in AUTO_ORDER if is_available(name)]
    trusted = [one.name for one in ready if one.trusts(total())]
    if trusted:
        return trusted[0]
    if leaves is not None and leaves <= LEAF_LIMIT:
        return "brute-force"
    if not ready:
        return require("cp-sat").name  # the one whose claims reach furthest
    return max(ready, key=lambda one: one.largest_safe_total or 0).name


def compiled(solver: str) -> str:
    """Return the solver for callers that solve many problems: of lbopt's own answers the compiled searches alone."""
    return "search" if solver == "exact" else solver


def is_available(name: str) -> bool:
    """Return whether the backend's package is installed; nothing is imported."""
    package = capabilities(name).package
    return package is None or find_spec(package) is not None


def capabilities(name: str, *others: str) -> Capabilities:
    """Return what is known of backend `name`; `others` are names that the caller takes besides."""
    if name not in BACKENDS:
        names = [*OWN, *BACKENDS, *others]
        near = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
        meant = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        raise InputError(f"solver is {name!r}{meant}; expected one of {', '.join(names)}")
    return BACKENDS[name]


def require(name: str) -> Capabilities:
    """Return what is known of backend `name`, or raise an error with the command that installs it."""
    known = capabilities(name)
    if not is_available(name):
        command = f'pip install "lbopt[{known.extra}]"' if known.extra else f"pip install {known.package}"
        raise BackendUnavailableError(f"solver '{name}' needs the package {known.package}, which is absent: {command}")
    return known
