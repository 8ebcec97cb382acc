"""An engine as an HTTP service, a worker or a prefiller: its address, what it said, and when it gets no requests.

*Down*: failures in a row, and nothing heard from it meanwhile. *Rest*: an engine refused a request, and another one
took it. Only then is the engine to blame and not the request, so a client cannot send engines to rest by what it asks.
An engine that refuses holds nothing and looks idle, so without a rest every rule would choose it again and again. What
it runs goes on meanwhile. So rests one that broke off a stream, longer each time until it answers one in full.

Each address is asked once a period for `/health` and `/metrics`, and at once when it answered 500, 502 or 503: the HTTP
server of an engine outlives the engine, and its metrics go on. So its health says whether the engine is to blame or the
request. Metrics reconcile and never decide. A metric that cannot be read says nothing about a worker, and makes a
prefiller count as full.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import InitVar, dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from lbopt.serving.http_client import Wires, request_head
from lbopt.serving.process import repeat
from lbopt.serving.router.ask import parsed
from lbopt.serving.router.fleet_file import WorkerAddress
from lbopt.serving.router.job import Job
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.scrape import LARGEST_SCRAPE, Reading, count_of, of_rank, read_metrics
from lbopt.serving.state import Engine, Health, Prefiller, WorkerMirror

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router

_log = logging.getLogger(__name__)


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
    num_missed: int = 0  # tokens that events did not tell
    retired: bool = False  # an operator drains or removes it: an answer to a look at its health changes nothing

    def __post_init__(self, options: RouterOptions) -> None:
        self.breaker = Breaker(options.failures)
        self.rest = Rest(options.retry_seconds, options.retry_cap)
        self.mirror.payload = self

    @property
    def called(self) -> str:
        """What log lines and errors call it."""
        return f"{'prefiller' if isinstance(self.mirror, Prefiller) else 'worker'} {self.address.name}"

    def note_missed(self, missed: int, made: int) -> None:
        """Note tokens that were not counted while a stream ran, and tell of the first."""
        if not self.num_missed:
            message = (
                "%s joins tokens: %d of %d were counted only at the end of a stream, which was not asked for usage"
            )
            _log.warning(message, self.called, missed, made)
        self.num_missed += missed

    def headers(self) -> dict[str, str]:
        """Return the headers that name its rank."""
        rank = self.address.rank
        return {} if rank is None else {"X-Data-Parallel-Rank": str(rank)}


class Breaker:
    """Counts the failures of one engine.

    A failure is a connection that cannot be made or breaks before an answer, or a look at its health without a good
    answer. A good answer closes the breaker, to a request or to a look at its health, and so does a chunk of a running
    stream: an engine that is too busy for a look at its health but streams is not down.

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


#: Seconds that an unused connection to an engine is kept: less than uvicorn keeps it, which is 5.
KEPT = 4.0
#: Bytes of metrics above which they are read beside the event loop.
_LARGE = 2**16


#: What names of vLLM's metrics begin with.
_OF_VLLM = b"vllm:"


class _Tokenized(msgspec.Struct, gc=False):
    """What is read of an answer of `/tokenize`, which may list a million tokens."""

    count: int


_read_count = msgspec.json.Decoder(_Tokenized).decode


