"""The first hop where prefill and decode are apart: a probe of one token, after which the prefiller keeps the blocks.

A prompt goes to the prefiller with most of its cache free among those that take more; where none does, it waits here in
order of arrival, which is the back-pressure on prefill. The prefiller's answer brings the true prompt tokens and what
the decode engine needs to pull the blocks. The blocks are held until the first chunk of the decode engine.

A connector says how a prefill engine hands a KV cache over to a decode engine: one class each, and a line in
`CONNECTORS`.

Source: BalanceRoute (arXiv 2605.06113), section 5 (prefill dispatcher, prefill probe).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from aiohttp import web

from lbopt.serving.http_client import request_head
from lbopt.serving.router.ask import read_answer, refuse
from lbopt.serving.router.clients import OverBudgetError
from lbopt.serving.router.endpoint import Endpoint, delay
from lbopt.serving.router.fleet_file import WorkerAddress
from lbopt.serving.router.forward import OF_ENGINE, OF_REQUEST, headers_for_client
from lbopt.serving.router.job import Job, Stop
from lbopt.serving.scrape import usage_of
from lbopt.serving.state import Prefiller
from lbopt.spec import unknown

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router

_LARGEST_ANSWER = 16 * 2**20


class PrefillHop:
    """Sends prompts to prefill instances."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._connectors: dict[Prefiller, Connector] = {}
        self._by_model: dict[str, list[Prefiller]] = {}
        for plan in router.plan.prefillers:
            prefiller = router.fleet.add_prefiller(plan.name, plan.threshold, plan.most, model=plan.model)
            Endpoint(WorkerAddress(plan.name, plan.url), prefiller, router.options)
            self._connectors[prefiller] = make_connector(plan.connector)
            self._by_model[plan.model] = prefiller.peers
        self._turns: dict[str, asyncio.Lock] = {model: asyncio.Lock() for model in self._by_model}
        self.room = asyncio.Event()

    @property
    def models(self) -> frozenset[str]:
        """The models whose prompts have a hop of their own."""
        return frozenset(self._by_model)

    @property
    def endpoints(self) -> list[Endpoint]:
        """The prefillers as services."""
        return [prefiller.payload for prefiller in self._connectors]

    async def run(self, job: Job) -> web.StreamResponse | None:
        """Have the prompt of a job computed, and put it into the pool; an answer where it is refused."""
        router, tracker = self._router, job.tracker
        model = tracker.pool.model
        tried: Counter[Prefiller] = Counter()
        while True:
            async with self._turns[model]:  # who came first is next
                while (prefiller := self._choose(model, tried)) is None:
                    self.room.clear()
                    await self._wait_for_room()
                router.fleet.prefilling(tracker, prefiller)
            try:
                refused, why = await self._probe(job, prefiller)
            except BaseException:
                if job.reason is Stop.PREFILLER:
                    router.note_fault(prefiller.payload)
                router.fleet.prefill_failed(tracker)
                self.room.set()
                raise
            if why is None:
                if refused is None:
                    prefiller.payload.rest.end()
                    router.taken(prefiller.payload, dict.fromkeys(tried, 0.0))
                return refused
            router.fleet.prefill_failed(tracker)
            self.room.set()
            tried[prefiller] += 1
            has_untried = router.finds_more(prefiller.peers, tried)
            if refused is not None and (not has_untried or (refused.status in OF_REQUEST and tried.total() > 1)):
                return refused
            if tried.total() > router.options.retries:
                return refuse(502, why)
            router.metrics.retries += 1
            if not has_untried:
                await asyncio.sleep(delay(tried.total(), router.options.retry_seconds, router.options.retry_cap))

    async def _wait_for_room(self) -> None:
        """Wait until something may have changed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.room.wait(), 0.05)  # blocks are given back without a word to the router

    def _choose(self, model: str, tried: Counter[Prefiller]) -> Prefiller | None:
        """Return the emptiest prefiller that takes more, one that has not failed at this prompt before others."""
        able = [prefiller for prefiller in self._by_model[model] if prefiller.takes_more]
        return min(able, key=lambda p: (tried[p], len(p.holders), p.share), default=None)

    async def _probe(self, job: Job, prefiller: Prefiller) -> tuple[web.StreamResponse | None, str | None]:
        """Send the probe; returns an answer of the engine that refuses the request, and why another try is needed."""
        router, connector, url = self._router, self._connectors[prefiller], prefiller.payload.address.url
        body: dict[str, Any] = dict(job.ask.data)
        body.pop("stream_options", None)
        body |= {"stream": False, "max_tokens": 1, "kv_transfer_params": connector.probe()}
        if "max_completion_tokens" in body:
            body["max_completion_tokens"] = 1
        connector.prepare(body)
        data = msgspec.json.encode(body)
        if not any(name.lower() == "x-request-id" for name in job.headers):
            job.headers["X-Request-Id"] = job.key  # both hops name the request alike
        request = request_head(url, job.path, job.headers, len(data))
        hold = None if job.share is None else job.share.take
        try:
            head, text = await router.wires.fetch(
                url, request, data, seconds=router.options.idle_seconds, most=_LARGEST_ANSWER, hold=hold
            )
        except OverBudgetError:
            return router.over_budget(), None
        except OSError as fault:
            router.note_fault(prefiller.payload)
            return None, f"prefiller {prefiller.name} gave no answer: {type(fault).__name__}"
        if head.status in OF_ENGINE:
            router.poller.suspect(prefiller.payload)
        if head.status >= 500 or head.status == 429:
            return None, f"prefiller {prefiller.name} answered {head.status}"
        if head.status != 200:
            refused = web.Response(status=head.status, body=text, headers=headers_for_client(head.headers))
            return refused, f"prefiller {prefiller.name} answered {head.status}"
        try:
            told = read_answer(text)
            prompt = usage_of(told).prompt
            handoff = connector.handoff(told)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None, f"prefiller {prefiller.name} sent an answer that cannot be read"
        if handoff is None:
            return None, f"prefiller {prefiller.name} handed nothing over: its answer has no kv_transfer_params"
        known = prompt or None
        if known is not None:
            router.counted(job, known)
        if handoff:
            job.extra["kv_transfer_params"] = handoff
        held = None if known is None else known * job.ask.choices
        router.fleet.prefilled(job.tracker, router.now(), prompt=held, blocks=connector.blocks(handoff))
        return None, None


_PROBE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


class Mooncake:
    """Mooncake's connector, as vllm-ascend has it: the prefiller keeps the blocks, and the decode engine pulls them.

    The probe says ``do_remote_decode``; the prefiller answers with its id, its blocks and its address, which the decode
    engine gets as they are. Source: BalanceRoute (arXiv 2605.06113), section 5; vllm-ascend's prefill/decode proxy.
    """

    def probe(self) -> dict[str, Any]:
        """Return the `kv_transfer_params` of the request to the prefiller."""
        return dict(_PROBE)

    def prepare(self, body: dict[str, Any]) -> None:
        """Insist on the one token, as vllm-ascend's proxy does."""
        body["min_tokens"] = 1

    def handoff(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` for the decode engine; None where the prefiller gave none."""
        parameters = answer.get("kv_transfer_params")
        return parameters if isinstance(parameters, dict) and parameters else None

    def blocks(self, handoff: dict[str, Any]) -> int:
        """Return the blocks that the request holds at the prefiller; lists of several cache groups are added up."""
        found = handoff.get("remote_block_ids")
        if not isinstance(found, list):
            return 0
        return sum(len(part) if isinstance(part, list) else 1 for part in found)


_NOT_FOR_PREFILL = ("min_tokens", "min_completion_tokens")


class Nixl(Mooncake):
    """NIXL's connector, as vLLM has it: the prefiller keeps the blocks, and the decode engine pulls them.

    The probe and the answer have the fields of Mooncake's connector. Two things differ: a prefiller takes no
    `min_tokens`, and where it has nothing to hand over, because the prompt ended with its first token, say, the
    decode engine computes the prompt itself.

    A prefiller frees blocks that are not pulled by a limit of its own (`VLLM_NIXL_ABORT_REQUEST_TIMEOUT`): the longest
    wait in the pool, `ttl`, has to be shorter.

    Source: vLLM's documentation, *NixlConnector Usage Guide*; the proxy of its own tests,
    `tests/v1/kv_connector/nixl_integration/toy_proxy_server.py`.
    """

    def prepare(self, body: dict[str, Any]) -> None:
        """Leave out what a prefiller does not take."""
        for name in _NOT_FOR_PREFILL:
            body.pop(name, None)

    def handoff(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` for the decode engine; none where it is to compute the prompt itself."""
        return super().handoff(answer) or {}


class Connector(Protocol):
    """What the two hops of one request say to each other."""

    def probe(self) -> dict[str, Any]:
        """Return the `kv_transfer_params` of the request to the prefiller."""

    def prepare(self, body: dict[str, Any]) -> None:
        """Change the body of the request to the prefiller, which asks for one token already."""

    def handoff(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` for the decode engine, from the prefiller's answer.

        None = it gave none, and another attempt is to be made; {} = the decode engine computes the prompt itself.
        """

    def blocks(self, handoff: dict[str, Any]) -> int:
        """Return the blocks that the request holds at the prefiller."""


CONNECTORS: dict[str, Callable[[], Connector]] = {"mooncake": Mooncake, "nixl": Nixl}


def make_connector(name: str) -> Connector:
    """Return the connector of a name."""
    if name not in CONNECTORS:
        raise unknown("connector", name, CONNECTORS)
    return CONNECTORS[name]()
