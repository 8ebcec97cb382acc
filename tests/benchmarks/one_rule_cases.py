"""The cases on which one rule for all is sought: real traces, generated families, fleets, arrivals, sight, draws.

Everything here was written before any rule was tuned. `TRAINING` names the two traces that may be tuned on; all others
are held out. What is generated says so in its name.

A draw is a sequence of blocks of 200 requests that follow on each other in the source, drawn with replacement
(moving blocks: H. Künsch, *The jackknife and the bootstrap for general stationary observations*, 1989). So requests
that belong together stay together, and bursts stay bursts. Every rule runs over the same draws.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from lbopt.instances import read_trace
from lbopt.model import Fleet, Trace
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, TraceTimes

#: Slots of a worker.
SLOTS = 72
#: A run fills every slot anew at least so often, on average ...
TURNOVERS = 30
#: ... and lasts at least so many times as long as its longest request, so that the drain has little weight.
LIFETIMES = 2
#: Draws of a case.
DRAWS = 4
#: Requests that stay together in a draw.
BLOCK = 200
#: Requests of a generated source, from which draws are made as from a file.
GENERATED = 20_000

FILES = {
    "burstgpt": "burstgpt_8000.json",
    "mooncake": "mooncake_conversation.jsonl",
    "azure-conv": "azure_llm_2023_conv.csv",
    "azure-code": "azure_llm_2023_code.csv",
    "arxiv": "arxiv_8000.json",
}
TRAINING = ("burstgpt", "mooncake")


def heavy_tail() -> Trace:
    """Long contexts with a heavy tail, short outputs: documents of 500 to 128,000 tokens, Pareto with exponent 1.1."""
    rng = np.random.default_rng(20_261)
    prompt = np.minimum(500 * (1 + rng.pareto(1.1, GENERATED)), 128_000).astype(np.int64)
    output = rng.geometric(1 / 80, GENERATED)
    return Trace(prompt=prompt, output=output, arrival=_poisson(rng, GENERATED), name="generated-heavy-tail")


def tool_use() -> Trace:
    """Agents that call tools: a shared prefix of 2,000 to 30,000 tokens, to which every turn of a session adds.

    Forty sessions run at a time. A turn is a call of some 40 tokens or, one time in six, an answer of some 500; its
    result adds 50 to 5,000 tokens to the context. A session ends after 12 turns on average, or beyond 120,000 tokens.
    """
    rng = np.random.default_rng(20_262)
    prefixes = np.array([2_000, 4_000, 4_000, 8_000, 8_000, 12_000, 20_000, 30_000])
    held = prefixes[rng.integers(0, prefixes.size, 40)]
    prompt, output = np.empty(GENERATED, np.int64), np.empty(GENERATED, np.int64)
    for turn in range(GENERATED):
        session = int(rng.integers(0, held.size))
        output[turn] = rng.geometric(1 / 500 if rng.random() < 1 / 6 else 1 / 40)
        prompt[turn] = held[session]
        held[session] += output[turn] + int(np.exp(rng.uniform(np.log(50), np.log(5_000))))
        if rng.random() < 1 / 12 or held[session] > 120_000:
            held[session] = prefixes[rng.integers(0, prefixes.size)]
    return Trace(prompt=prompt, output=output, arrival=_poisson(rng, GENERATED), name="generated-tool-use")


def bursts() -> Trace:
    """Chats of some 400 tokens, and bursts of 20 to 200 alike long requests at 20 times the rate."""
    rng = np.random.default_rng(20_263)
    prompt, output, gap = [], [], []
    while len(prompt) < GENERATED:
        quiet = int(rng.integers(100, 600))
        prompt += np.maximum(1, rng.lognormal(6.0, 1.0, quiet)).astype(int).tolist()
        output += rng.geometric(1 / 250, quiet).tolist()
        gap += rng.exponential(1.0, quiet).tolist()
        crowd, size = int(rng.integers(20, 200)), rng.uniform(4_000, 24_000)
        prompt += (size * rng.uniform(0.8, 1.2, crowd)).astype(int).tolist()
        output += rng.geometric(1 / 120, crowd).tolist()
        gap += rng.exponential(0.05, crowd).tolist()
    arrival = np.round(np.cumsum(gap[:GENERATED]), 6)
    return Trace(prompt=prompt[:GENERATED], output=output[:GENERATED], arrival=arrival, name="generated-bursts")


FAMILIES: dict[str, Callable[[], Trace]] = {
    "generated-heavy-tail": heavy_tail,
    "generated-tool-use": tool_use,
    "generated-bursts": bursts,
}
TRACES = (*FILES, *FAMILIES)
HELD_OUT = tuple(name for name in TRACES if name not in TRAINING)


def _poisson(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.round(np.cumsum(rng.standard_exponential(count)), 6)


@cache
def source(name: str, data: Path) -> Trace:
    """Return the requests of a file or a family; files without times arrive as a Poisson process."""
    if name in FAMILIES:
        return FAMILIES[name]()
    trace = read_trace(data / FILES[name])
    if trace.arrival is not None:
        return trace
    arrival = _poisson(np.random.default_rng(20_264), len(trace))
    return Trace(prompt=trace.prompt, output=trace.output, arrival=arrival, name=trace.name)


def drawn(trace: Trace, count: int, draw: int) -> Trace:
    """Return `count` requests in blocks that follow on each other in the source."""
    rng = np.random.default_rng([zlib.crc32(trace.name.encode()), draw])
    blocks = -(-count // BLOCK)
    rows = (rng.integers(0, len(trace), blocks)[:, None] + np.arange(BLOCK)).ravel()[:count] % len(trace)
    gaps = np.diff(trace.arrival, append=trace.arrival[-1] * len(trace) / (len(trace) - 1))
    return Trace(
        prompt=trace.prompt[rows],
        output=trace.output[rows],
        arrival=np.round(np.cumsum(gaps[rows]), 6),
        name=trace.name,
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the judgement: whose requests, how many workers, how requests come, how old the sight is.

    Parameters
    ----------
    trace
        Of `TRACES`.
    workers
        G.
    arrivals
        "closed": 4 G requests wait; "deep": as many wait as there are slots; a number: the trace's times, at that share
        of saturation.
    period
        Seconds between reports; None = routers see the truth.
    """

    trace: str
    workers: int
    arrivals: str
    period: float | None = None

    @property
    def name(self) -> str:
        """What tables call it."""
        sight = "" if self.period is None else f", reports {1000 * self.period:g} ms"
        return f"{self.trace}, G = {self.workers}, {self.arrivals}{sight}"

    @property
    def setting(self) -> SimulationSetting:
        """The simulation."""
        fleet = Fleet(self.workers, SLOTS)
        how = {"closed": ClosedLoop(), "deep": ClosedLoop(fleet.num_slots)}.get(self.arrivals)
        telemetry = None if self.period is None else Telemetry(self.period)
        return SimulationSetting(fleet, how or TraceTimes(float(self.arrivals)), telemetry=telemetry)

    def requests(self, data: Path, draw: int, turnovers: float | None = None) -> Trace:
        """Return a draw, of a length that fits or that fills every slot `turnovers` times."""
        whole = source(self.trace, data)
        fitting = max(TURNOVERS, LIFETIMES * whole.output.max() / whole.output.mean())
        return drawn(whole, int((turnovers or fitting) * self.workers * SLOTS), draw)


#: (G, arrivals, period) of every trace.
SETTINGS: tuple[tuple[int, str, float | None], ...] = (
    *((G, "closed", None) for G in (8, 16, 64)),
    (16, "deep", None),
    (16, "0.9", None),
    (64, "0.9", None),
    (16, "closed", 0.1),
    (16, "closed", 1.0),
    (64, "closed", 1.0),
    (16, "0.9", 1.0),
    (144, "closed", None),
)


def cases(traces: tuple[str, ...]) -> list[Case]:
    """Return all cases of some traces."""
    return [Case(trace, *setting) for setting in SETTINGS for trace in traces]
