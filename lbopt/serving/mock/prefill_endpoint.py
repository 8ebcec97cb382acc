"""An endpoint of a prefill instance: it answers with one token, and says where the blocks of the prompt lie.

A router sends the client's request with `max_tokens` 1, without a stream, and `kv_transfer_params` whose
`do_remote_decode` is true. The answer's `kv_transfer_params` are to be sent along to a decode worker, as with vLLM's
NIXL connector and vllm-ascend's Mooncake connector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.serving.mock.answers import Answer
from lbopt.serving.mock.driver import Driver, Ticket
from lbopt.serving.mock.endpoint import Endpoint
from lbopt.serving.mock.group import Sequence
from lbopt.serving.mock.metrics import EndpointMetrics, RankFigures
from lbopt.serving.mock.prefiller import Prefiller
from lbopt.serving.mock.protocol import Ask, BadRequestError
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
        """Free what nobody is to pull."""
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
