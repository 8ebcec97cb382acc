"""Endpoints of prefill instances and of decode workers.

An endpoint of a prefill instance: it answers with one token, and says where the blocks of the prompt lie.

A router sends the client's request with `max_tokens` 1, without a stream, and `kv_transfer_params` whose
`do_remote_decode` is true. The answer's `kv_transfer_params` are to be sent along to a decode worker, as with vLLM's
NIXL connector and vllm-ascend's Mooncake connector.

An endpoint of one or more decode workers, which are its ranks.

A request goes to the rank that the header `X-Data-Parallel-Rank` names. Without it the endpoint chooses as vLLM did
before mid-2026: least 4 * waiting + running, the lowest rank among equals. An endpoint of one rank ignores the header,
since it speaks of another process then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.serving.mock.answers import Answer
from lbopt.serving.mock.driver import Driver, Ticket
from lbopt.serving.mock.endpoint import Endpoint, EndpointMetrics, RankFigures
from lbopt.serving.mock.group import LENGTH, STOP, BarrierGroup, Prefiller, Sequence, Worker
from lbopt.serving.mock.protocol import Ask, BadRequestError, Lengths
from lbopt.serving.mock.setting import MockSetting


class PrefillEndpoint(Endpoint):
    """The endpoint.

    Parameters
    ----------
    setting
        Of the fleet.
    prefiller
        Its engine.
    """

    def __init__(self, setting: MockSetting, prefiller: Prefiller) -> None:
        self.prefiller = prefiller
        self.driver = Driver(prefiller)
        super().__init__(prefiller.name, setting, [self.driver])
        config = {"block_size": str(prefiller.setting.block), "num_gpu_blocks": str(prefiller.num_blocks)}
        self.metrics = EndpointMetrics(setting.model_name, self._figures, config)

    def begin(self, ask: Ask, request: web.Request, name: str) -> Ticket:
        """Put a prompt into the queue."""
        if ask.limit != 1:
            raise BadRequestError(f"a prefill instance makes one token; max_tokens is {ask.limit}, send 1")
        sequence = Sequence(ask.prompt_tokens, 1)
        ticket = Ticket(sequence)
        try:
            self.prefiller.submit(sequence)
        except InputError as error:
            raise BadRequestError(str(error)) from None
        ticket.hold = bool(ask.transfer.get("do_remote_decode"))
        self.driver.wake()
        return ticket

    def end(self, ticket: Ticket) -> None:
        """Free what is not to be pulled."""
        if ticket.sequence.ended:
            self.prefiller.release(ticket.sequence)
        else:
            self.prefiller.cancel(ticket.sequence)
        self.driver.wake()

    def transfer_of(self, ticket: Ticket, answer: Answer) -> dict[str, Any] | None:
        """Hold the blocks for a decode worker, and say where they are."""
        if not ticket.hold:
            return None
        ticket.hold = False
        now = asyncio.get_running_loop().time()
        blocks = self.prefiller.hand_over(ticket.sequence, answer.name, now)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": list(blocks),
            "remote_engine_id": self.prefiller.name,
            "remote_request_id": answer.name,
            "remote_host": self.setting.host,
            "remote_port": self.port,
        }

    def empty(self) -> Iterator[Ticket]:
        """Lose everything that the instance holds."""
        for sequence in self.prefiller.empty():
            yield sequence.owner

    def pulled(self, name: str) -> None:
        """Free blocks that a decode worker has got; prompts may have waited for them."""
        self.prefiller.pulled(name)
        self.driver.wake()

    def _figures(self) -> list[RankFigures]:
        one, worker = self.prefiller, self.prefiller.worker
        usage = one.used / one.num_blocks
        return [RankFigures(len(worker.running), len(worker.queue), usage, 0, worker.prompt_tokens, one.steps)]


@dataclass(frozen=True, slots=True)
class Rank:
    """A worker of a group, by its place in the group and in the fleet."""

    group: BarrierGroup
    driver: Driver
    place: int
    number: int

    @property
    def worker(self) -> Worker:
        """Its state."""
        return self.group.workers[self.place]


class DecodeEndpoint(Endpoint):
    """The endpoint.

    Parameters
    ----------
    setting
        Of the fleet.
    ranks
        Its workers.
    lengths
        How long answers are.
    prefillers
        Where remote blocks may lie.
    """

    def __init__(
        self, setting: MockSetting, ranks: list[Rank], lengths: Lengths, prefillers: list[PrefillEndpoint]
    ) -> None:
        numbers = "-".join(str(rank.number) for rank in (ranks[0], ranks[-1])[: len(ranks)])
        super().__init__(f"w{numbers}", setting, [ranks[0].driver])
        self.ranks = ranks
        self._lengths = lengths
        self._prefillers = {one.prefiller.name: one for one in prefillers}
        group = ranks[0].group.setting
        config = {"block_size": str(group.block), "num_gpu_blocks": str(group.blocks or 0)}
        self.metrics = EndpointMetrics(setting.model_name, self._figures, config)
        self.lost_transfers = 0

    def begin(self, ask: Ask, request: web.Request, name: str) -> Ticket:
        """Put a request into the queue of its worker."""
        number = self._rank_for(request)
        rank, now = self.ranks[number], asyncio.get_running_loop().time()
        drawn = None if ask.ignore_end else self._lengths(ask.digest)
        output = ask.limit if drawn is None else min(ask.limit, max(ask.least, drawn))
        sequence = Sequence(ask.prompt_tokens, output, LENGTH if output == ask.limit else STOP)
        pull = self._find_blocks(ask, now)
        if pull is not None:
            sequence.computed, sequence.ready = ask.prompt_tokens, self._pulled_at(ask, now)
        elif self.setting.prefill == 0 and not self._prefillers:
            sequence.computed = ask.prompt_tokens
        ticket = Ticket(sequence, self.setting.chunk_tokens)
        try:
            rank.group.submit(sequence, rank.place)
        except InputError as error:
            raise BadRequestError(str(error)) from None
        if pull is not None:
            self._pull(*pull, sequence.ready, now)
        ticket.rank = number
        rank.driver.wake()
        return ticket

    def end(self, ticket: Ticket) -> None:
        """Let go of a request."""
        rank = self.ranks[ticket.rank]
        if not ticket.sequence.ended:
            rank.group.cancel(ticket.sequence)

    def transfer_of(self, ticket: Ticket, answer: Answer) -> dict[str, Any] | None:
        """Return None: a decode worker hands nothing over."""
        return None

    def empty(self) -> Iterator[Ticket]:
        """Lose everything that the workers hold."""
        for rank in self.ranks:
            for sequence in rank.group.empty(rank.place):
                yield sequence.owner

    def _rank_for(self, request: web.Request) -> int:
        if len(self.ranks) == 1:
            return 0
        text = request.headers.get("X-Data-Parallel-Rank")
        if text is None:
            held = [(4 * len(rank.worker.queue) + len(rank.worker.running)) for rank in self.ranks]
            return held.index(min(held))
        if not text.isdigit() or int(text) >= len(self.ranks):
            raise BadRequestError(f"X-Data-Parallel-Rank is '{text[:20]}'; expected 0 to {len(self.ranks) - 1}")
        return int(text)

    def _find_blocks(self, ask: Ask, now: float) -> tuple[PrefillEndpoint, str] | None:
        """Return where the prompt's blocks are held and under which name; None where it is to be computed here."""
        if not ask.transfer.get("do_remote_prefill"):
            return None
        endpoint = self._prefillers.get(str(ask.transfer.get("remote_engine_id")))
        name = None if endpoint is None or not endpoint.alive else endpoint.prefiller.find(ask.transfer, now)
        if endpoint is None or name is None:
            self.lost_transfers += 1
            return None
        return endpoint, name

    def _pulled_at(self, ask: Ask, now: float) -> float:
        return now + self.setting.seconds("transfer") + self.setting.seconds("transfer_per_token") * ask.prompt_tokens

    def _pull(self, endpoint: PrefillEndpoint, name: str, ready: float, now: float) -> None:
        if ready <= now:
            endpoint.pulled(name)
        else:
            asyncio.get_running_loop().call_at(ready, endpoint.pulled, name)

    def _figures(self) -> list[RankFigures]:
        found = []
        for rank in self.ranks:
            worker, blocks = rank.worker, rank.group.setting.blocks
            usage = worker.blocks / blocks if blocks else 0.0
            found.append(
                RankFigures(
                    len(worker.running),
                    len(worker.queue),
                    usage,
                    worker.preemptions,
                    worker.prompt_tokens,
                    worker.made_tokens,
                )
            )
        return found
