"""A prefill instance: it computes prompts in passes, and holds their blocks until a decode worker has pulled them.

Pure and synchronous, driven like a `BarrierGroup`. A pass takes prompts in order of arrival, up to a number of tokens;
what does not fit goes on in the next one. A prompt enters its first pass when its blocks are free, and keeps them.
Where the client asked for a remote decode, they stay held after the pass, until they are pulled or a time-out has
passed, as with vLLM's NIXL connector and Mooncake's in vllm-ascend (480 s there).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lbopt.exceptions import InputError
from lbopt.prefill import PassTime
from lbopt.serving.mock.group import ABORT, LENGTH, Sequence


class Pass(NamedTuple):
    """A pass that has begun: its tokens, and how long it lasts in s."""

    tokens: int
    seconds: float


@dataclass(slots=True)
class Held:
    """Blocks that wait for a decode worker: their numbers, tokens of the prompt, and until when, s."""

    blocks: tuple[int, ...]
    tokens: int
    until: float


@dataclass(slots=True)
class Prefiller:
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

    name: str
    pass_time: PassTime
    chunk: int = 8192
    num_blocks: int = 25_000
    block: int = 16
    hold: float = 480.0
    queue: deque[Sequence] = field(default_factory=deque)
    running: list[Sequence] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)
    expired: int = 0
    passes: int = 0
    prompt_tokens: int = 0
    _free: list[int] = field(default_factory=list)
    _owned: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _pass: bool = False

    def __post_init__(self) -> None:
        if self.chunk < 1 or self.num_blocks < 1:
            raise InputError(
                f"prefill instance '{self.name}' has passes of {self.chunk} tokens and {self.num_blocks} blocks; "
                "expected at least 1 of each"
            )
        self._free = list(range(self.num_blocks))

    @property
    def used(self) -> int:
        """Blocks that are not free."""
        return self.num_blocks - len(self._free)

    def submit(self, sequence: Sequence, worker: int = 0) -> None:
        """Put a prompt at the end of the queue.

        Raises
        ------
        InputError
            If the memory can never hold it.
        """
        needed = -(-sequence.prompt // self.block)
        if needed > self.num_blocks:
            raise InputError(f"the prompt needs {needed} blocks; prefill instance '{self.name}' has {self.num_blocks}")
        sequence.worker = worker
        self.queue.append(sequence)

    def cancel(self, sequence: Sequence) -> None:
        """Let go of a prompt that has not been computed; nothing happens where it has."""
        if sequence.ended:
            return
        if sequence.running:
            self.running.remove(sequence)
            sequence.running = False
            self._give_back(self._owned.pop(id(sequence)))
        else:
            self.queue.remove(sequence)
        sequence.ended = ABORT

    def empty(self, worker: int = 0) -> list[Sequence]:
        """Lose everything, as when the process dies; return what was computed or waited."""
        lost = [*self.running, *self.queue]
        for sequence in lost:
            self.cancel(sequence)
        for one in self.held.values():
            self._give_back(one.blocks)
        self.held.clear()
        return lost

    def begin_step(self, now: float) -> Pass | None:
        """Begin a pass at time `now`; None where no prompt can be computed."""
        self._expire(now)
        left = self.chunk - sum(one.prompt - one.computed for one in self.running)
        while self.queue and left > 0:
            head = self.queue[0]
            needed = -(-head.prompt // self.block)
            if needed > len(self._free):
                break
            self.queue.popleft()
            head.running = True
            self._owned[id(head)] = tuple(heapq.heappop(self._free) for _ in range(needed))
            self.running.append(head)
            left -= head.prompt
        left = self.chunk
        for one in self.running:
            one.computing = min(one.prompt - one.computed, left)
            left -= one.computing
        tokens = self.chunk - left
        self._pass = tokens > 0
        return Pass(tokens, self.pass_time.seconds(tokens)) if tokens else None

    def next_ready(self) -> float | None:
        """Return when held blocks expire next, where prompts wait for memory; None where nothing is awaited."""
        return min((one.until for one in self.held.values()), default=None) if self.queue else None

    def end_step(self) -> list[Sequence]:
        """End the pass that was begun; return the prompts that are computed."""
        assert self._pass, "no pass was begun"
        self._pass = False
        self.passes += 1
        done, kept = [], []
        for one in self.running:
            one.computed += one.computing
            one.computing = 0
            if one.computed < one.prompt:
                kept.append(one)
                continue
            one.made, one.ended, one.running = 1, LENGTH, False
            self.prompt_tokens += one.prompt
            done.append(one)
        self.running = kept
        return done

    def hand_over(self, sequence: Sequence, name: str, now: float) -> tuple[int, ...]:
        """Hold the blocks of a computed prompt under `name`; return their numbers."""
        blocks = self._owned.pop(id(sequence))
        self.held[name] = Held(blocks, sequence.prompt, now + self.hold)
        return blocks

    def release(self, sequence: Sequence) -> None:
        """Free the blocks of a computed prompt that nobody is to pull."""
        self._give_back(self._owned.pop(id(sequence), ()))

    def find(self, transfer: dict[str, Any], now: float) -> str | None:
        """Return under which name the blocks that `kv_transfer_params` speaks of are held; None where they are gone."""
        self._expire(now)
        name = transfer.get("remote_request_id")
        if isinstance(name, str):
            return name if name in self.held else None
        numbers = transfer.get("remote_block_ids")
        if not isinstance(numbers, list):
            return None
        return next((key for key, one in self.held.items() if list(one.blocks) == numbers), None)

    def pulled(self, name: str) -> None:
        """Free blocks that a decode worker has got."""
        one = self.held.pop(name, None)
        if one is not None:
            self._give_back(one.blocks)

    def _expire(self, now: float) -> None:
        for name in [name for name, one in self.held.items() if one.until <= now]:
            self.pulled(name)
            self.expired += 1

    def _give_back(self, blocks: Tokens[int]) -> None:
        for number in blocks:
            heapq.heappush(self._free, number)
