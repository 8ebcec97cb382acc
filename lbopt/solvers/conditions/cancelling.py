"""Let a cancel that is set from outside end compiled code that is running, not only the next slice of it.

On many workers one slice may take seconds: column generation is not cut into parts here. Compiled code gives the
interpreter free, so a thread asks meanwhile, and sets the flag that every loop in there looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from lbopt.solvers.budget import Cancel

#: Seconds between two looks.
_EVERY = 0.02


@contextmanager
def ended_by(cancel: Cancel | None, known: Any) -> Iterator[None]:
    """Within the context, set ``known.expired`` once `cancel` is set.

    Parameters
    ----------
    cancel
        Says whether to stop; None for never.
    known
        A record of a search, as `lbopt.kernels.deadline.out_of_time` reads it.
    """
    if cancel is None:
        yield
        return
    over = Event()

    def watch() -> None:
        while not over.wait(_EVERY):
            if cancel.is_set():
                known.expired = 1
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
