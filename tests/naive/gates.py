"""The gates of serving engines by the words of the manual (docs/detail.md, "Gates"), with objects.

A gate is asked once before every step; it answers for each rank whether new prompts may begin there, and whether those
that have begun go on.
"""

import math
from dataclasses import dataclass, field


@dataclass
class Rank:
    """What a rank tells the others before a step."""

    present: bool = True
    decoding: int = 0
    begun: int = 0
    can_begin: bool = False
    waiting: int = 0
    pending: int = 0
    most: int = 0
    left_over: bool = False
    usage: float = math.nan
    age: float = 0.0


Verdicts = list[tuple[bool, bool]]


@dataclass
class Vllm:
    """One counter for all ranks; each rank judges for itself whether it defers on a step between."""

    interval: float
    steps: int = 0

    def judge(self, ranks: list[Rank], clock: float, idle: bool, slots: int, budget: int) -> Verdicts:
        """Answer for each rank."""
        if idle:
            self.steps = 0
        is_open = self.steps % self.interval == 0
        verdicts = []
        for rank in ranks:
            defers = not is_open and not rank.left_over and rank.decoding > 0
            verdicts.append((not defers, not defers))
        return verdicts

    def step(self, computed: int, seconds: float) -> None:
        """A step was taken."""
        self.steps += 1


@dataclass
class Sglang:
    """The PrefillDelayer, in the three cases of its source."""

    max_delay_passes: float
    low: float
    ratio: float
    max_delay_ms: float
    delayed: int = 0
    start: float | None = None
    skips: bool = True

    def judge(self, ranks: list[Rank], clock: float, idle: bool, slots: int, budget: int) -> Verdicts:
        """Answer the same for all ranks; what has begun goes on."""
        allow = idle or self._allows([rank for rank in ranks if rank.present], clock, slots)
        if allow:
            self.delayed, self.start = 0, None
        else:
            self.delayed += 1
            self.start = clock if self.start is None else self.start
        return [(allow, True)] * len(ranks)

    def _allows(self, ranks: list[Rank], clock: float, slots: int) -> bool:
        able = [rank for rank in ranks if rank.can_begin]
        if not able or any(rank.usage < self.low for rank in able):
            return True
        if len(able) < len(ranks):
            return self.delayed >= self.max_delay_passes - 1
        running, batch = max(rank.decoding for rank in ranks), max(rank.most for rank in ranks)
        by_slots = slots - running < batch
        by_queue = False
        if not math.isnan(self.ratio) and running > 0:
            least = min(math.floor(running * self.ratio), batch)
            by_queue = least > 0 and max(rank.waiting for rank in ranks) < least
            if self.start is not None and (clock - self.start) * 1000.0 >= self.max_delay_ms:
                by_queue = False
        if not (by_slots or by_queue):
            return True
        if self.skips:
            self.skips = False
            return True
        return False

    def step(self, computed: int, seconds: float) -> None:
        """A step was taken."""


@dataclass
class Trtllm:
    """Attention-DP balance."""

    timeout_iters: float
    batching_wait_iters: float
    waiting: int = 0
    batching: int = 0

    def judge(self, ranks: list[Rank], clock: float, idle: bool, slots: int, budget: int) -> Verdicts:
        """Answer the same for all ranks and prompts."""
        present = [rank for rank in ranks if rank.present]
        have_context = all(rank.begun or rank.can_begin for rank in present)
        have_generation = all(rank.decoding > 0 for rank in present)
        allow = True
        if have_context and all(rank.decoding < slots for rank in present):
            self.waiting = 0
            if have_generation:
                allow = self.batching >= self.batching_wait_iters
                self.batching = 0 if allow else self.batching + 1
        else:
            self.waiting += 1
            allow = self.waiting >= self.timeout_iters or not have_generation
            self.waiting = 0 if allow else self.waiting
        return [(allow, allow)] * len(ranks)

    def step(self, computed: int, seconds: float) -> None:
        """A step was taken."""


@dataclass
class Atom:
    """The coalescer: bounds that must fire, alignment, fill, and giving up."""

    target_fill: float
    ttft_max_ticks: float
    partial_max_ticks: float
    stall_ticks: float
    high: float
    low: float
    max_queue_ms: float
    ticks: int = 0
    stalled: int = 0
    before: int | None = None
    is_first: bool = True

    def judge(self, ranks: list[Rank], clock: float, idle: bool, slots: int, budget: int) -> Verdicts:
        """Answer the same for all ranks and prompts."""
        allow = self.is_first or self._fires([rank for rank in ranks if rank.present], budget)
        self.is_first = False
        if allow:
            self.ticks, self.stalled, self.before = 0, 0, None
        else:
            self.ticks += 1
        return [(allow, allow)] * len(ranks)

    def _fires(self, ranks: list[Rank], budget: int) -> bool:
        able = [rank for rank in ranks if rank.begun or rank.can_begin]
        if not able or not any(rank.decoding for rank in ranks):
            return True
        for rank in able:
            if rank.usage >= self.high or rank.usage < self.low or rank.age * 1000.0 >= self.max_queue_ms:
                return True
        if self.ticks >= self.ttft_max_ticks:
            return True
        if any(rank.begun for rank in ranks) and self.ticks >= self.partial_max_ticks:
            return True
        if len(able) < len(ranks):
            return False
        pending = sum(rank.pending for rank in ranks)
        if pending / (len(able) * budget) >= self.target_fill:
            return True
        grew = self.before is None or pending > self.before
        self.stalled = 0 if grew else self.stalled + 1
        self.before = pending
        return self.stalled >= self.stall_ticks

    def step(self, computed: int, seconds: float) -> None:
        """A step was taken."""


@dataclass
class Sbs:
    """Algorithm 1 on one instance: a release a mean pass after the last one, when nothing is left of that."""

    window: float
    default_pass: float
    latency: float
    passes: list[float] = field(default_factory=list)
    released: float = -math.inf

    def judge(self, ranks: list[Rank], clock: float, idle: bool, slots: int, budget: int) -> Verdicts:
        """Answer the same for all ranks; what has begun goes on."""
        kept = self.passes[-int(self.window) :]
        interval = (sum(kept) / len(kept) if kept else self.default_pass) + self.latency
        ready = not any(rank.begun for rank in ranks)
        waiting = any(rank.waiting for rank in ranks)
        allow = idle or (ready and clock - self.released >= interval)
        if waiting and allow:
            self.released = clock
        return [(allow or not waiting, True)] * len(ranks)

    def step(self, computed: int, seconds: float) -> None:
        """A step was taken."""
        if computed:
            self.passes.append(seconds)


Gate = Vllm | Sglang | Trtllm | Atom | Sbs
GATES: dict[str, type] = {"vllm": Vllm, "sglang": Sglang, "trtllm": Trtllm, "atom": Atom, "sbs": Sbs}
