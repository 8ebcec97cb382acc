"""Watts of a device by what it does: idle, waiting in several ways, reading, attending, multiplying.

A worker at a barrier waits for the heaviest. What it draws meanwhile decides how much energy imbalance costs, and it
depends on how it waits: nothing runs and the host sleeps (*idle*, *paused*: a launch every 5 ms), or a kernel polls a
flag until the others arrive, as collectives do (*spins*, on one thread up to a whole device). Each state is held for a
while and the device's own energy counter is read at both ends, so no sampling rate enters; states are visited in rounds
of random order. The waiting share is (waiting - idle) / (busy - idle), busy being the mean of attention and products:
what the price calls the way from idle to peak. *Idle* is the device held by a process, its clocks up.

NVIDIA's driver counts millijoules since Volta; the counter moves some ten times a second, so a window of two seconds is
known to some per cent. It counts the board, memory and regulators included.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lbopt.hardware.measure.backend import Backend
from lbopt.hardware.measure.timing import Estimate, Progress, median

#: Seconds for which a state is held before the counter is read.
SETTLE = 0.4
#: Seconds between two launches of the state "paused".
PAUSE = 0.005
#: Seconds of work that is handed to the device at once.
CHUNK = 0.05
ROUNDS = 3
#: Waiting kernels: name, blocks, threads of a block. Collectives wait with some tens of blocks of hundreds of threads.
SPINS = (("spins: 1 thread", 1, 1), ("spins: 16 blocks of 512", 16, 512), ("spins: 132 blocks of 1024", 132, 1024))


class EnergyCounter(Protocol):
    """Counts the energy that the device has drawn."""

    def joules(self) -> float:
        """Return J since some moment in the past."""


@dataclass(frozen=True, slots=True)
class State:
    """What a device does while its energy is counted: `call` again and again, or nothing where it is None."""

    name: str
    kind: str  # "idle", "waiting" or "busy"
    call: Callable[[], Any] | None
    pause: float = 0.0


@dataclass(slots=True)
class PowerTimes:
    """Watts of each state, all rounds and their median; of the waiting states their share of the way to busy."""

    states: list[State]
    watts: dict[str, list[float]] = field(default_factory=dict)
    medians: dict[str, Estimate] = field(default_factory=dict)
    interrupted: bool = False

    def middle(self, kind: str) -> float | None:
        """Return the mean of the medians of one kind of states; None where none was measured."""
        seen = [self.medians[state.name].value for state in self.states if state.kind == kind and self._has(state)]
        return float(np.mean(seen)) if seen else None

    def most(self) -> Estimate | None:
        """Return the watts of the hungriest state."""
        return max(self.medians.values(), key=lambda one: one.value, default=None)

    def share(self, name: str) -> float | None:
        """Return the share of the way from idle to busy that a state draws."""
        idle, busy = self.middle("idle"), self.middle("busy")
        if idle is None or busy is None or busy <= idle or name not in self.medians:
            return None
        return (self.medians[name].value - idle) / (busy - idle)

    def _has(self, state: State) -> bool:
        return state.name in self.medians


def seconds_needed(states: int, seconds: float) -> float:
    """Return the seconds that so many states take."""
    return states * ROUNDS * (seconds + SETTLE)


def waiting_states(backend: Backend) -> list[State]:
    """Return the states in which nothing is computed."""
    found = [State("idle", "idle", None)]
    for name, blocks, threads in SPINS:
        spin = backend.spin(blocks, threads)
        if spin is not None:
            found.append(State(name, "waiting", spin))
    if len(found) > 1:
        found.insert(1, State("paused: a launch every 5 ms", "waiting", backend.touch(), PAUSE))
    return found


def measure_power(
    states: Sequence[State],
    counter: EnergyCounter,
    backend: Backend,
    *,
    seconds: float,
    rng: np.random.Generator,
    now: Callable[[], float],
    progress: Progress,
    sleep: Callable[[float], None] = time.sleep,
) -> PowerTimes:
    """Hold each state for `seconds` in each of three rounds. Ctrl-C ends it with what there is.

    Parameters
    ----------
    rng
        Order of states in a round, and bootstrap.
    now
        Clock, seconds.
    """
    found = PowerTimes(list(states))
    progress.begin("power", ROUNDS * len(states))
    try:
        calls = [_calls(state, backend) for state in states]
        for _ in range(ROUNDS):
            for place in rng.permutation(len(states)).tolist():
                watts = _watts(states[place], calls[place], counter, backend, seconds, now, sleep)
                found.watts.setdefault(states[place].name, []).append(watts)
                progress.advance()
    except KeyboardInterrupt:
        found.interrupted = True
    found.medians = {name: median(np.array(seen), rng) for name, seen in found.watts.items()}
    return found


def _watts(
    state: State,
    calls: int,
    counter: EnergyCounter,
    backend: Backend,
    seconds: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> float:
    """Return the mean watts of one window."""
    _hold(state, calls, backend, now() + SETTLE, now, sleep)
    begin, before = now(), counter.joules()
    _hold(state, calls, backend, begin + seconds, now, sleep)
    return (counter.joules() - before) / (now() - begin)


def _hold(
    state: State,
    calls: int,
    backend: Backend,
    until: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Keep the device in a state until a moment."""
    call = state.call
    if call is None:
        sleep(max(0.0, until - now()))
        return

    def several() -> None:
        for _ in range(calls):
            call()

    while now() < until:
        backend.clock(several)
        if state.pause:
            sleep(state.pause)


def _calls(state: State, backend: Backend) -> int:
    """Return how many calls fill a chunk; one where the state pauses between them."""
    if state.call is None or state.pause:
        return 1
    backend.clock(state.call)
    return max(1, round(CHUNK / max(backend.clock(state.call), 1e-6)))


class NvidiaCounter:
    """The energy counter of NVIDIA's driver, through NVML (package nvidia-ml-py, imported on use).

    Where the driver has no counter, the watts that it reports are added up every 20 ms by a thread of their own; they
    lag by up to a second.
    """

    def __init__(self, index: int, uuid: str | None = None, nvml: Any = None) -> None:
        self._nvml = nvml or importlib.import_module("pynvml")
        self._nvml.nvmlInit()
        self._handle = (
            self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
            if uuid
            else self._nvml.nvmlDeviceGetHandleByIndex(index)
        )
        self._sum: float | None = None
        try:
            self.joules()
        except self._nvml.NVMLError:
            self._watts()  # a device that reports neither says so now
            self._sum = 0.0
            threading.Thread(target=self._add_up, daemon=True).start()

    def joules(self) -> float:
        """Return J since the driver was loaded, or since this counter was made."""
        if self._sum is not None:
            return self._sum
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3

    def _watts(self) -> float:
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3

    def _add_up(self) -> None:
        """Add watts times seconds, for as long as the process lives."""
        last = time.monotonic()
        while self._sum is not None:
            time.sleep(0.02)
            now = time.monotonic()
            self._sum += self._watts() * (now - last)
            last = now


def nvidia_counter(index: int, uuid: str | None = None) -> EnergyCounter | None:
    """Return the counter; None where package, driver or counter is missing."""
    try:
        return NvidiaCounter(index, uuid)
    except Exception:  # pynvml's errors have no parent that is known before its import
        return None
