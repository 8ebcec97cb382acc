"""One attempt at a library entry, how it compares with what is known, and its certificate within a time limit.

Writing a certificate down can take far longer than the search that found the proof. The limit is an alarm of the
operating system, heard between two Python instructions; where there is none (Windows, or outside the main thread) there
is no limit either. Kernels that are compiled meanwhile do not count.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.instances.library import Entry, Record
from lbopt.kernels import compile_time
from lbopt.model import StepProblem
from lbopt.solvers import PROVED_BY, Result, elementary_bound, solve
from lbopt.solvers.certificates import Certificate, check
from lbopt.solvers.registry import compiled

#: Seconds to write a certificate down and check it, beyond which the proof rests on the search.
CERTIFICATE_SECONDS = 20.0

#: Seconds between two alarms at least.
_AGAIN = 0.01

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
    """Return the result as JSON, with its certificate where one is needed and can be written down in time."""
    problem, result = attempt.entry.problem, attempt.result
    needed = result.bound > elementary_bound(problem)  # else `lbopt verify` needs none
    try:
        certificate = certificate_within(problem, result, CERTIFICATE_SECONDS) if needed else None
    except CertificateError:  # `lbopt verify` says that the bound is the search's word then
        certificate = None
    return result.to_json(certificate=certificate is not None)


def certificate_within(problem: StepProblem, result: Result, seconds: float) -> Certificate | None:
    """Return the certificate of the result's bound, written down and checked; None where there is no such proof.

    Raises
    ------
    CertificateError
        Where it is too long to be written down, where writing and checking take longer than `seconds`, or where it does
        not prove the bound.
    """
    with _alarm(seconds):
        certificate = result.certificate()
        if certificate is not None:
            check(problem, certificate)
    return certificate


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def now() -> float:
        return time.perf_counter() - compile_time.seconds()

    end = now() + seconds

    def ring(number: int, frame: FrameType | None) -> None:
        if (left := end - now()) > 0:
            signal.setitimer(signal.ITIMER_REAL, max(left, _AGAIN))
            return
        raise CertificateError(f"writing it down and checking it takes longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
