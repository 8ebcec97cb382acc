"""An instance that prefills in gated passes and carries over what a pass has no room for. The truth, not the view.

When a pass starts the engine takes the oldest tokens it has, up to its chunk; what arrives during the pass waits. With
a backlog the next pass starts by itself, at once: a batch that comes in answer to the end of a pass waits one pass
more on the device (`late_top_ups`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

#: Missing batches that are named.
REMEMBERED = 64


@dataclass(slots=True)
class Work:
    """What is left of one request on the device."""

    seq: int
    request: int
    tokens: int


@dataclass(slots=True)
class Engine:
    """Changed in place by the world.

    Parameters
    ----------
    chunk
        Most tokens of a pass.
    epoch
        One more after every restart.
    life
        One more whenever it lost its memory: passes and connections of before are void.
    newest
        The newest batch received, or that need not be received any more; older ones are not taken.
    missing
        Batches that never came although newer ones did, the last few.
    """

    chunk: int
    epoch: int = 1
    life: int = 0
    up: bool = True
    work: list[Work] = field(default_factory=list)
    newest: int = 0
    fence: int = 0
    missing: tuple[int, ...] = ()
    passes: int = 0
    running: list[tuple[Work, int]] | None = None
    pass_seq: int = 0
    late_top_ups: int = 0
    done: Counter[int] = field(default_factory=Counter)

    @property
    def oldest(self) -> int:
        """The oldest batch of which something is left."""
        return min((work.seq for work in self.work), default=self.newest + 1)

    def receive(self, seq: int, fence: int, epoch: int, requests: list[tuple[int, int]]) -> bool:
        """Take a batch, unless it is a duplicate, overtaken or void; returns False if it is for another epoch.

        Parameters
        ----------
        seq, fence, epoch
            See `Send`.
        requests
            (request, tokens) of each.
        """
        if epoch not in (0, self.epoch):
            return False
        if fence > self.fence:
            self.fence = fence
            taken = {id(work) for work, _ in self.running or ()}
            # What is in the running pass is worth its end: the first answer counts, whoever gives it.
            self.work = [work for work in self.work if work.seq > fence or id(work) in taken]
        known = max(self.newest, self.fence)
        if seq <= known:
            return True
        self.missing = (*self.missing, *range(known + 1, seq))[-REMEMBERED:]
        self.newest = seq
        self.late_top_ups += self.running is not None
        self.work += [Work(seq, request, tokens) for request, tokens in requests]
        return True

    def start(self) -> int | None:
        """Start a pass if there is work and none runs; returns its tokens."""
        if self.running is not None or not self.work:
            return None
        room, taken = self.chunk, []
        for work in self.work:
            if room <= 0:
                break
            taken.append((work, min(room, work.tokens)))
            room -= taken[-1][1]
        self.running, self.pass_seq = taken, self.newest
        self.passes += 1
        return self.chunk - room

    def end(self) -> list[Work]:
        """End the running pass; returns the requests that are done with it."""
        assert self.running is not None
        for work, tokens in self.running:
            work.tokens -= tokens
        self.running = None
        finished = [work for work in self.work if work.tokens == 0]
        self.work = [work for work in self.work if work.tokens > 0]
        self.done.update(work.request for work in finished)
        return finished

    def remaining(self) -> int:
        """Return the backlog, tokens."""
        return sum(work.tokens for work in self.work)

    def crash(self) -> None:
        """Stop, and forget everything; batches on their way to it are gone too."""
        self.up = False
        self.forget()
        self.epoch += 1

    def forget(self) -> None:
        """Forget everything, and go on under the same epoch."""
        self.work, self.running, self.fence, self.newest, self.missing = [], None, 0, 0, ()
        self.pass_seq = 0
        self.life += 1
