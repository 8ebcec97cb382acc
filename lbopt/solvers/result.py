"""What is known after a solve: an assignment, its objective, a lower bound, where the bound comes from, why it stopped.

*Optimal* is decided here and nowhere else, from objective and bound alone. *Proved* asks more: that lbopt itself
can check the bound, without a third-party solver.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.display import Displayed
from lbopt.exceptions import CertificateError, InputError
from lbopt.files import shown
from lbopt.files.json_text import parsed_json
from lbopt.model import StepProblem, check_assignment, check_paused
from lbopt.model.integers import BoolArray, IntArray
from lbopt.model.objective import loads_after
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.engine import Known

FORMAT = "lbopt-result"
FORMAT_VERSION = 1

#: Version of results with stages or pauses, which problems with conditions have; the others stay what they were.
CONDITIONS_VERSION = 2

#: Origins of a bound that lbopt itself establishes.
PROVED_BY = ("certificate", "exhaustion", "elementary-bound")

#: Origin of a bound that is the word of lbopt's own search.
SEARCH = "search"

_ORIGINS = {
    "certificate": "proved by a certificate, which was checked and which `verify` checks again",
    SEARCH: "proved by the search, not checked",
    "exhaustion": "proved by complete enumeration",
    "elementary-bound": "proved by a closed-form bound, which `verify` repeats",
    "": "no bound is known",
}

#: Why a solve ended.
STOP_REASONS = {
    "proved": "the bound that lbopt itself established was reached",
    "searched": "the search reached its own bound, which was not checked",
    "claimed": "the solver reported that it was done; its bound is claimed, not proved",
    "time": "the time limit was reached",
    "effort": "the limit on the work was reached",
    "target": "what is known is good enough, as `target` or `gap` say",
    "cancelled": "the caller cancelled it",
    "interrupted": "the user stopped it",
    "refused": "numbers beyond the range in which the solver can be trusted; what it claims is not used",
    "contradicted": "the solver's claim was false and is not used",
    "failed": "the solver ended without an answer",
    "memory": "going on would have taken more memory than the solver may take",
    "precision": "rounding in a linear program left something open that exact arithmetic did not settle",
    "stuck": "no method of the search was left for what is open; written by versions before 0.2 alone",
}

TIES = ("any", "leximax")


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Result(Displayed):
    """The outcome of `solve`.

    Parameters
    ----------
    assignment
        int64, (N,): the worker of each request, -1 where it keeps waiting; None where nothing is known.
    objective
        Imbalance in tokens, summed over the window; None without an assignment. Under conditions the costs of waiting
        and pausing are added.
    bound
        Lower bound on the objective of every feasible assignment, tokens; where `stages` come before it, of those that
        reach their values.
    gap
        ``objective - bound``, tokens.
    relative_gap
        ``gap / max(1, objective)``.
    barrier_gap
        ``gap / (G * sum_h M_h)``: the undecided share of the work that the fleet could do up to its barriers.
    status
        "optimal" where objective and bound are equal, and value and bound of each stage; else "feasible"; "unknown"
        without an assignment.
    proof
        Where `bound` comes from: "elementary-bound" (closed-form reasoning that `verify` repeats), "exhaustion"
        (lbopt's own enumeration), "certificate" (lbopt's own search, whose proof was written down and checked; see
        `certificate`), "search" (the word of lbopt's own search, which was not checked), "claimed:<solver>"; None where
        no bound is known.
    stop_reason
        One of `STOP_REASONS`.
    solver
        The backend that ran; "none" where none was needed.
    seconds
        Wall-clock time of the whole solve.
    tie
        Which optimum this is: "leximax" (least sorted load vector) where that was established, else "any".
    problem_digest
        Digest of the problem that this answers.
    paused
        bool, (R,): which of the running requests that may pause do; None where none may.
    stages
        What is known of the goals that come before the objective, in their order.
    evidence
        The certificate, or what writes it when it is asked for; not part of what is compared.
    problem
        The step problem that this answers; None where the result was read from a file. Neither written nor compared.
    """

    assignment: IntArray | None
    objective: int | None
    bound: int
    gap: int | None
    relative_gap: float | None
    barrier_gap: float | None
    status: str
    proof: str | None
    stop_reason: str
    solver: str
    seconds: float
    tie: str
    problem_digest: str
    paused: BoolArray | None = None
    stages: tuple[Stage, ...] = ()
    evidence: Certificate | Callable[[], Certificate] | None = None
    problem: StepProblem | None = None

    @classmethod
    def of(cls, known: Known, seconds: float) -> Result:
        """Check and re-score the best decision and derive everything that follows from it and the bounds.

        Parameters
        ----------
        known
            What the engines know together.
        seconds
            Wall-clock time of the solve.
        """
        problem, best, bounds = known.problem, known.best, known.bounds
        goals = () if problem.conditions is None else problem.conditions.goals
        rank = (None,) * len(bounds) if best is None else best.rank
        bound, proofs, stop = bounds[-1].value, {one.proof for one in bounds}, known.stop
        closed = known.closed
        if closed and stop != "interrupted":
            stop = "proved" if proofs <= {*PROVED_BY} else "searched" if proofs <= {*PROVED_BY, SEARCH} else "claimed"
        elif stop == "done":  # the solver says that it was done, with a bound below what it reached
            stop = "claimed"
        said: dict[str, Any] = {
            **{"bound": bound, "proof": bounds[-1].proof, "stop_reason": stop, "solver": known.solver},
            **{"seconds": seconds, "tie": known.tie, "problem_digest": problem.digest, "problem": problem},
            "stages": tuple(
                Stage(goal=goal, value=value, bound=one.value, proof=one.proof)
                for goal, value, one in zip(goals, rank, bounds, strict=False)
            ),
            "evidence": known.evidence if proofs & {"certificate", SEARCH} else None,
        }
        if best is None:
            nothing: dict[str, Any] = dict.fromkeys(("objective", "gap", "relative_gap", "barrier_gap"))
            return cls(assignment=None, **nothing, **said, status="unknown")
        workers = check_assignment(problem, best.assignment)
        pauses = None if problem.conditions is None else check_paused(problem, best.paused)
        workers.flags.writeable = False
        if pauses is not None:
            pauses.flags.writeable = False
        value, barrier = best.rank[-1], int(problem.num_workers * best.loads.max(axis=0).sum())
        return cls(
            assignment=workers,
            paused=pauses,
            objective=value,
            gap=value - bound,
            relative_gap=(value - bound) / max(1, value),
            barrier_gap=(value - bound) / barrier if barrier else 0.0,
            status="optimal" if closed else "feasible",
            **said,
        )

    def __repr__(self) -> str:
        return f"<Result {self.summary()}>"

    @property
    def loads(self) -> IntArray:
        """Loads after the placement: int64, (G, H + 1), tokens.

        Raises
        ------
        InputError
            Where the result was read from a file, which does not hold the problem, or has no assignment.
        """
        return loads_after(self.answered(), self.placed(), self.paused)

    @property
    def bound_origin(self) -> str:
        """Where the bound comes from, and whether it is proved or only claimed by a solver."""
        return _ORIGINS.get(self.proof or "", f"claimed by the solver {str(self.proof).rpartition(':')[2]}, not proved")

    def answered(self) -> StepProblem:
        """Return the problem that this answers; raise InputError where the result was read from a file."""
        if self.problem is None:
            raise InputError(
                "this result was read from a file, which does not hold the problem; "
                "read that too, and use lbopt.model.loads_after(problem, result.assignment)"
            )
        return self.problem

    def placed(self) -> IntArray:
        """Return the assignment; raise InputError where there is none."""
        if self.assignment is None:
            raise InputError("this result holds no assignment: the solver ended before it found one")
        return self.assignment

    @property
    def proved(self) -> bool:
        """Whether it is optimal by a bound that lbopt itself establishes: an unchecked word of a search is none."""
        proofs = (self.proof, *(stage.proof for stage in self.stages))
        return self.status == "optimal" and all(proof in PROVED_BY for proof in proofs)

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Result) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.problem_digest, self.objective, self.bound, self.solver, self.seconds))

    def certificate(self) -> Certificate | None:
        """Return the proof of `bound` for others to check; None where the proof is of another kind.

        It is written down on the first call, which can take as long as the solve.

        Raises
        ------
        CertificateError
            Where the proof is too long to be written down.
        """
        if callable(self.evidence):
            object.__setattr__(self, "evidence", self.evidence())
        return self.evidence if isinstance(self.evidence, Certificate) else None

    def summary(self) -> str:
        """Return one readable line."""
        if self.objective is None:
            return f"unknown: no assignment after {self.seconds:.3g} s ({STOP_REASONS.get(self.stop_reason)})"
        if self.status == "optimal":
            proofs = [str(one) for one in (*(stage.proof for stage in self.stages), self.proof)]
            claims = sorted((proof for proof in proofs if proof not in PROVED_BY), key=SEARCH.__eq__)
            how = _how(claims[0]) if claims else f"proved by {proofs[-1]}"
            known = f"optimal ({how}): {self._measured()} {self.objective}"
        else:
            known = (
                f"feasible: {self._measured()} {self.objective}, at least {self.bound} ({self.proof}), gap {self.gap}"
            )
        for stage in self.stages:
            least = "" if stage.value == stage.bound else f" (at least {stage.bound})"
            known += f", {stage.goal.replace('_', ' ')} {stage.value}{least}"
        tail = ", leximax" if self.tie == "leximax" else ""
        why = STOP_REASONS.get(self.stop_reason, self.stop_reason)
        return f"{known}{tail}; solver {self.solver}, {self.seconds:.3g} s; {why}"

    def _measured(self) -> str:
        conditions = None if self.problem is None else self.problem.conditions
        adds = conditions is not None and (
            conditions.num_pausable > 0 or (conditions.waiting_cost is not None and not conditions.overdue_first)
        )
        return "imbalance and costs" if adds else "imbalance"

    def to_dict(self, *, certificate: bool = False) -> dict[str, Any]:
        """Return plain values, with format and version; with the certificate where that is asked for.

        Where there is none to write, ``certificate_left_out`` says why in its place.
        """
        values = {name: getattr(self, name) for name in _written()}
        values["assignment"] = None if self.assignment is None else self.assignment.tolist()
        more: dict[str, Any] = {}
        if self.stages:
            more["stages"] = [stage.to_dict() for stage in self.stages]
        if self.paused is not None:
            more["paused"] = [int(flag) for flag in self.paused]
        return {
            "format": FORMAT,
            "version": CONDITIONS_VERSION if more else FORMAT_VERSION,
            **values,
            **more,
            **(self._evidence_written() if certificate else {}),
        }

    def _evidence_written(self) -> dict[str, Any]:
        """Return the certificate, or why it is left out, as a field of the file."""
        try:
            proof = self.certificate()
        except CertificateError as error:  # too long to be written: the bound stays this search's word
            return {"certificate_left_out": str(error)}
        if proof is not None:
            return {"certificate": proof.to_dict()}
        if self.proof == "certificate":
            return {"certificate_left_out": "it was not in the file that this result was read from"}
        return {"certificate_left_out": f"there is none of a bound that is {self.bound_origin}"}

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "the result") -> Result:
        """Rebuild a result written by `to_dict`; whether its claims hold is for `verify` to say."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError(f'{source} is not a result: expected an object with "format": "{FORMAT}"')
        version = data.get("version")
        if isinstance(version, bool) or version not in (FORMAT_VERSION, CONDITIONS_VERSION):
            raise InputError(
                f"{source} has format version {shown(version)}; this lbopt reads version {FORMAT_VERSION}, and "
                f"{CONDITIONS_VERSION} for problems with conditions"
            )
        names = _written()
        missing = [name for name in names if name not in data]
        if missing:
            raise InputError(f"{source} lacks {', '.join(missing)}")
        values = {name: data[name] for name in names}
        _check_types(values, source)
        if values["assignment"] is not None:
            workers = np.array(values["assignment"], dtype=np.int64)
            workers.flags.writeable = False
            values["assignment"] = workers
        if version == CONDITIONS_VERSION:
            values["stages"] = read_stages(data.get("stages", []), source)
            values["paused"] = _read_pauses(data.get("paused"), source)
        if "certificate" in data:
            values["evidence"] = Certificate.from_dict(data["certificate"], source=f"the certificate of {source}")
        return cls(**values)

    def to_json(self, *, certificate: bool = False) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(certificate=certificate))

    @classmethod
    def from_json(cls, text_or_path: str | Path) -> Result:
        """Read a result from a JSON text or from a file that holds one."""
        data, source = parsed_json(text_or_path, "the result")
        return cls.from_dict(data, source=source)


