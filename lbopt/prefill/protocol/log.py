"""What happened on the instances of a world: every pass, and what became of each request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from lbopt.prefill.protocol.engine import Engine, PassLoad


class Log:
    """Columns as of `lbopt.prefill.run`; `dispatched` and `began` are of the first time that it was so.

    Parameters
    ----------
    count
        Requests of the run.
    """

    def __init__(self, count: int) -> None:
        self.sent: Counter[int] = Counter()
        self.dispatched, self.began = np.full((2, count), np.nan)
        self.instance, self.unit = np.full((2, count), -1)
        self.passes, self.deferred = np.zeros((2, count), dtype=np.int64)
        self.rows: list[tuple[float, float, int, PassLoad]] = []

    def send(self, now: float, requests: Iterable[int]) -> None:
        """Note that a batch leaves the scheduler."""
        for request in requests:
            self.sent[request] += 1
            if self.sent[request] == 1:
                self.dispatched[request] = now

    def start(self, now: float, g: int, seconds: float, load: PassLoad, requests: Iterable[int]) -> None:
        """Note that a pass starts.

        Parameters
        ----------
        now, g, seconds
            When, where, and how long it will take, s.
        load, requests
            What it computes, and of whom.
        """
        self.rows.append((now, now + seconds, g, load))
        for request in requests:
            self.passes[request] += 1
            if np.isnan(self.began[request]):
                self.began[request] = now

    def end(self, engine: Engine, g: int) -> None:
        """Note who is done with the pass that ends."""
        for work, tokens in engine.running or ():
            if tokens == work.tokens:
                self.instance[work.request], self.unit[work.request] = g, work.unit
