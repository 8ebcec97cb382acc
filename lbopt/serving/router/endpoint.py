"""An engine's side of a worker: its address, when it was last heard, and what its metrics said."""

from __future__ import annotations

from lbopt.serving.router.breaker import Breaker, Rest
from lbopt.serving.router.fleet_file import WorkerAddress
from lbopt.serving.state import WorkerMirror


class Endpoint:
    """One worker as an HTTP service.

    Parameters
    ----------
    address
        Where it is.
    mirror
        Its books.
    breaker, rest
        When it counts as down, and how long it rests.
    kv_capacity
        Tokens that it can hold; None where nobody knows.
    """

    __slots__ = (
        "address",
        "breaker",
        "drift_requests",
        "drift_tokens",
        "kv_capacity",
        "last_heard",
        "mirror",
        "read_at",
        "rest",
        "retired",
    )

    def __init__(
        self, address: WorkerAddress, mirror: WorkerMirror, breaker: Breaker, rest: Rest, kv_capacity: int | None
    ) -> None:
        self.address = address
        self.mirror = mirror
        self.breaker = breaker
        self.rest = rest
        self.kv_capacity = kv_capacity
        self.last_heard = -1.0
        self.read_at = -1.0
        self.drift_requests = 0
        self.drift_tokens: int | None = None
        self.retired = False  # an operator drains or removes it: an answer to a look at its health changes nothing

    def headers(self) -> dict[str, str]:
        """Return the headers that name its rank."""
        rank = self.address.rank
        return {} if rank is None else {"X-Data-Parallel-Rank": str(rank)}
