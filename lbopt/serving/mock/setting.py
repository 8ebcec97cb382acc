"""What a mock fleet is: workers and what their steps cost, prefill instances, addresses, and how answers are sent.

What goes wrong on demand is a text: ``kind:worker=3,at=10s,for=5s``, one a line in a file or in the body of a request.

crash
    The process of the endpoint dies: connections are reset, new ones are refused, and its requests are lost. With
    `for` it comes back empty.
freeze
    The process stands still, as by SIGSTOP: it takes connections and answers nothing, and its barrier group waits.
slow
    The worker needs `factor` times as long for its own part of every step.
reset, half-close, truncate, stall
    Of the next `count` streams, each after `after` events: the connection is reset; the server closes its side and
    still reads; the body ends properly without the rest of its events; nothing more is sent, and the connection stays.
busy
    New requests are answered with status 503.
lost-metrics
    `/metrics` answers with status 500 (`mode=error`), never (`mode=hang`), or with something else (`mode=garbage`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.hardware import make_step_time
from lbopt.prefill import PassTime
from lbopt.serving.mock.group import GroupSetting, Preempt
from lbopt.serving.mock.protocol import make_lengths
from lbopt.spec import duration, options_of, unknown
from lbopt.studies.configuration import Configuration, Option

#: How the events of a stream lie in the pieces that are sent.
WIRES = ("plain", "joined", "split")

#: A step's time is tabulated by the requests that run.
_MOST_SLOTS = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class MockSetting(Configuration):
    """The fleet; durations are texts such as 100ms.

    Parameters
    ----------
    workers, slots, groups
        Workers in all, slots of each, and barrier groups that they form, all of one size.
    device, model, tp, step_time
        What a step costs: the roofline of a model on a device, or any law by its name.
    one_endpoint
        Whether the workers of a group are ranks of one endpoint.
    host, port
        Where the first worker listens; the others follow, then the prefill instances, last the admin. 0 = any ports.
    kv_capacity, block, watermark, preempt
        Memory of a worker, see `GroupSetting`.
    prefill, prefill_cost
        Prompts that workers compute themselves, see `GroupSetting`.
    prefillers, pass_base, pass_per_token, pass_tokens, prefiller_kv, hold
        Prefill instances, see `Prefiller`.
    transfer, transfer_per_token
        From the coming in of a request with remote blocks until its KV cache is there.
    lengths
        See `make_lengths`.
    max_model_len
        Tokens of prompt and answer together.
    chunk_tokens
        Tokens that an event carries at least, but for the first and the last one.
    wire
        ``plain``: an event a piece; ``joined``: two events a piece; ``split``: every event in two pieces.
    settle
        Time after a step in which requests still join the next one.
    served_model_name
        The model's name in `/v1/models`.
    fault
        What goes wrong from the start, see `make_fault`.
    """

    workers: Annotated[int, Option("Decode workers.", names=("--workers", "-G"), first=True, low=1)] = 8
    slots: Annotated[int, Option("Slots of a worker.", names=("--slots", "-B"), first=True, low=1)] = 72
    groups: Annotated[
        int,
        Option("Barrier groups that the workers form; as many as workers: no barrier.", first=True, low=1),
    ] = 1
    device: Annotated[str, Option("Device card of the step time.", first=True)] = "h800"
    model: Annotated[str, Option("Model card of the step time.", first=True)] = "deepseek-v3"
    tp: Annotated[int, Option("Devices of a worker.", low=1)] = 1
    step_time: Annotated[
        str | None, Option("Another step-time law, such as `affine:fixed=0.01`.", shown="the cards'")
    ] = None
    one_endpoint: Annotated[
        bool,
        Option(
            "Workers of a group are ranks of one endpoint, chosen by the header X-Data-Parallel-Rank.",
            names=("--one-endpoint",),
            first=True,
        ),
    ] = False
    host: Annotated[str, Option("Address to listen at.")] = "127.0.0.1"
    port: Annotated[
        int,
        Option("Port of the first endpoint; the others follow. 0: any ports.", first=True),
    ] = 0
    kv_capacity: Annotated[int | None, Option("Tokens of a worker's KV cache.", shown="never runs out", first=True)] = (
        None
    )
    block: Annotated[int, Option("Tokens of a block.", low=1)] = 16
    watermark: Annotated[float, Option("Share of blocks kept free when a request starts.")] = 0.01
    preempt: Annotated[
        str,
        Option(
            "**recompute**: in the engine; **stop**: the request ends with stop_reason recomputed; **none**.",
        ),
    ] = "none"
    prefill: Annotated[int, Option("Tokens that a worker may compute in a step; 0: prompts come computed.", low=0)] = 0
    prefill_cost: Annotated[str, Option("Time that a worker needs for a token of a prompt.")] = "0s"
    prefillers: Annotated[int, Option("Prefill instances.", first=True, low=0)] = 0
    pass_base: Annotated[str, Option("Time of a prefill pass.")] = "94.3ms"
    pass_per_token: Annotated[str, Option("Time of each of its tokens.")] = "80.1us"
    pass_tokens: Annotated[int, Option("Tokens of a pass at most.")] = 8192
    prefiller_kv: Annotated[int, Option("Tokens of a prefill instance's KV cache.")] = 400_000
    hold: Annotated[str, Option("How long blocks are held for a decode worker.")] = "480s"
    transfer: Annotated[str, Option("Time until remote blocks have arrived.")] = "0s"
    transfer_per_token: Annotated[str, Option("The same for each token of the prompt.")] = "0s"
    lengths: Annotated[
        str,
        Option(
            "Output tokens where max_tokens is not insisted on: `geometric:mean=256`, max-tokens, or a trace.",
            each=make_lengths,
        ),
    ] = "geometric:mean=256"
    max_model_len: Annotated[int, Option("Tokens of prompt and answer at most.")] = 131_072
    chunk_tokens: Annotated[int, Option("Tokens of an event at least.", low=1)] = 1
    wire: Annotated[
        str,
        Option(
            "**plain**: one event a piece; **joined**: two; **split**: every event in two pieces.",
            among=WIRES,
        ),
    ] = "plain"
    settle: Annotated[str, Option("Time after a step to join the next one.")] = "0s"
    served_model_name: Annotated[str | None, Option("Name of the model in `/v1/models`.", shown="the model card's")] = (
        None
    )
    fault: Annotated[
        tuple[str, ...],
        Option("What goes wrong: `crash:worker=3,at=10s,for=5s`, or @FILE with one a line.", empty=True),
    ] = ()

    def check(self) -> None:
        """Refuse fleets that do not fit together, and texts that say nothing."""
        if self.workers % self.groups:
            raise InputError(f"{self.workers} workers do not form {self.groups} groups of one size")
        if self.workers * self.slots > _MOST_SLOTS:
            given = f"workers is {shown(self.workers)} and slots {shown(self.slots)}"
            raise InputError(f"{given}; expected at most {_MOST_SLOTS:,} slots in all")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"port is {shown(self.port)}; expected 0 to 65535")
        last = self.port + (self.groups if self.one_endpoint else self.workers) + self.prefillers
        if self.port and last > 65_535:
            raise InputError(f"port {self.port} leaves no port for the last endpoint, {last}; expected 65535 at most")
        for name in ("hold", "transfer", "transfer_per_token", "settle"):
            self.seconds(name)
        self.pass_time()
        self.group_setting()
        for text in self.fault:
            if not text.startswith("@"):
                make_fault(text)

    @property
    def workers_per_group(self) -> int:
        """Workers that meet at one barrier."""
        return self.workers // self.groups

    @property
    def model_name(self) -> str:
        """What clients call the model."""
        return self.served_model_name or self.model

    @property
    def law(self) -> str:
        """The step-time law by its name."""
        return self.step_time or f"roofline:device={self.device},model={self.model},tp={self.tp}"

    def group_setting(self) -> GroupSetting:
        """Return the setting of each group."""
        preempt: Any = self.preempt
        chosen: Preempt = preempt
        return GroupSetting(
            num_workers=self.workers_per_group,
            slots=self.slots,
            form=make_step_time(self.law).form(self.workers_per_group, self.slots),
            kv_tokens=self.kv_capacity,
            block=self.block,
            watermark=self.watermark,
            preempt=chosen,
            prefill=self.prefill,
            prefill_cost=self.seconds("prefill_cost"),
        )

    def pass_time(self) -> PassTime:
        """Return how long a prefill pass takes."""
        return PassTime(self.seconds("pass_base"), self.seconds("pass_per_token"))

    def seconds(self, name: str) -> float:
        """Return a duration of the setting in s."""
        return duration(name.replace("_", " "), getattr(self, name))


#: Faults that last, and those that meet the next streams.
LASTING = ("crash", "dead", "freeze", "slow", "busy", "lost-metrics")
ON_STREAMS = ("reset", "half-close", "truncate", "stall")
MODES = ("error", "hang", "garbage")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Parameters
    ----------
    kind
        Out of `LASTING` and `ON_STREAMS`.
    worker, prefiller
        Which one it meets; one of them is None.
    at, lasts
        Durations, after it was read until it begins, and until it ends; None = for good.
    factor
        Of `slow`.
    after, count
        Events of a stream before it, and streams that it meets.
    mode
        Of `lost-metrics`.
    """

    kind: str
    worker: int | None = None
    prefiller: int | None = None
    at: str = "0s"
    lasts: str | None = None
    factor: float = 2.0
    after: int = 1
    count: int = 1
    mode: str = "error"

    def __post_init__(self) -> None:
        _ = self.seconds_before, self.seconds
        if (self.worker is None) == (self.prefiller is None):
            raise InputError(f"fault '{self.kind}' meets nothing; expected worker=NUMBER or prefiller=NUMBER")
        if self.kind == "slow" and not 0 < self.factor < math.inf:
            raise InputError(
                f"fault 'slow': factor is {self.factor:g}; expected a number above 0; `freeze` stops a worker"
            )
        if self.after < 0 or self.count < 1:
            given = f"after is {self.after} and count {self.count}"
            raise InputError(f"fault '{self.kind}': {given}; expected 0 and 1 at least")
        if self.mode not in MODES:
            raise InputError(f"fault '{self.kind}': mode is '{self.mode}'; expected {', '.join(MODES)}")

    @property
    def seconds_before(self) -> float:
        """Until it begins."""
        return duration(f"fault '{self.kind}': at", self.at)

    @property
    def seconds(self) -> float | None:
        """For which it lasts; None = for good."""
        return None if self.lasts is None else duration(f"fault '{self.kind}': for", self.lasts)

    def __str__(self) -> str:
        whom = f"worker={self.worker}" if self.prefiller is None else f"prefiller={self.prefiller}"
        return f"{self.kind}:{whom}"


def make_fault(text: str) -> Fault:
    """Read one fault.

    Raises
    ------
    InputError
        Naming what is unknown or out of range.
    """
    kind, _, rest = text.strip().partition(":")
    if kind not in LASTING + ON_STREAMS:
        raise unknown("fault", kind, LASTING + ON_STREAMS)
    # `for` is what one would say, and no name in Python
    words = ",".join("lasts=" + part[4:] if part.startswith("for=") else part for part in rest.split(","))
    return Fault(kind, **options_of("fault", kind, words, Fault))


def make_faults(lines: Iterable[str]) -> list[Fault]:
    """Read one fault a line; empty lines and what follows ``#`` are left out."""
    texts: list[Any] = [line.partition("#")[0].strip() for line in lines]
    return [make_fault(text) for text in texts if text]
