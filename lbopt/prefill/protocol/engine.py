"""An instance that prefills in gated passes and carries over what a pass has no room for. The truth, not the view.

When a pass starts the engine takes the oldest tokens it has, up to its chunk; what arrives during the pass waits. With
a backlog the next pass starts by itself, at once: a batch that comes in answer to the end of a pass waits one pass
more on the device (`late_top_ups`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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
    incarnation
        How often it crashed: connections to an earlier one are broken.
    """

    chunk: int
    incarnation: int = 0
    up: bool = True
    work: list[Work] = field(default_factory=list)
    received: set[int] = field(default_factory=set)
    fence: int = 0
    passes: int = 0
    running: list[tuple[Work, int]] | None = None
    pass_seq: int = 0
    late_top_ups: int = 0
    done: Counter[int] = field(default_factory=Counter)

    @property
    def newest(self) -> int:
        """The newest batch received, 0 = none."""
        return max(self.received, default=0)

    def receive(self, seq: int, fence: int, requests: list[tuple[int, int]]) -> None:
        """Take a batch of (request, tokens); a duplicate or a void one comes to nothing."""
        self.fence = max(self.fence, fence)
        taken = {id(work) for work, _ in self.running or ()}
        # What is in the running pass ends with it; its first token has no holder any more.
        self.work = [work for work in self.work if work.seq > self.fence or id(work) in taken]
        if seq <= self.fence or seq in self.received:
            return
        self.received.add(seq)
        self.late_top_ups += self.running is not None
        self.work += [Work(seq, request, tokens) for request, tokens in requests]

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
        """Forget everything; batches on their way to it are gone too."""
        self.up, self.work, self.running, self.fence = False, [], None, 0
        self.received = set()
        self.incarnation += 1
