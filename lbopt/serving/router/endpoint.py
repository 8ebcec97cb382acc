"""An engine as an HTTP service, a worker or a prefiller: its address, what it said, and when it gets no requests.

*Down*: failures in a row, and nothing heard from it meanwhile. *Rest*: an engine refused a request, and another one
took it. Only then is the engine to blame and not the request, so a client cannot send engines to rest by what it asks.
An engine that refuses holds nothing and looks idle, so without a rest every rule would choose it again and again. What
it runs goes on meanwhile. So rests one that broke off a stream, longer each time until it answers one in full.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from email.utils import parsedate_to_datetime

from lbopt.serving.router.fleet_file import WorkerAddress
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.state import Engine, Prefiller


@dataclass(slots=True, eq=False, repr=False)
class Endpoint:
    """One engine.

    Parameters
    ----------
    address
        Where it is.
    mirror
        What the router knows of its load.
    options
        Of the operator.
    kv_capacity
        Tokens that it can hold; None where that is not known.
    """

    address: WorkerAddress
    mirror: Engine
    options: InitVar[RouterOptions]
    kv_capacity: int | None = None
    breaker: Breaker = field(init=False)
    rest: Rest = field(init=False)
    last_heard: float = -1.0
    read_at: float = -1.0
    drift_requests: int = 0
    drift_tokens: int | None = None
    retired: bool = False  # an operator drains or removes it: an answer to a look at its health changes nothing

    def __post_init__(self, options: RouterOptions) -> None:
        self.breaker = Breaker(options.failures)
        self.rest = Rest(options.retry_seconds, options.retry_cap)
        self.mirror.payload = self

    @property
    def called(self) -> str:
        """What log lines and errors call it."""
        return f"{'prefiller' if isinstance(self.mirror, Prefiller) else 'worker'} {self.address.name}"

    def headers(self) -> dict[str, str]:
        """Return the headers that name its rank."""
        rank = self.address.rank
        return {} if rank is None else {"X-Data-Parallel-Rank": str(rank)}


class Breaker:
    """Counts the failures of one engine.

    A failure is a connection that cannot be made or breaks before an answer, or a look at its health without an
    answer. Any answer closes the breaker, and so does a chunk of a running stream: an engine that is too busy for a
    look at its health but streams is not down.

    Parameters
    ----------
    failures
        In a row, after which the engine counts as down.
    """

    __slots__ = ("count", "failures", "since")

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.count = 0
        self.since = 0.0

    def fail(self, at: float) -> None:
        """Note a failure."""
        if self.count == 0:
            self.since = at
        self.count += 1

    def succeed(self) -> None:
        """Note an answer."""
        self.count = 0

    def is_open(self, last_heard: float) -> bool:
        """Return whether the engine counts as down; `last_heard` is the time of its last chunk."""
        return self.count >= self.failures and last_heard <= self.since


class Rest:
    """How long an engine rests: longer after each refusal in a row.

    Parameters
    ----------
    base, cap
        Seconds of the first rest, and the most that refusals add up to.
    """

    __slots__ = ("_base", "_cap", "refusals")

    #: The longest rest that an engine may ask for, s.
    LONGEST = 60.0

    def __init__(self, base: float, cap: float) -> None:
        self._base = base
        self._cap = cap
        self.refusals = 0

    def refuse(self, asked: float) -> float:
        """Note a refusal with a Retry-After of `asked` seconds, 0 = none; return the seconds to rest."""
        self.refusals += 1
        return max(delay(self.refusals, self._base, self._cap), min(asked, self.LONGEST))

    def end(self) -> None:
        """Note that the engine answered a request in full."""
        self.refusals = 0


def asked_rest(text: str, date: str) -> float:
    """Return the seconds that a Retry-After asks for, 0 where it is none; one that is a moment counts from `date`."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(date)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def delay(attempt: int, base: float, cap: float) -> float:
    """Return the seconds before retry number `attempt`, from 1: `base`, doubled each time, at most `cap`."""
    return float(min(cap, base * 2.0 ** min(attempt - 1, 64)))