def _how(claim: str) -> str:
    return _ORIGINS[SEARCH] if claim == SEARCH else f"claimed by {claim.split(':')[-1]}"


def _written() -> list[str]:
    apart = ("evidence", "problem", "paused", "stages")
    return [field.name for field in fields(Result) if field.name not in apart]


def _read_pauses(data: Any, source: str) -> BoolArray | None:
    """Return who pauses in a file."""
    if data is None:
        return None
    if not isinstance(data, list) or any(type(flag) is not int or flag not in (0, 1) for flag in data):
        raise InputError(f"{source}: paused is {shown(data)}; expected 0 or 1 for each running request")
    pauses = np.array(data, dtype=np.bool_)
    pauses.flags.writeable = False
    return pauses


def _check_types(values: dict[str, Any], source: str) -> None:
    def whole(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63

    def number(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    def expect(name: str, good: bool, expected: str) -> None:
        if not good:
            raise InputError(f"{source}: {name} is {values[name]!r}; expected {expected}")

    workers = values["assignment"]
    expect("assignment", workers is None or (isinstance(workers, list) and all(map(whole, workers))), "whole numbers")
    expect("bound", whole(values["bound"]), "a whole number")
    for name in ("objective", "gap"):
        expect(name, values[name] is None or whole(values[name]), "a whole number or null")
    for name in ("relative_gap", "barrier_gap"):
        expect(name, values[name] is None or number(values[name]), "a number or null")
    expect("seconds", number(values["seconds"]), "a number")
    for name in ("status", "stop_reason", "solver", "tie", "problem_digest"):
        expect(name, isinstance(values[name], str), "a text")
    expect("proof", values["proof"] is None or isinstance(values["proof"], str), "a text or null")


#: Fields of a stage in a file.
FIELDS = ("goal", "value", "bound", "proof")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is known of a goal that comes before the objective.

    Parameters
    ----------
    goal
        "left_waiting", how many requests are not admitted, or "overdue", what their waiting costs; least is best.
    value
        What the assignment reaches; None without one.
    bound
        Lower bound on it, among the decisions that reach the values of the goals before it.
    proof
        Where the bound comes from, as in `Result`.
    """

    goal: str
    value: int | None
    bound: int
    proof: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: getattr(self, name) for name in FIELDS}


def read_stages(data: Any, source: str) -> tuple[Stage, ...]:
    """Return the stages of a file, checked as far as their types go; `source` begins the message."""
    if not isinstance(data, list):
        raise InputError(f"{source}: stages is {shown(data)}; expected a list")
    for one in data:
        good = (
            isinstance(one, dict)
            and set(one) == set(FIELDS)
            and all(isinstance(one[name], str) for name in ("goal", "proof"))
            and (one["value"] is None or _whole(one["value"]))
            and _whole(one["bound"])
        )
        if not good:
            raise InputError(f"{source}: a stage is {shown(one)}; expected an object with {', '.join(FIELDS)}")
    return tuple(Stage(**one) for one in data)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
