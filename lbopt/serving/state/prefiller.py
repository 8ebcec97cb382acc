"""A prefill instance and its budget: the share of its KV cache in use, and the blocks that the router's requests hold.

The share comes from the instance's metrics. One that cannot be read counts as full, so that such an instance gets
nothing. The blocks of a prompt stay at the prefiller until the decode worker has pulled them, of which the first chunk
is the proof; they are given back in every other ending, too.
Source: BalanceRoute (arXiv 2605.06113), section 5 (`PrefillerBudget`).
"""

from __future__ import annotations

from typing import Any

from lbopt.serving.state.request import RequestTracker
from lbopt.serving.state.worker import Health, WorkerMirror

#: Share of the cache above which no new prompt is sent, where the fleet file does not say otherwise.
DEFAULT_THRESHOLD = 0.9


class Prefiller:
    """One prefill instance.

    Parameters
    ----------
    name
        What lists and metrics call it.
    threshold
        Share of its cache above which it gets no new prompt.
    most
        Requests that may hold blocks there at once; None = any number.
    peers
        The instances of its model, which it joins; None = it is alone.
    """

    __slots__ = ("blocks", "health", "holders", "most", "name", "payload", "peers", "share", "threshold")

    def __init__(
        self,
        name: str,
        threshold: float = DEFAULT_THRESHOLD,
        most: int | None = None,
        peers: list[Prefiller] | None = None,
    ) -> None:
        self.name = name
        self.threshold = threshold
        self.most = most
        self.share = 1.0  # nobody has read its metrics yet
        self.health = Health.UP
        self.peers = [] if peers is None else peers
        self.peers.append(self)
        self.holders: dict[int, RequestTracker] = {}
        self.blocks = 0
        self.payload: Any = None  # how it is reached; nothing here reads it

    def read(self, share: float | None) -> None:
        """Take in the share of the cache in use, 0 to 1; None where it could not be read."""
        self.share = share if share is not None and 0 <= share <= 1 else 1.0

    @property
    def is_open(self) -> bool:
        """Whether it takes prompts while it has room."""
        return self.health is Health.UP

    @property
    def takes_more(self) -> bool:
        """Whether a new prompt may be sent."""
        return self.is_open and self.share < self.threshold and (self.most is None or len(self.holders) < self.most)

    def hold(self, tracker: RequestTracker, blocks: int) -> None:
        """Let a request hold blocks here."""
        tracker.prefiller, tracker.blocks = self, blocks
        self.holders[tracker.number] = tracker
        self.blocks += blocks

    def give_back(self, tracker: RequestTracker) -> None:
        """Take back the blocks of a request."""
        del self.holders[tracker.number]
        self.blocks -= tracker.blocks
        tracker.prefiller, tracker.blocks = None, 0


#: What can be asked: it is up, rests, drains or is down.
Engine = WorkerMirror | Prefiller
