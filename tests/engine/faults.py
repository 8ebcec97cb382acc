"""What becomes of streams when a rank is stopped for some seconds, or killed."""

from __future__ import annotations

import signal
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

from tests.engine.clients import FAILED, ask
from tests.engine.fleet import Fleet
from tests.engine.http_raw import Answer, metric
from tests.engine.row import Row

#: Seconds for which a rank is stopped, and after which the fault comes.
HELD, _BEFORE = 5.0, 1.5
#: A stream that stood still for so many of them met the stop.
_STALLED = 0.8 * HELD
#: Streams before the fault and after it, and tokens of each.
STREAMS, LATER, _TOKENS = 8, 6, 400
_FINISHED = r'lbopt_requests_total\{ending="finished"\}'


def under(fleet: Fleet, strike: object) -> tuple[list[Answer], list[Answer]]:
    """Run streams, strike while they run, and send more afterwards; return the answers to both."""
    assert callable(strike)
    with ThreadPoolExecutor(STREAMS + LATER) as pool:
        first: list[Future[Answer]] = [pool.submit(ask, fleet, number, _TOKENS) for number in range(STREAMS)]
        time.sleep(_BEFORE)
        strike()
        later: list[Future[Answer]] = []
        for number in range(LATER):
            later.append(pool.submit(ask, fleet, 100 + number, 20))
            time.sleep(1.0)
        return [one.result() for one in first], [one.result() for one in later]


def kinds(answers: list[Answer]) -> str:
    """Count what clients got."""
    told = Counter(ending(answer) for answer in answers)
    return ", ".join(f"{count} {what}" for what, count in told.most_common())


def ending(answer: Answer) -> str:
    """Say how an answer ended: whole, with an error in the stream, cut, or its status and reason."""
    if answer.is_whole:
        return "whole"
    if answer.status != 200:
        return answer.told if answer.status else "no answer"
    errors = [event for event in answer.events if '"error"' in event]
    return "told in the stream" if errors else "cut off without a word"


def stopped(fleet: Fleet) -> Row:
    """SIGSTOP of one engine for five seconds: ranks that meet stand still together, single ones do not."""

    def strike() -> None:
        fleet.engines[1].kill(signal.SIGSTOP)
        time.sleep(HELD)
        fleet.engines[1].kill(signal.SIGCONT)

    first, later = under(fleet, strike)
    stalled = sum(max(answer.gaps, default=0) > _STALLED for answer in first)
    slowest = max(max(answer.gaps, default=0) for answer in first)
    detail = [f"later requests: {kinds(later)}", f"longest gap {slowest:.1f} s"]
    told = f"{stalled} of {STREAMS} streams stood still, {kinds(first)}"
    whole = all(answer.is_whole for answer in first + later)
    return Row(f"one engine stopped for {HELD:.0f} s", told, detail, ok=whole)


def killed(fleet: Fleet) -> Row:
    """SIGKILL of one engine: what clients get, and what the router counts."""

    def counted() -> tuple[float, float]:
        return metric(fleet.url, _FINISHED), metric(fleet.url, FAILED)

    before = counted()
    first, later = under(fleet, fleet.engines[1].kill)
    time.sleep(1.0)
    finished, failed = (after - one for after, one in zip(counted(), before, strict=True))
    whole = sum(answer.is_whole for answer in first + later)
    detail = [
        f"sent before: {kinds(first)}",
        f"sent in the six seconds after it: {kinds(later)}, slowest {max(answer.seconds for answer in later):.1f} s",
        f"the router counted {finished:.0f} finished and {failed:.0f} failed",
        f"still held: {metric(fleet.url, 'lbopt_live_requests'):.0f}",
    ]
    bad = [ending(answer) for answer in first + later if ending(answer) in ("no answer", "cut off without a word")]
    if fleet.name == "singles":  # the other one is there, so that what had not begun has to be answered
        bad += [ending(answer) for answer in later if not answer.is_whole]
    told = f"{whole} of {STREAMS + LATER} whole; finished as counted: {finished:.0f}"
    return Row("one engine killed", told, detail, ok=not bad and finished == whole)
