"""What is known of a library entry: the best assignment, a proved bound, perhaps a higher claimed one, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from lbopt.exceptions import InputError
from lbopt.instances.library.fields import strict_fields
from lbopt.model.integers import IntArray, integer_array

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
        values = strict_fields(
            data,
            f"{source}: known",
            {
                "best": (int, None),
                "assignment": (list, None),
                "best_by": (str, None),
                "bound": (int,),
                "proof": (str,),
                "bound_by": (str,),
                "certificate": (str,),
                "certificate_note": (str,),
                "certificate_digest": (str, None),
                "claimed_bound": (int, None),
                "claimed_by": (str, None),
            },
        )
        if values["assignment"] is not None:
            shifted = [worker + 1 if type(worker) is int else worker for worker in values["assignment"]]
            values["assignment"] = integer_array(f"{source}: assignment + 1", shifted, ndim=(1,)) - 1
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
