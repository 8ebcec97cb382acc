"""An entry of the library: a step problem, where it comes from, what it is for, and what is known of its optimum."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.instances.library.compact import compact, expanded
from lbopt.instances.library.fields import strict_fields
from lbopt.instances.library.record import Record
from lbopt.model import StepProblem, check_assignment, objective

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A problem with its origin, before anything is known of its optimum."""

    name: str
    kind: str
    explanation: str
    origin: Origin
    problem: StepProblem


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

    @classmethod
    def of(cls, draft: Draft, record: Record) -> Entry:
        """Return the entry of a draft of which so much is known."""
        return cls(
            name=draft.name,
            kind=draft.kind,
            explanation=draft.explanation,
            origin=draft.origin,
            problem=draft.problem,
            record=record,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with format and version."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "name": self.name,
            "kind": self.kind,
            "explanation": self.explanation,
            "origin": {
                "recipe": self.origin.recipe,
                "source": self.origin.source,
                "seed": self.origin.seed,
                "slots_per_worker": self.origin.slots_per_worker,
                "parameters": dict(self.origin.parameters),
            },
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
        values = strict_fields(
            data,
            source,
            {
                "format": (str,),
                "version": (int,),
                "name": (str,),
                "kind": (str,),
                "explanation": (str,),
                "origin": (dict,),
                "known": (dict,),
                "problem": (dict,),
            },
        )
        origin = strict_fields(
            values["origin"],
            f"{source}: origin",
            {
                "recipe": (str,),
                "source": (str,),
                "seed": (int, None),
                "slots_per_worker": (int, None),
                "parameters": (dict,),
            },
        )
        return cls(
            name=values["name"],
            kind=values["kind"],
            explanation=values["explanation"],
            origin=Origin(**origin),
            problem=expanded(values["problem"], source=f"{source}: problem"),
            record=Record.from_dict(values["known"], source=source),
        )
