"""An entry of the library: a step problem, where it comes from, what it is for, and what is known of its optimum.

What is known: the best assignment, a proved bound, perhaps a higher claimed one, and by whom.

Problems are written down in a short way. Work of requests that grow alike, work[i, h] = sizes[i] + growth * h, is
written as sizes and growth; a base load that is constant over the window as one number; `must_admit` as the numbers of
the requests. The digest of `StepProblem` guards the content, so that a problem that was written down in short is the
same or is refused. JSON objects are read strictly: exactly the fields that belong to them, each of its type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.kinds import kinds_of, refuse
from lbopt.model import StepProblem, check_assignment, objective
from lbopt.model.integers import IntArray, integer_array

#: Types of the values that JSON holds, by their names in annotations.

_FIELDS: dict[str, Any] = {
    "horizon": int,
    "base": list[Any],
    "slots": list[Any],
    "sizes": list[Any] | None,
    "growth": int | None,
    "work": list[Any] | None,
    "must_admit": list[Any],
    "digest": str,
}


def compact(problem: StepProblem) -> dict[str, Any]:
    """Return the problem as plain lists, as short as the form allows."""
    problem.refuse_conditions("the library")
    steps = np.arange(problem.horizon + 1)
    growth = int(problem.work[0, 1] - problem.work[0, 0]) if problem.horizon and problem.num_requests else 0
    alike = growth >= 0 and bool((problem.work == problem.work[:, :1] + growth * steps).all())
    flat = bool((problem.base == problem.base[:, :1]).all())
    return {
        "horizon": problem.horizon,
        "base": problem.base[:, 0].tolist() if flat else problem.base.tolist(),
        "slots": problem.slots.tolist(),
        "sizes": problem.work[:, 0].tolist() if alike else None,
        "growth": growth if alike else None,
        "work": None if alike else problem.work.tolist(),
        "must_admit": np.flatnonzero(problem.must_admit).tolist(),
        "digest": problem.digest,
    }


def expanded(data: Any, *, source: str) -> StepProblem:
    """Return the problem that `compact` wrote; its digest must match."""
    values = strict_fields(data, source, _FIELDS)
    horizon = values["horizon"]
    if not 0 <= horizon < 2**20:
        raise InputError(f"{source}: horizon is {horizon}; expected a whole number of zero or more")
    if (values["sizes"] is None) == (values["work"] is None) or (values["sizes"] is None) != (values["growth"] is None):
        raise InputError(f"{source} needs either sizes and growth, or work")
    try:
        if values["work"] is not None:
            work = values["work"]
        else:
            steps = np.arange(horizon + 1, dtype=np.int64)
            work = np.array(values["sizes"], dtype=np.int64).reshape(-1, 1) + values["growth"] * steps
        base = values["base"]
        if not base or not isinstance(base[0], list):
            base = np.repeat(np.array(base, dtype=np.int64)[:, None], horizon + 1, axis=1)
        num_requests = len(values["sizes"] if values["work"] is None else values["work"])
        problem = StepProblem(
            base=base, slots=values["slots"], work=work, must_admit=_flags(values["must_admit"], num_requests)
        )
    except (ValueError, OverflowError, TypeError) as error:  # InputError is a ValueError
        raise InputError(f"{source}: {error}") from None
    if problem.digest != values["digest"]:
        raise InputError(
            f"{source} says digest {values['digest'][:12]}… but its numbers give {problem.digest[:12]}…: "
            "it was changed after it was written"
        )
    return problem


def _flags(requests: list[Any], num_requests: int) -> Any:
    wrong = [i for i in requests if type(i) is not int or not 0 <= i < num_requests]
    if wrong:
        raise InputError(f"must_admit names request {wrong[0]!r}; expected 0..{num_requests - 1}")
    flags = np.zeros(num_requests, dtype=np.bool_)
    flags[requests] = True
    return flags


def strict_fields(data: Any, source: str, expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return `data` if it has the expected fields and no others, each of its kind.

    Raises
    ------
    InputError
        Naming the source, the field, and what was expected.
    """
    if not isinstance(data, dict):
        raise InputError(f"{source} is a {type(data).__name__}; expected an object with {', '.join(expected)}")
    missing = [name for name in expected if name not in data]
    if missing:
        raise InputError(f"{source} lacks {', '.join(missing)}")
    unknown = [str(name) for name in data if name not in expected]
    if unknown:
        raise InputError(f"{source} has the unknown field {unknown[0]!r}; expected {', '.join(expected)}")
    for name, kind in expected.items():
        refuse(f"{source}: {name}", data[name], kind)
    return dict(data)


