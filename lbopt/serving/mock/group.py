"""Barrier groups of mock engines: those that decode, and prefill instances, which are groups of their own.

A barrier group of mock engines: G workers of B slots that take every decode step together.

Pure and synchronous: no clock, no I/O. A driver calls `begin_step` and, when its seconds have passed, `end_step`.
The order of events and the arithmetic are those of the simulator (the manual, *simulator*, "Steps and decisions") and,
with memory and prompts that workers compute themselves, of its page *detail*:

begin_step(now)
    1. Each worker takes from the head of its queue while it has a free slot, the head's KV cache has arrived, and the
       head fits into memory.
    2. Every running request whose tokens are all computed decodes. Others get a share of the tokens that a worker may
       compute in a step. L_g is the sum of the sizes of those that take part.
    3. The step lasts fixed + max_g (own part of worker g) + common part seconds, by the barrier form of the law.
end_step()
    4. Every request that decodes makes a token. Requests that have all their tokens end.
    5. While the running requests of a worker need more blocks than there are, the last one is pre-empted: it goes back
       to the head of the queue and loses its cache (``recompute``), or it ends with `RECOMPUTED` (``stop``), as in
       vllm-ascend where prefill is elsewhere (`core/recompute_scheduler.py`).

Twins: `lbopt/kernels/simulation/step.py` and `lbopt/kernels/detail`; a test compares loads, seconds and ends exactly.

A prefill instance: it computes prompts in passes, and holds their blocks until a decode worker has pulled them.

It is a barrier group of one worker that computes prompts and nothing else. A pass takes prompts in order of arrival, up
to a number of tokens; what does not fit goes on in the next one. A prompt enters its first pass when its blocks are
free, and keeps them. Where the client asked for a remote decode, they stay held after the pass, until they are pulled
or a time-out has passed, as with vLLM's NIXL connector and Mooncake's in vllm-ascend (480 s there).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from lbopt.exceptions import InputError
from lbopt.hardware import BarrierForm
from lbopt.prefill import PassTime

#: Why a request ended: all tokens of its limit, an end of its own, pre-empted for good, or given up by its client.
LENGTH, STOP, RECOMPUTED, ABORT = "length", "stop", "recomputed", "abort"

Preempt = Literal["none", "recompute", "stop"]
PREEMPTS: tuple[Preempt, ...] = ("none", "recompute", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSetting:
    """What the workers of a group are.

    Parameters
    ----------
    num_workers, slots
        G workers of B slots.
    form
        Seconds of a step.
    kv_tokens
        Tokens that the memory of a worker holds; None = memory never runs out.
    block
        Tokens of a block of memory.
    watermark
        Share of the blocks that stay free when a request starts beside others.
    preempt
        What happens when memory runs out: ``none``, ``recompute`` or ``stop``.
    prefill
        Tokens that a worker may compute in a step; 0 = prompts are computed elsewhere, and what was lost is computed
        in one step.
    prefill_cost
        s for each token that a worker computes.
    """

    num_workers: int
    slots: int
    form: BarrierForm
    kv_tokens: int | None = None
    block: int = 16
    watermark: float = 0.01
    preempt: Preempt = "none"
    prefill: int = 0
    prefill_cost: float = 0.0

    def __post_init__(self) -> None:
        if self.preempt not in PREEMPTS:
            raise InputError(f"preempt is '{self.preempt}'; expected {', '.join(PREEMPTS)}")
        if self.kv_tokens is not None and self.kv_tokens < self.block:
            raise InputError(f"the KV capacity is {self.kv_tokens} tokens; expected at least a block of {self.block}")
        if not 0 <= self.watermark < 1:
            raise InputError(f"watermark is {self.watermark:g}; expected a share from 0 to less than 1")
        if self.preempt != "none" and self.kv_tokens is None:
            raise InputError(f"preempt is '{self.preempt}' but memory never runs out; give the KV capacity, too")

    @property
    def blocks(self) -> int | None:
        """Blocks of a worker; None where memory never runs out."""
        return None if self.kv_tokens is None else self.kv_tokens // self.block

    def blocks_of(self, tokens: int) -> int:
        """Return the blocks that hold `tokens`."""
        return -(-tokens // self.block)


@dataclass(slots=True, eq=False)
class Sequence:
    """A request inside of its worker.

    Parameters
    ----------
    prompt, output
        Tokens of the prompt, and tokens that it makes until it ends by itself.
    finish
        How it ends then: `LENGTH` or `STOP`.
    computed
        Tokens whose KV cache is there or comes with the transfer; the prompt's where it was computed elsewhere.
    ready
        s, when its KV cache has arrived.

    Attributes
    ----------
    made
        Tokens made so far.
    owner
        Who is to be told of its tokens, for the driver of the group.
    ended
        Why it has ended; empty while it has not.
    preempted
        How often it was.
    """

    prompt: int
    output: int
    finish: str = LENGTH
    computed: int = 0
    ready: float = 0.0
    worker: int = -1
    made: int = 0
    ended: str = ""
    preempted: int = 0
    running: bool = False
    blocks: int = 0
    computing: int = 0
    owner: Any = None

    @property
    def size(self) -> int:
        """Tokens that it holds: prompt and made."""
        return self.prompt + self.made


@dataclass(slots=True)
class Worker:
    """One worker of a group.

    Attributes
    ----------
    running
        What it decodes, in the order in which it was taken.
    queue
        What waits for a slot or for memory.
    blocks
        Blocks that running requests occupy.
    slow
        Factor of its own part of a step.
    """

    running: list[Sequence] = field(default_factory=list)
    queue: deque[Sequence] = field(default_factory=deque)
    blocks: int = 0
    slow: float = 1.0
    preemptions: int = 0
    prompt_tokens: int = 0
    made_tokens: int = 0

    @property
    def load(self) -> int:
        """Tokens of its running requests."""
        return sum(one.size for one in self.running)


class Step(NamedTuple):
    """A step that has begun: loads at the barrier in tokens, requests that take part, and how long it lasts in s."""

    loads: tuple[int, ...]
    active: tuple[int, ...]
    seconds: float


class BarrierGroup:
    """The group.

    Parameters
    ----------
    setting
        Its workers.

    Attributes
    ----------
    workers
        Their state.
    steps, seconds
        Steps taken, and their time.
    imbalance
        Sum over steps of G max_g L_g - sum_g L_g at the barrier, token steps.
    """

    def __init__(self, setting: GroupSetting) -> None:
        self.setting = setting
        self.workers = [Worker() for _ in range(setting.num_workers)]
        self.steps = 0
        self.seconds = 0.0
        self.imbalance = 0
        self.barrier_tokens = 0
        form = setting.form
        self._of_running: list[float] = form.of_running.tolist()
        self._of_active: list[float] = form.of_active.tolist()
        self._step: Step | None = None

    def submit(self, sequence: Sequence, worker: int) -> None:
        """Put a request at the end of a worker's queue.

        Raises
        ------
        InputError
            If the worker's memory can never hold it.
        """
        blocks = self.setting.blocks
        if blocks is not None and self.setting.preempt != "none":
            needed = self.setting.blocks_of(sequence.prompt + sequence.output)
            if needed > blocks:
                raise InputError(
                    f"prompt and output have {sequence.prompt + sequence.output} tokens, which are {needed} blocks; "
                    f"a worker has {blocks}"
                )
        sequence.worker = worker
        self.workers[worker].queue.append(sequence)

    def cancel(self, sequence: Sequence) -> None:
        """Let go of a request wherever it is; nothing happens where it has ended."""
        if sequence.ended:
            return
        worker = self.workers[sequence.worker]
        if sequence.running:
            worker.running.remove(sequence)
            self._free(worker, sequence)
        else:
            worker.queue.remove(sequence)
        sequence.ended = ABORT

    def empty(self, worker: int) -> list[Sequence]:
        """Let a worker lose everything, as when its process dies; return what it held."""
        lost = [*self.workers[worker].running, *self.workers[worker].queue]
        for sequence in lost:
            self.cancel(sequence)
        return lost

    def begin_step(self, now: float) -> Step | None:
        """Take requests from the queues and begin a step at time `now`; None where no request can run."""
        for worker in self.workers:
            if worker.queue:
                self._let_in(worker, now)
        if not any(worker.running for worker in self.workers):
            return None
        self._step = self._measured()
        return self._step

    def next_ready(self) -> float | None:
        """Return when the next head of a queue has its KV cache; None where none waits for one."""
        heads = [worker.queue[0].ready for worker in self.workers if worker.queue]
        return min(heads, default=None)

    def end_step(self) -> list[Sequence]:
        """End the step that was begun; return the requests that made a token or ended, each once."""
        step = self._step
        assert step is not None, "no step was begun"
        self._step = None
        top, total = max(step.loads), sum(step.loads)
        self.steps += 1
        self.seconds += step.seconds
        self.imbalance += len(step.loads) * top - total
        self.barrier_tokens += len(step.loads) * top
        changed: list[Sequence] = []
        for worker in self.workers:
            if worker.running:
                self._advance(worker, changed)
                if self.setting.preempt != "none":
                    self._make_fit(worker, changed)
        return changed

    def _let_in(self, worker: Worker, now: float) -> None:
        while worker.queue and len(worker.running) < self.setting.slots:
            head = worker.queue[0]
            if head.ready > now or not self._fits(worker, head):
                return
            worker.queue.popleft()
            self._seat(worker, head)

    def _seat(self, worker: Worker, head: Sequence) -> None:
        head.running = True
        if self.setting.blocks is not None:
            head.blocks = self.setting.blocks_of(head.size)
            worker.blocks += head.blocks
        if head.made == 0 and head.preempted == 0:
            worker.prompt_tokens += head.prompt
        worker.running.append(head)

    def _fits(self, worker: Worker, head: Sequence) -> bool:
        blocks = self.setting.blocks
        if blocks is None or self.setting.preempt == "none":
            return True
        kept_free = int(self.setting.watermark * blocks) if worker.running else 0
        return worker.blocks + self.setting.blocks_of(head.size) <= blocks - kept_free

    def _measured(self) -> Step:
        """Say who takes part, and how long it takes."""
        form, cost = self.setting.form, self.setting.prefill_cost
        loads, active, slowest = [], [], 0.0
        for worker in self.workers:
            load, part, computed = self._share_out(worker)
            loads.append(load)
            active.append(part)
            own = form.per_token * load
            if self._of_running:
                own += self._of_running[part]
            own += computed * cost
            slowest = max(slowest, own * worker.slow)
        together = 0.0
        if form.per_mean_token > 0:
            together = form.per_mean_token * (sum(loads) / len(loads))
        if self._of_active:
            together += self._of_active[sum(active)]
        return Step(tuple(loads), tuple(active), form.fixed + slowest + together)

    def _share_out(self, worker: Worker) -> tuple[int, int, int]:
        """Give each request of a worker what it computes in this step; return load, requests, tokens computed."""
        budget = self.setting.prefill
        left = budget - sum(one.computed == one.size for one in worker.running) if budget else 0
        load = part = computed = 0
        for one in worker.running:
            size = one.prompt + one.made
            lacking = size - one.computed
            one.computing = 0
            if lacking:
                one.computing = min(lacking, left) if budget else lacking
                left -= one.computing
                if one.computing <= 0:
                    one.computing = 0
                    continue
                computed += one.computing
            part += 1
            load += one.computed + one.computing
        return load, part, computed

    def _advance(self, worker: Worker, changed: list[Sequence]) -> None:
        """Let the running requests of a worker do their part of the step."""
        kept = []
        limited, made = self.setting.blocks is not None, 0
        for one in worker.running:
            one.computed += one.computing
            one.computing = 0
            if one.computed < one.prompt + one.made:
                kept.append(one)
                continue
            one.made += 1
            one.computed += 1
            made += 1
            changed.append(one)
            if one.made == one.output:
                one.ended = one.finish
                self._free(worker, one)
                continue
            if limited and one.blocks * self.setting.block < one.prompt + one.made:
                one.blocks += 1
                worker.blocks += 1
            kept.append(one)
        worker.made_tokens += made
        worker.running = kept

    def _make_fit(self, worker: Worker, changed: list[Sequence]) -> None:
        """Pre-empt the last of the list until the others fit."""
        blocks = self.setting.blocks
        assert blocks is not None
        while worker.blocks > blocks:
            last = worker.running.pop()
            self._free(worker, last)
            worker.preemptions += 1
            last.preempted += 1
            last.computed = 0
            if self.setting.preempt == "recompute":
                worker.queue.appendleft(last)
                continue
            last.ended = RECOMPUTED
            if last not in changed:
                changed.append(last)

    def _free(self, worker: Worker, sequence: Sequence) -> None:
        worker.blocks -= sequence.blocks
        sequence.blocks = 0
        sequence.running = False


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
