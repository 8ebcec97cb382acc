"""A long run of numbered trials: shows how far it is, goes on where it was stopped, and ends at the first failure."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

#: One trial: its number and the counts to add to; returns the failure in words, None for none.
Trial = Callable[[int, Counter], str | None]

#: Seconds between two lines of progress, each with a state that is kept.
_EVERY = 10


def run(trial: Trial, count: int, state: Path) -> int:
    """Run trials 0..count - 1 that `state` does not have yet; return the exit code.

    Parameters
    ----------
    trial
        The trial.
    count
        How many.
    state
        File with what was done; it is of one seed.
    """
    done, seen = 0, Counter()
    if state.exists():
        kept = json.loads(state.read_text(encoding="utf-8"))
        done, seen = kept["done"], Counter(kept["seen"])
        print(f"goes on after {done} of {count}", file=sys.stderr)
    begun, first, shown = time.monotonic(), done, time.monotonic()
    try:
        while done < count:
            wrong = trial(done, seen)
            if wrong is not None:
                print(f"trial {done}: {wrong}")
                return 1
            done += 1
            if time.monotonic() - shown > _EVERY or done == count:
                shown = time.monotonic()
                _write(state, {"done": done, "seen": dict(seen)})
                rate = (done - first) / (shown - begun)
                print(f"{done} of {count}, {rate:.1f} a second", file=sys.stderr)
    finally:
        _write(state, {"done": done, "seen": dict(seen)})
    for what, number in sorted(seen.items()):
        print(f"{number:9,}  {what}")
    return 0


def _write(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(path)
