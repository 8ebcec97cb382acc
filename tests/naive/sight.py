"""Stale sight, by the words of the manual (docs/simulator.md, "What routers see")."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Telemetry:
    """How reports come; `draws(worker, number)` gives the two random numbers of a report."""

    period: float
    own: str = "optimistic"
    jitter: float = 0.0
    lost: float = 0.0
    front_ends: int = 1
    draws: Callable[[int, int], tuple[float, float]] = lambda worker, number: (0.5, 1.0)


@dataclass
class Worker:
    """One worker, as one front end sees it."""

    load: int = 0
    running: int = 0
    queued: int = 0
    queued_tokens: int = 0
    committed: int = 0  # blocks, where memory can run out


@dataclass
class Sight:
    """What all front ends see."""

    telemetry: Telemetry
    slots: int
    seen: list[list[Worker]] = field(default_factory=list)  # by front end and worker
    due: list[float] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    counter: list[int] = field(default_factory=list)  # round robin, by front end

    @classmethod
    def of(cls, telemetry: Telemetry, num_workers: int, slots: int) -> "Sight":
        """An empty fleet, whose first reports are due at once."""
        seen = [[Worker() for _ in range(num_workers)] for _ in range(telemetry.front_ends)]
        return cls(telemetry, slots, seen, [0.0] * num_workers, [0] * num_workers, [0] * telemetry.front_ends)

    def report(self, clock: float, truth: Sequence[tuple[int, ...]]) -> None:
        """Make all reports that are due; `truth` has of each worker what `Worker` lists, in this order."""
        for worker, present in enumerate(truth):
            arrived = []
            while self.due[worker] <= clock:
                u_jitter, u_lost = self.telemetry.draws(worker, self.number[worker])
                arrived.append(not u_lost < self.telemetry.lost)
                self.number[worker] += 1
                if self.telemetry.period == 0:
                    break
                factor = 1.0 + self.telemetry.jitter * (2.0 * u_jitter - 1.0)
                self.due[worker] = self.due[worker] + self.telemetry.period * factor
            if any(arrived):
                for front_end in self.seen:
                    front_end[worker] = Worker(*present)

    def sent(self, front_end: int, worker: int, prompt: int) -> None:
        """A front end has sent a request."""
        if self.telemetry.own != "optimistic":
            return
        seen = self.seen[front_end][worker]
        if seen.running < self.slots:
            seen.running += 1
            seen.load += prompt
        else:
            seen.queued += 1
            seen.queued_tokens += prompt

    def looks_empty(self) -> bool:
        """Does every front end see an empty fleet? Then no report will change what it does."""
        return all(seen.running == 0 and seen.queued == 0 for front_end in self.seen for seen in front_end)