class Poller:
    """Looks at every engine now and then."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._wires = Wires(KEPT, router.options.connect_seconds)  # not those of requests, which tell of faults
        self.of_vllm: set[str] = set()  # addresses with vLLM's metrics
        self._looks: dict[str, asyncio.Task[None]] = {}  # those out of turn, by address

    async def run(self) -> None:
        """Look, again and again."""
        await repeat(self.look_at_all, self._router.options.poll_seconds, "engines")

    def close(self) -> None:
        """Close what is open to engines."""
        for look in list(self._looks.values()):
            look.cancel()
        self._wires.close()

    def suspect(self, endpoint: Endpoint) -> None:
        """Look at an engine at once: it failed a request, and may be dead."""
        url = endpoint.address.url
        if url not in self._looks:
            alike = [other for other in self._router.engines if other.address.url == url]
            look = self._looks[url] = asyncio.get_running_loop().create_task(self._look(url, alike))
            look.add_done_callback(lambda _: self._looks.pop(url))

    async def look_at_all(self) -> None:
        """Look at every address once, all at the same time."""
        router = self._router
        by_url: dict[str, list[Endpoint]] = {}
        for worker, endpoint in list(router.endpoints.items()):
            if endpoint.retired and worker.bound == 0 and worker not in worker.group.workers:
                del router.endpoints[worker]  # it was removed, and has ended what it had
        for endpoint in router.engines:
            if endpoint.address.url:
                by_url.setdefault(endpoint.address.url, []).append(endpoint)
            else:
                self._note(endpoint, {})  # its gateway says whether it is there
        await asyncio.gather(*(self._look(url, endpoints) for url, endpoints in by_url.items()))
        if router.prefill is not None:
            router.prefill.room.set()

    async def _look(self, url: str, endpoints: list[Endpoint]) -> None:
        readings = await self.readings(url)
        for endpoint in endpoints:
            self._note(endpoint, readings)

    def _note(self, endpoint: Endpoint, readings: dict[int | None, Reading] | None) -> None:
        """Note what an engine said, or that it gave no answer."""
        router, mirror = self._router, endpoint.mirror
        if readings is None:
            endpoint.breaker.fail(router.now())
            if endpoint.breaker.is_open(endpoint.last_heard) and mirror.health is not Health.DOWN:
                router.down(endpoint)
        else:
            endpoint.breaker.succeed()
            if mirror.health is Health.DOWN and not endpoint.retired:
                router.up(endpoint)
        reading = of_rank(readings or {}, endpoint.address.rank)
        if isinstance(mirror, Prefiller):
            mirror.read(reading.share)
        elif readings is not None:
            _reconcile(endpoint, mirror, reading, router.now())

    async def readings(self, url: str) -> dict[int | None, Reading] | None:
        """Return what an engine's metrics say; None where it gives no answer, or is not well."""
        try:
            status, _ = await self._get(url, "/health")
            if status >= 500:
                return None
            status, data = await self._get(url, "/metrics")
        except OSError:
            return None
        if status != 200:
            return {}
        if _OF_VLLM in data:
            self.of_vllm.add(url)
        return await asyncio.to_thread(read_metrics, data) if len(data) > _LARGE else read_metrics(data)

    async def _get(self, url: str, path: str) -> tuple[int, bytes]:
        options = self._router.options
        request = request_head(url, path, {}, 0, "GET")
        head, data = await self._wires.fetch(url, request, seconds=options.poll_timeout, most=LARGEST_SCRAPE)
        return head.status, data

    async def card(self, model: str) -> dict[str, Any] | None:
        """Return how an engine describes a model in its list of models; None where none does."""
        try:
            status, data = await self._get(self._router.addressed(model)[0].address.url, "/v1/models")
            cards = parsed(data)["data"] if status == 200 else []
            return next((card for card in cards if card["id"] == model), None)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    async def tokenize(self, job: Job) -> int | None:
        """Ask an engine of the job's model for the tokens of its prompt; None where none can say."""
        router = self._router
        up = [
            endpoint
            for worker, endpoint in router.endpoints.items()
            if worker.is_open and worker.group.pool is job.tracker.pool
        ]
        if not up:
            return None
        endpoint = up[job.tracker.number % len(up)]
        seconds = min(0.5, router.options.poll_timeout)
        request = request_head(endpoint.address.url, "/tokenize", job.headers | endpoint.headers(), len(job.body))
        try:
            head, data = await self._wires.fetch(
                endpoint.address.url, request, job.body, seconds=seconds, most=LARGEST_SCRAPE
            )
            return count_of(_read_count(data).count) or None if head.status == 200 else None
        except (OSError, msgspec.DecodeError, RecursionError):
            return None


def _reconcile(endpoint: Endpoint, mirror: WorkerMirror, reading: Reading, now: float) -> None:
    """Note by how much the mirror of a worker differs from what the engine says."""
    if reading.running is not None:
        endpoint.read_at = now
        endpoint.drift_requests = reading.running + (reading.waiting or 0) - mirror.bound
    if reading.share is not None and endpoint.kv_capacity is not None:
        endpoint.drift_tokens = round(reading.share * endpoint.kv_capacity) - mirror.load
