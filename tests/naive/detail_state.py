"""Requests and workers in detail, the options, and a whole run: what is given, what changes, what was written down."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from naive.gates import Gate
from naive.pausing import Plan
from naive.sight import Sight

JOIN, DRAIN, LEAVE = range(3)


@dataclass(eq=False)
class Request:
    """One request, and what has become of it."""

    number: int
    prompt: int
    output: int
    arrival: float | None
    made: int = 0
    computed: int = 0
    once_computed: int = 0  # tokens that were computed at some time, from the first on
    arrives: float = 0.0  # second at which its memory is at its worker
    is_swapped: bool = False
    is_paused: bool = False
    blocks: tuple[int, ...] = ()  # that its prompt fills
    worker: int = -1
    reveal_step: int = -1
    reveal_clock: float = math.nan
    start_step: int = -1
    start_clock: float = math.nan
    first_token_clock: float = math.nan
    finish_step: int = -1
    finish_clock: float = math.nan

    @property
    def size(self) -> int:
        """Tokens of the prompt and of the output so far."""
        return self.prompt + self.made


@dataclass(eq=False)
class Worker:
    """One worker."""

    number: int
    slots: int
    slow: float = 1.0
    is_open: bool = True
    running: list[Request] = field(default_factory=list)
    queue: list[Request] = field(default_factory=list)
    cache: list[int] = field(default_factory=list)  # blocks, the one used last at the end
    moved: int = 0  # tokens, to be paid for in the next step
    room: int = 0  # tokens of prompts that a gate lets begin
    stops: bool = False  # a gate stops the prompts that have begun
    most: int = 0  # prompts computed in one step
    left_over: bool = False

    @property
    def load(self) -> int:
        """Sizes of the running requests."""
        return sum(request.size for request in self.running)

    @property
    def queued_tokens(self) -> int:
        """Sizes of the queued requests."""
        return sum(request.size for request in self.queue)


@dataclass
class Options:
    """The options of the manual's table; `draw(i, n)` is u(i, n)."""

    draw: Callable[[int, int], float]
    preempt: str = "none"
    capacity: int = 0
    block: int = 16
    watermark: float = 0.01
    swap_cost: float = 0.0
    prefill: int = 0
    prefill_cost: float = 0.0
    transfer: float = 0.0
    draft: int = 0
    acceptance: float = 0.7
    spread: float = 0.0
    draft_cost: float = 0.0
    prefix_cache: int = 0
    gate: str = "none"
    pause: str = "none"
    pause_from: int = 250
    pause_threshold: float = 5.0
    pause_long: int = 700
    pause_for: int = 256
    events: list[tuple[float, int, int]] = field(default_factory=list)


@dataclass
class Case:
    """A whole run: what is given, what changes, what was written down."""

    requests: list[Request]
    workers: list[Worker]
    options: Options
    rule: str
    rule_options: dict[str, Any]
    pooled: bool
    reveal_target: int | None
    uniforms: Sequence[tuple[float, float]] | None
    sight: Sight | None
    fixed: float
    per_token: float
    clock: float = 0.0
    step: int = 0
    known: int = 0
    pool: list[Request] = field(default_factory=list)
    counter: int = 0
    preemptions: int = 0
    recomputed: int = 0
    moved: int = 0
    returned: int = 0
    pauses: int = 0
    reused: int = 0
    block_tokens: int = 512
    plan: list["Plan"] | None = None
    is_shut: bool = False
    gate: Gate | None = None
    is_balancing: bool = False
    quiet_plans: int = 0
    long_was_sent: bool = False
    committed: list[list[int]] = field(default_factory=list)  # blocks of all workers, as every question shows them
    barrier_loads: list[list[int]] = field(default_factory=list)
    post_loads: list[list[int]] = field(default_factory=list)
    active: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)


class StuckError(RuntimeError):
    """Requests wait, and nothing will ever happen."""
