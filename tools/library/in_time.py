"""The certificate of a result, written down and checked within a time limit.

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
from types import FrameType

from lbopt import compile_time
from lbopt.exceptions import CertificateError
from lbopt.model import StepProblem
from lbopt.solvers import Result
from lbopt.solvers.certificates import Certificate, check

#: Seconds to write a certificate down and check it, beyond which the proof rests on the search.
CERTIFICATE_SECONDS = 20.0

#: Seconds between two alarms at least.
_AGAIN = 0.01


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
