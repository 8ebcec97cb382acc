"""A long run of numbered trials: shows how far it is, goes on where it was stopped, and ends at the first failure.

It may also go on after failures, stop after some minutes, and use several processes; the counts are the same.
"""

import json
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

#: One trial: its number and the counts to add to; returns the failure in words, None for none.
Trial = Callable[[int, Counter], str | None]

#: Seconds between two lines of progress, each with a state that is kept.
_EVERY = 10

#: The count of failures after which a run went on.
FAILED = "failed"


def run(
    trial: Trial,
    count: int,
    state: Path,
    *,
    go_on: bool = False,
    minutes: float | None = None,
    jobs: int = 1,
) -> int:
    """Run trials 0..count - 1 that `state` does not have yet; return the exit code.

    Parameters
    ----------
    trial
        The trial; one that can be pickled where there are several processes.
    count
        How many.
    state
        File with what was done; it is of one seed.
    go_on
        Whether to count failures and go on, and leave the counts to the caller; the exit code is 1 all the same.
    minutes
        After which to stop; None for no limit.
    jobs
        Processes.
    """
    done, seen = kept(state)
    if state.exists():
        print(f"goes on after {done} of {count}", file=sys.stderr)
    begun, first, shown = time.monotonic(), done, time.monotonic()
    outcomes = _outcomes(trial, range(done, count), jobs)
    try:
        for wrong, counts in outcomes:
            seen += counts
            if wrong is not None:
                print(f"trial {done}: {wrong}", flush=True)
                if not go_on:
                    return 1
                seen[FAILED] += 1
            done += 1
            now = time.monotonic()
            late = minutes is not None and now - begun > 60 * minutes
            if now - shown > _EVERY or done == count or late:
                shown = now
                _write(state, {"done": done, "seen": dict(seen)})
                rate = (done - first) / (shown - begun)
                print(f"{done} of {count}, {rate:.1f} a second, {seen[FAILED]} failed", file=sys.stderr)
            if late:
                break
    finally:
        outcomes.close()
        _write(state, {"done": done, "seen": dict(seen)})
    for what, number in sorted(seen.items()) if not go_on else ():
        print(f"{number:9,}  {what}")
    return 1 if seen[FAILED] else 0


def kept(state: Path) -> tuple[int, Counter]:
    """How many trials were done by a run, and its counts."""
    if not state.exists():
        return 0, Counter()
    found = json.loads(state.read_text(encoding="utf-8"))
    return found["done"], Counter(found["seen"])


def _outcomes(trial: Trial, numbers: range, jobs: int) -> Iterator[tuple[str | None, Counter]]:
    """Yield what each trial returns and counts, in order."""
    ask = partial(_asked, trial)
    if jobs == 1:
        yield from map(ask, numbers)
        return
    # Ctrl-C reaches all processes: the first one ends the others.
    ignoring = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with multiprocessing.get_context("spawn").Pool(jobs, ignoring) as pool:
        yield from pool.imap(ask, numbers)


def _asked(trial: Trial, number: int) -> tuple[str | None, Counter]:
    seen: Counter = Counter()
    return trial(number, seen), seen


def _write(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".partial")
    unfinished.write_text(json.dumps(content), encoding="utf-8")
    unfinished.replace(path)
