"""One attempt at a library entry, and how it compares with what is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lbopt.instances.library import Entry, Record
from lbopt.solvers import PROVED_BY, Result, elementary_bound, solve
from lbopt.solvers.registry import compiled

#: Verdicts on a value, and what they mean.
VERDICTS = {
    "matches": "the best known value was reached",
    "better": "better than known",
    "worse": "worse than known",
    "new": "no value was known",
    "contradiction": "a proved bound above a value that is reached",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What a solver made of an entry.

    Parameters
    ----------
    entry, result
        The entry, and the solver's answer.
    verdict
        One of `VERDICTS`.
    news
        What is better than known, or what contradicts what, as a sentence; empty where there is nothing to say.
    """

    entry: Entry
    result: Result
    verdict: str
    news: str = ""


def attempt(
    entry: Entry, *, solver: str = "exact", time_limit: float | None = None, seed: int = 0, hint: Any = None
) -> Attempt:
    """Solve an entry and compare; the known assignment helps only where it is handed over as `hint`.

    Parameters
    ----------
    time_limit
        Seconds; None for no limit.
    hint
        Assignment to start from; None for none.

    Raises
    ------
    KeyboardInterrupt
        Where Ctrl-C ended the solve, also if the solver caught it.
    """
    result = solve(entry.problem, solver=compiled(solver), time_limit=time_limit, seed=seed, hint=hint)
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return compared(entry, result)


def compared(entry: Entry, result: Result) -> Attempt:
    """Return the attempt that `result` is."""
    contradiction = contradiction_of(entry.record, result)
    if contradiction is not None:
        return Attempt(entry=entry, result=result, verdict="contradiction", news=contradiction)
    known = entry.best
    if result.objective is None:
        verdict = "worse"
    elif known is None:
        verdict = "new"
    else:
        verdict = "matches" if result.objective == known else "better" if result.objective < known else "worse"
    news = ""
    if verdict == "better":
        news = f"{result.objective} instead of {known}"
    elif result.proved and entry.status != "proved":
        news = f"proved optimal, {entry.status} so far"
    elif result.bound > entry.bound and result.proof in PROVED_BY:
        news = f"proved bound {result.bound} instead of {entry.bound}"
    return Attempt(entry=entry, result=result, verdict=verdict, news=news)


def contradiction_of(record: Record, result: Result) -> str | None:
    """Return the sentence that says which proof and which value cannot both be right; None where nothing is wrong."""
    if result.objective is not None and result.objective < record.bound:
        return (
            f"an assignment worth {result.objective} was found, below the bound {record.bound} that "
            f"{record.bound_by} is said to have proved ({record.proof})"
        )
    if result.proof in PROVED_BY and record.best is not None and result.bound > record.best:
        return (
            f"solver '{result.solver}' says that it proved the bound {result.bound} ({result.proof}), "
            f"above the known assignment worth {record.best}"
        )
    return None


def result_text(attempt: Attempt) -> str:
    """Return the result as JSON, with its certificate where `lbopt verify` needs one."""
    return attempt.result.to_json(certificate=attempt.result.bound > elementary_bound(attempt.entry.problem))
