"""The first hop where prefill and decode are apart: a probe of one token, after which the prefiller keeps the blocks.

A prompt goes to the prefiller with most of its cache free among those that take more; where none does, it waits here in
order of arrival, which is the back-pressure on prefill. The prefiller's answer brings the true prompt tokens and what
the decode engine needs to pull the blocks. The blocks are held until the first chunk of the decode engine.

Source: BalanceRoute (arXiv 2605.06113), section 5 (prefill dispatcher, prefill probe).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from lbopt.serving.http_client import request_head
from lbopt.serving.router.answer_fields import read_answer
from lbopt.serving.router.answers import over_budget, refuse
from lbopt.serving.router.breaker import Breaker, Rest, delay
from lbopt.serving.router.budget import OverBudgetError
from lbopt.serving.router.connectors import Connector, make_connector
from lbopt.serving.router.fleet_file import PrefillerPlan
from lbopt.serving.router.forward import OF_REQUEST, headers_for_client
from lbopt.serving.router.job import Job, Stop
from lbopt.serving.router.scrape import of_rank
from lbopt.serving.state import Prefiller
from lbopt.serving.usage import usage_of

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router

_LARGEST_ANSWER = 16 * 2**20


class PrefillHop:
    """Sends prompts to prefill instances."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._plans: dict[Prefiller, PrefillerPlan] = {}
        self._connectors: dict[Prefiller, Connector] = {}
        self._breakers: dict[Prefiller, Breaker] = {}
        self._rests: dict[Prefiller, Rest] = {}
        self._by_model: dict[str, list[Prefiller]] = {}
        for plan in router.plan.prefillers:
            prefiller = router.fleet.add_prefiller(plan.name, plan.threshold, plan.most)
            self._plans[prefiller] = plan
            self._connectors[prefiller] = make_connector(plan.connector)
            self._breakers[prefiller] = Breaker(router.options.failures)
            self._rests[prefiller] = Rest(router.options.retry_seconds, router.options.retry_cap)
            self._by_model.setdefault(plan.model, []).append(prefiller)
        self._turns: dict[str, asyncio.Lock] = {model: asyncio.Lock() for model in self._by_model}
        self._room = asyncio.Event()

    @property
    def models(self) -> frozenset[str]:
        """The models whose prompts have a hop of their own."""
        return frozenset(self._by_model)

    async def read_budgets(self) -> None:
        """Read the share of each prefiller's cache; what cannot be read counts as full."""

        async def read(prefiller: Prefiller, plan: PrefillerPlan) -> None:
            readings = await self._router.poller.readings(plan.url)
            share = None if readings is None else of_rank(readings, None).share
            prefiller.read(share)
            breaker = self._breakers[prefiller]
            if readings is None:
                breaker.fail(self._router.now())
            else:
                breaker.succeed()
                prefiller.is_open = True

        await asyncio.gather(*(read(prefiller, plan) for prefiller, plan in self._plans.items()))
        self._room.set()

    async def run(self, job: Job) -> web.StreamResponse | None:
        """Have the prompt of a job computed, and put it into the pool; an answer where it is refused."""
        router, tracker = self._router, job.tracker
        model = tracker.pool.model
        tried: list[Prefiller] = []
        while True:
            async with self._turns[model]:  # whoever came first is next
                while (prefiller := self._choose(model, tried)) is None:
                    self._room.clear()
                    await self._wait_for_room()
                router.fleet.prefilling(tracker, prefiller)
            try:
                refused, why = await self._probe(job, prefiller)
            except BaseException:
                if job.reason is Stop.PREFILLER:
                    self._note_fault(prefiller)
                router.fleet.prefill_failed(tracker)
                self._room.set()
                raise
            if why is None:
                if refused is None:
                    self._taken(model, prefiller, tried)
                return refused
            router.fleet.prefill_failed(tracker)
            self._room.set()
            tried.append(prefiller)
            has_untried = self._finds_untried(model, tried)
            if refused is not None and (not has_untried or (refused.status in OF_REQUEST and len(tried) > 1)):
                return refused
            if len(tried) > router.options.retries:
                return refuse(502, why, "upstream_error")
            router.metrics.retries += 1
            if not has_untried:
                await asyncio.sleep(delay(len(tried), router.options.retry_seconds, router.options.retry_cap))

    def _finds_untried(self, model: str, tried: list[Prefiller]) -> bool:
        """Return whether a prefiller takes more that has not refused this one; where none does, who rests is woken."""
        untried = [prefiller for prefiller in self._by_model[model] if prefiller not in tried]
        if not any(prefiller.takes_more for prefiller in untried):
            for prefiller in untried:
                self._rested(prefiller)
        return any(prefiller.takes_more for prefiller in untried)

    def _taken(self, model: str, taker: Prefiller, refusers: list[Prefiller]) -> None:
        """Note that a prefiller took a prompt: those that refused it before are to blame, and rest."""
        self._rests[taker].end()
        for prefiller in set(refusers) - {taker}:
            if any(other.is_open and not other.is_resting for other in self._by_model[model] if other is not prefiller):
                prefiller.is_resting = True
                seconds = self._rests[prefiller].refuse(0.0)
                asyncio.get_running_loop().call_later(seconds, self._rested, prefiller)

    def _rested(self, prefiller: Prefiller) -> None:
        prefiller.is_resting = False
        self._room.set()

    def _note_fault(self, prefiller: Prefiller) -> None:
        """Note that a prefiller gave no answer; after some in a row it gets no prompt until its metrics are read."""
        breaker = self._breakers[prefiller]
        breaker.fail(self._router.now())
        prefiller.is_open = not breaker.is_open(-1.0)

    async def _wait_for_room(self) -> None:
        """Wait until something may have changed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._room.wait(), 0.05)  # blocks are given back without telling anybody here

    def _choose(self, model: str, tried: list[Prefiller]) -> Prefiller | None:
        """Return the emptiest prefiller that takes more, one that has not failed at this prompt before others."""
        able = [prefiller for prefiller in self._by_model[model] if prefiller.takes_more]
        return min(able, key=lambda p: (tried.count(p), len(p.holders), p.share), default=None)

    async def _probe(self, job: Job, prefiller: Prefiller) -> tuple[web.StreamResponse | None, str | None]:
        """Send the probe; returns an answer of the engine that refuses the request, and why another try is needed."""
        router, plan, connector = self._router, self._plans[prefiller], self._connectors[prefiller]
        body: dict[str, Any] = dict(job.ask.data)
        body.pop("stream_options", None)
        body |= {"stream": False, "max_tokens": 1, "kv_transfer_params": connector.probe()}
        if "max_completion_tokens" in body:
            body["max_completion_tokens"] = 1
        connector.prepare(body)
        data = msgspec.json.encode(body)
        if not any(name.lower() == "x-request-id" for name in job.headers):
            job.headers["X-Request-Id"] = job.key  # both hops name the request alike
        request = request_head(plan.url, job.path, job.headers, len(data))
        hold = None if job.share is None else job.share.take
        try:
            head, text = await router.wires.fetch(
                plan.url, request, data, seconds=router.options.idle_seconds, most=_LARGEST_ANSWER, hold=hold
            )
        except OverBudgetError:
            router.metrics.refused["held_bytes"] += 1
            return over_budget(), None
        except OSError as fault:
            self._note_fault(prefiller)
            return None, f"prefiller {prefiller.name} gave no answer: {type(fault).__name__}"
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
        router.fleet.prefilled(job.tracker, router.now(), prompt=known, blocks=connector.blocks(handoff))
        return None, None
