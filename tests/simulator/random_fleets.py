"""Random fleets in detail: small requests on small workers, so that everything happens within some hundred steps.

Seconds are multiples of 2^-20, so that sums of them are exact in whatever order they are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from naive import gates as twins

from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, RequestPrefixes, Trace
from lbopt.simulator import ClosedLoop, Detail, SimulationSetting, Telemetry, TraceTimes
from lbopt.simulator.gates import GATES, read_gate

TICK = 2.0**-20
BLOCK_TOKENS = 8
RULES = (
    "jsq",
    "jsq-load:admission=immediate",
    "round-robin",
    "power-of-two",
    "vllm",
    "sglang",
    "dynamo",
    "llm-d",
    "br-0-bypass",
    "max-min",
    "br-0:stage_switch=0",
    "jsq-load",
    "tensorrt-llm",
    "fcfs",
)
POOLED = frozenset({"max-min", "br-0:stage_switch=0", "jsq-load", "tensorrt-llm", "fcfs"})


@dataclass(frozen=True)
class RandomFleet:
    """What to simulate."""

    trace: Trace
    rule: str
    setting: SimulationSetting
    seed: int


def shared_prefixes(rng: np.random.Generator, trace: Trace) -> RequestPrefixes:
    """Return blocks along the paths of a random tree, up to the ends of the prompts and sometimes one block further."""
    children: dict[tuple[int, int], int] = {}
    blocks, counts = [], []
    for prompt in trace.prompt.tolist():
        at, count = -1, -(-prompt // BLOCK_TOKENS)
        for _ in range(count):
            at = children.setdefault((at, int(rng.integers(0, 2))), len(children))
            blocks.append(at)
        counts.append(count)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return RequestPrefixes(block_tokens=BLOCK_TOKENS, first=first, blocks=np.array(blocks, dtype=np.int64))


def random_gate(rng: np.random.Generator, name: str | None = None) -> str:
    """Return the text of a gate whose knobs are small, so that every case of it is met; memory is known."""

    def steps(most: int) -> int:
        return int(rng.integers(1, most))

    def share(*more: str) -> str:
        return str(rng.choice(["0.125", "0.5", "0.875", *more]))

    name = name or str(rng.choice(["vllm-ascend", "vllm", "sglang", "trtllm", "atom", "sbs"]))
    knobs = {
        "vllm-ascend": "",
        "vllm": f":interval={steps(12)}",
        "sglang": f":max_passes={steps(12)},low={share('none')},queue_ratio={share('none', '3')}"
        f",max_delay_ms={steps(90)}",
        "trtllm": f":timeout={steps(20)},wait={steps(8) - 1}",
        "atom": f":fill={share()},ttft_max_ticks={steps(20)},partial_max_ticks={steps(9)},stall_ticks={steps(5)},"
        f"kv_high_watermark={share('1')},low={share('none', 'none')},max_queue_ms={share('none', '50')}",
        "sbs": f":window={steps(5)},default_pass={share()},latency={rng.choice(['0', '0.0078125'])}",
    }
    return name + knobs[name]


def naive_gate(text: str) -> Any:
    """Return the twin of a gate; None where it does not decide about prompts."""
    name = text.partition(":")[0]
    knobs = read_gate(text).knobs
    return twins.GATES[name](*(float(knobs[knob]) for knob in GATES[name])) if name in twins.GATES else None


def random_fleet(seed: int, rules: tuple[str, ...] = RULES, gated: bool = False) -> RandomFleet:
    """Return fleet number `seed`; each option is on in about every second one, a gate in all if `gated`."""
    rng = np.random.default_rng(seed)

    def ticks(most: int) -> float:
        return float(rng.integers(0, most)) * TICK

    def sometimes() -> bool:
        return bool(rng.random() < 0.5)

    workers, slots, count = int(rng.integers(1, 6)), int(rng.integers(1, 7)), int(rng.integers(1, 60))
    rule = str(rng.choice(rules))
    draft = int(rng.integers(1, 4)) if sometimes() else 0
    block = int(rng.choice([1, 4, 16]))
    trace = Trace(
        prompt=rng.integers(0 if sometimes() else 1, 60, count),
        output=rng.integers(1, 30, count),
        arrival=np.sort(rng.integers(0, 40 * count, count)) * (1024 * TICK),
        name=f"random fleet {seed}",
    )
    prefill = int(rng.integers(slots * (1 + draft), slots * (1 + draft) + 40)) if gated or sometimes() else 0
    least = int((trace.prompt + trace.output).max()) + draft + block
    capacity = least + int(rng.integers(0, 60 * slots))
    chosen = [w for w in range(workers) if sometimes()]
    end = 40.0 * count * 1024 * TICK

    def moments() -> tuple[tuple[int, float], ...]:
        return tuple((w, float(rng.integers(0, 64)) / 64 * end) for w in range(workers) if rng.random() < 0.25)

    detail = Detail(
        preempt=str(rng.choice(["none", "recompute", "swap"])),
        block=block,
        watermark=float(rng.choice([0, 0.01, 0.25])),
        swap_cost=ticks(64),
        prefill=prefill,
        prefill_cost=ticks(64),
        transfer=0.0 if prefill or sometimes() else ticks(40_000),
        draft=draft,
        acceptance=float(rng.random()),
        spread=float(rng.choice([0, 0.3])),
        draft_cost=ticks(1000),
        slow=tuple((w, float(rng.choice([0.5, 1.5, 2.0]))) for w in chosen),
        slots=tuple((w, int(rng.integers(1, slots + 1))) for w in chosen),
        drain=moments(),
        leave=moments(),
        join=moments(),
    )
    telemetry = None
    if sometimes():
        pooled = rule in POOLED
        telemetry = Telemetry(
            period=float(rng.choice([0, 1 / 64, 1 / 8])),
            own="optimistic" if pooled or sometimes() else "none",
            jitter=0.0,
            front_ends=1 if pooled else int(rng.integers(1, 4)),
        )
    if not gated and sometimes():
        pausing = {
            "pause": str(rng.choice(["static", "dynamic"])),
            "pause_from": int(rng.integers(0, 20)),
            "pause_threshold": float(rng.choice([0.125, 0.5, 1, 2, 5, 40])),
            "pause_long": int(rng.integers(0, 60)) // block,
            "pause_for": int(rng.integers(1, 20)),
        }
        detail = replace(detail, **pausing)
    elif gated or sometimes():
        detail = replace(detail, gate=random_gate(rng) if prefill else "vllm-ascend")
    if prefill and sometimes():
        trace = replace(trace, prefixes=shared_prefixes(rng, trace))
        detail = replace(detail, prefix_cache=BLOCK_TOKENS * int(rng.integers(1, 40)))
    if rule.startswith("tpu-inference") and not prefill:
        rule = "jsq"
    return RandomFleet(
        trace,
        rule,
        SimulationSetting(
            Fleet(workers, slots, capacity),
            arrivals=TraceTimes() if sometimes() else ClosedLoop(int(rng.integers(1, 20))),
            event_order="theory" if sometimes() else "paper",
            step_time=AffineStepTime(float(rng.integers(1, 20_000)) * TICK, float(rng.integers(0, 400)) * TICK),
            telemetry=telemetry,
            detail=detail,
        ),
        seed,
    )