FORMAT = "lbopt-library-entry"
FORMAT_VERSION = 1

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a problem comes from: enough to make it again.

    Parameters
    ----------
    recipe
        Module in `tools/library/recipes` that makes it.
    source
        Generator, paper or search, as a sentence.
    seed
        Of ``numpy.random.default_rng``; None where nothing was drawn.
    slots_per_worker
        B, slots of a worker when it is empty; None where only the free ones matter.
    parameters
        Everything else that the recipe was called with.
    """

    recipe: str
    source: str
    seed: int | None = None
    slots_per_worker: int | None = None
    parameters: Mapping[str, int | str] = field(default_factory=dict)


#: What a proved bound rests on, from the strongest: what each needs to be believed.
PROOFS = {
    "elementary-bound": "closed-form reasoning that `lbopt verify` repeats",
    "certificate": "a certificate that `lbopt verify` checks",
    "exhaustion": "lbopt's own enumeration of all placements",
    "search": "lbopt's own exact search, which wrote no certificate",
}

#: What became of the certificate of a bound.
CERTIFICATES = {
    "kept": "in the library",
    "left out": "too large for the library; its digest is kept, and solving again writes it",
    "none": "there is none",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Record:
    """The state of knowledge about one problem.

    Parameters
    ----------
    best
        Least imbalance known, tokens; None where no assignment is known.
    assignment
        int64, (N,): the worker of each request in it, -1 where it keeps waiting.
    best_by
        Solver and version that found it.
    bound
        Proved lower bound, tokens.
    proof, bound_by
        What the bound rests on, one of `PROOFS`, and the solver and version that proved it.
    certificate
        "kept", "left out" or "none"; one of `CERTIFICATES`.
    certificate_note
        Why it is left out or why there is none.
    certificate_digest
        SHA-256 of a certificate that was written and checked, kept or not.
    claimed_bound, claimed_by
        A bound above `bound` that a solver claims and that is not proved, tokens; None where there is none.
    """

    best: int | None
    assignment: IntArray | None
    best_by: str | None
    bound: int
    proof: str
    bound_by: str
    certificate: str = "none"
    certificate_note: str = ""
    certificate_digest: str | None = None
    claimed_bound: int | None = None
    claimed_by: str | None = None

    def __post_init__(self) -> None:
        if self.proof not in PROOFS:
            raise InputError(f"proof is {self.proof!r}; expected one of {', '.join(PROOFS)}")
        if self.certificate not in CERTIFICATES:
            raise InputError(f"certificate is {self.certificate!r}; expected one of {', '.join(CERTIFICATES)}")
        if self.best is not None and self.best < self.bound:
            raise InputError(f"best is {self.best}, below the proved bound {self.bound}: one of them is wrong")
        if self.assignment is not None:
            workers = self.assignment.copy()
            workers.flags.writeable = False
            object.__setattr__(self, "assignment", workers)

    @property
    def status(self) -> str:
        """How sure the optimum is: "proved", "searched" (the search says so, unchecked), "claimed" or "open"."""
        if self.best is None:
            return "open"
        if self.best == self.bound:
            return "searched" if self.proof == "search" else "proved"
        return "claimed" if self.best == self.claimed_bound else "open"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["assignment"] = None if self.assignment is None else self.assignment.tolist()
        return values

    @property
    def settled(self) -> bool:
        """Whether the optimum is proved in a way that others can check or repeat."""
        return self.status == "proved"

    @classmethod
    def from_dict(cls, data: Any, *, source: str) -> Record:
        """Rebuild a record written by `to_dict`; whether it fits its problem is for `Entry` to say."""
        values = strict_fields(data, f"{source}: known", kinds_of(cls) | {"assignment": list[Any] | None})
        if values["assignment"] is not None:
            shifted = [worker + 1 if type(worker) is int else worker for worker in values["assignment"]]
            values["assignment"] = integer_array(f"{source}: assignment + 1", shifted, ndim=(1,)) - 1
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Entry:
    """A step problem with its pedigree, checked: the best assignment is feasible and worth what is said of it.

    Parameters
    ----------
    name, kind
        By which it is loaded; its class, one of `lbopt.instances.library.KINDS`.
    explanation
        What it is for, as a sentence.
    origin, problem, record
        Where it comes from, the problem, and what is known of it.

    Raises
    ------
    InputError
        Where the record does not fit the problem.
    """

    name: str
    kind: str
    explanation: str
    origin: Origin
    problem: StepProblem
    record: Record

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"the name of an entry is {self.name!r}; expected lower-case words joined by '-'")
        best, assignment = self.record.best, self.record.assignment
        if (best is None) != (assignment is None):
            raise InputError(f"{self.name}: a best value and its assignment belong together")
        if assignment is not None:
            try:
                value = objective(self.problem, check_assignment(self.problem, assignment))
            except InfeasibleDecisionError as error:
                raise InputError(f"{self.name}: {error}") from None
            if value != best:
                raise InputError(f"{self.name}: best is {best}, but its assignment is worth {value}")

    @property
    def best(self) -> int | None:
        """Least imbalance known, tokens; None where no assignment is known."""
        return self.record.best

    @property
    def bound(self) -> int:
        """Proved lower bound on the imbalance, tokens."""
        return self.record.bound

    @property
    def status(self) -> str:
        """Return "proved", "searched", "claimed" or "open"; see `Record.status`."""
        return self.record.status

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with format and version."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "name": self.name,
            "kind": self.kind,
            "explanation": self.explanation,
            "origin": asdict(self.origin),
            "known": self.record.to_dict(),
            "problem": compact(self.problem),
        }

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "the entry") -> Entry:
        """Rebuild an entry written by `to_dict`; the record has to fit the problem."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError(f'{source} is not a library entry: expected an object with "format": "{FORMAT}"')
        if data.get("version") != FORMAT_VERSION:
            raise InputError(
                f"{source} has format version {data.get('version')!r}; this lbopt reads version {FORMAT_VERSION}"
            )
        kinds = {"format": str, "version": int, **dict.fromkeys(("name", "kind", "explanation"), str)}
        values = strict_fields(data, source, kinds | dict.fromkeys(("origin", "known", "problem"), dict))
        origin = strict_fields(values["origin"], f"{source}: origin", kinds_of(Origin))
        return cls(
            name=values["name"],
            kind=values["kind"],
            explanation=values["explanation"],
            origin=Origin(**origin),
            problem=expanded(values["problem"], source=f"{source}: problem"),
            record=Record.from_dict(values["known"], source=source),
        )
