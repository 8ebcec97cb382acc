"""A prefill instance: it computes prompts in passes, and holds their blocks until a decode worker has pulled them.

It is a barrier group of one worker that computes prompts and nothing else. A pass takes prompts in order of arrival, up
to a number of tokens; what does not fit goes on in the next one. A prompt enters its first pass when its blocks are
free, and keeps them. Where the client asked for a remote decode, they stay held after the pass, until they are pulled
or a time-out has passed, as with vLLM's NIXL connector and Mooncake's in vllm-ascend (480 s there).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, NamedTuple

from lbopt.exceptions import InputError
from lbopt.hardware import BarrierForm
from lbopt.prefill import PassTime
from lbopt.serving.mock.group import BarrierGroup, GroupSetting, Sequence, Step, Worker

#: More prompts than one pass takes.
_SLOTS = 2**20


class Held(NamedTuple):
    """Blocks that wait for a decode worker: their numbers, and until when, s."""

    blocks: tuple[int, ...]
    until: float


class Prefiller(BarrierGroup):
    """The instance.

    Parameters
    ----------
    name
        `remote_engine_id`.
    pass_time
        How long a pass takes.
    chunk
        Tokens of a pass at most.
    num_blocks, block
        Its memory, and tokens of a block.
    hold
        s, how long blocks are held for a decode worker.
    """

    def __init__(
        self,
        name: str,
        pass_time: PassTime,
        chunk: int = 8192,
        num_blocks: int = 25_000,
        block: int = 16,
        hold: float = 480.0,
    ) -> None:
        if chunk < 1 or num_blocks < 1:
            raise InputError(
                f"prefill instance '{name}' has passes of {chunk} tokens and {num_blocks} blocks; expected at least 1 "
                "of each"
            )
        form, cost = BarrierForm(pass_time.base, 0.0), pass_time.per_token
        super().__init__(
            GroupSetting(num_workers=1, slots=_SLOTS, form=form, block=block, prefill=chunk, prefill_cost=cost)
        )
        self.name = name
        self.num_blocks = num_blocks
        self.hold = hold
        self.held: dict[str, Held] = {}
        self.expired = 0
        self._free_blocks = list(range(num_blocks))
        self._owned: dict[int, tuple[int, ...]] = {}
        self._left = 0  # tokens of the next pass that no prompt has taken

    @property
    def worker(self) -> Worker:
        """What is computed, and what waits."""
        return self.workers[0]

    @property
    def used(self) -> int:
        """Blocks that are not free."""
        return self.num_blocks - len(self._free_blocks)

    def submit(self, sequence: Sequence, worker: int = 0) -> None:
        """Put a prompt at the end of the queue.

        Raises
        ------
        InputError
            If the memory can never hold it.
        """
        needed = self.setting.blocks_of(sequence.prompt)
        if needed > self.num_blocks:
            raise InputError(f"the prompt needs {needed} blocks; prefill instance '{self.name}' has {self.num_blocks}")
        super().submit(sequence, worker)

    def empty(self, worker: int = 0) -> list[Sequence]:
        """Lose everything, as when the process dies; return what was computed or waited."""
        for one in self.held.values():
            self._give_back(one.blocks)
        self.held.clear()
        return super().empty(worker)

    def begin_step(self, now: float) -> Step | None:
        """Begin a pass at time `now`; None where no prompt can be computed."""
        self._expire(now)
        self._left = self.setting.prefill - sum(one.prompt - one.computed for one in self.worker.running)
        return super().begin_step(now)

    def next_ready(self) -> float | None:
        """Return when held blocks expire next, where prompts wait for memory; None where nothing is awaited."""
        return min((one.until for one in self.held.values()), default=None) if self.worker.queue else None

    def _fits(self, worker: Worker, head: Sequence) -> bool:
        return self._left > 0 and self.setting.blocks_of(head.prompt) <= len(self._free_blocks)

    def _seat(self, worker: Worker, head: Sequence) -> None:
        super()._seat(worker, head)
        needed = self.setting.blocks_of(head.prompt)
        self._owned[id(head)] = tuple(heapq.heappop(self._free_blocks) for _ in range(needed))
        self._left -= head.prompt

    def _free(self, worker: Worker, sequence: Sequence) -> None:
        super()._free(worker, sequence)
        if not sequence.ended:  # it was cancelled; what a computed prompt owns is handed over or released
            self.release(sequence)

    def hand_over(self, sequence: Sequence, name: str, now: float) -> tuple[int, ...]:
        """Hold the blocks of a computed prompt under `name`; return their numbers."""
        blocks = self._owned.pop(id(sequence))
        self.held[name] = Held(blocks, now + self.hold)
        return blocks

    def release(self, sequence: Sequence) -> None:
        """Free the blocks of a prompt that are not to be pulled."""
        self._give_back(self._owned.pop(id(sequence), ()))

    def find(self, transfer: dict[str, Any], now: float) -> str | None:
        """Return under which name the blocks that `kv_transfer_params` speaks of are held; None where they are gone."""
        self._expire(now)
        name, numbers = transfer.get("remote_request_id"), transfer.get("remote_block_ids")
        if isinstance(name, str):
            return name if name in self.held else None
        return next((key for key, one in self.held.items() if list(one.blocks) == numbers), None)

    def pulled(self, name: str) -> None:
        """Free blocks that a decode worker has got."""
        if name in self.held:
            self._give_back(self.held.pop(name).blocks)

    def _expire(self, now: float) -> None:
        for name in [name for name, one in self.held.items() if one.until <= now]:
            self.pulled(name)
            self.expired += 1

    def _give_back(self, blocks: Iterable[int]) -> None:
        for number in blocks:
            heapq.heappush(self._free_blocks, number)
