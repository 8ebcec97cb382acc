"""What binding a request before it can start costs, and what a pool costs that sees free slots late (lbopt)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lbopt.theory.chains.batch_means import batch_steps, burn_in_steps, steps_mean
from lbopt.theory.chains.open_fleet import BOUND_RULES, BoundFleet, pool_by_report
from lbopt.theory.claim import claim
from lbopt.theory.finding import Finding
from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.laws.stale import bound_floor, bound_level, random_waiting, seen_share
from lbopt.theory.regime import Asks, Batched, Fleet, OpenRegime, PromptFleet, between, measured_in, one_of, require

#: What a levelling rule with queues leaves above what workers alike do at most, where the queue is deep.
ABOVE_FLOOR = 0.10

#: Least ends of a step and worker: with fewer, the sizes of a step level nothing.
ENDS = 10.0


@dataclass(frozen=True, kw_only=True)
class QueuedFleet(Batched, PromptFleet):
    """A saturated fleet in which each worker has a queue of bound requests.

    Parameters
    ----------
    queue
        Requests bound to each worker that have not started.
    rule
        A rule of `BoundFleet`.
    """

    B: int = 128
    p: float = 0.1
    s_max: int = 200
    queue: int = 64
    rule: str = "levelled"
    asks: ClassVar[Asks] = {
        "queue": between(1, 10_000, "a queue of 1 to 10,000 requests"),
        "rule": one_of(BOUND_RULES, "a rule of"),
    }

    def require(self, claim: str) -> None:
        """Refuse more slots than are run one by one."""
        super().require(claim)
        slots = self.G * self.B
        require(claim, slots <= 1 << 20, "at most 2^20 slots, which are run one by one", f"G B is {slots}")

    @property
    def fleet(self) -> BoundFleet:
        """The fleet, with uniform prompts."""
        return BoundFleet(G=self.G, B=self.B, p=self.p, prompts=PromptLaw.uniform(self.s_max), queue=self.queue)


@dataclass(frozen=True, kw_only=True)
class SplitFleet(Batched, Fleet):
    """Workers among which the arrivals are split by chance.

    Parameters
    ----------
    load
        Arrivals as a share of what the slots serve.
    """

    B: int = 64
    p: float = 0.1
    load: float = 0.9
    asks: ClassVar[Asks] = {
        "B": between(2, 2000, "2 to 2,000 slots a worker"),
        "load": between(0.3, 0.97, "a load from 0.3 to 0.97, which settles"),
    }

    def require(self, claim: str) -> None:
        """Refuse what an open fleet refuses."""
        super().require(claim)
        self.open.require(claim)

    @property
    def open(self) -> OpenRegime:
        """The open fleet that this is; prompts play no part."""
        arrivals = self.load * self.p * self.B
        return OpenRegime(G=self.G, arrivals=arrivals, p=self.p, s_max=2, period=1, batches=self.batches)

    def __str__(self) -> str:
        """Return the fleet in the words of the report."""
        return f"{super().__str__()}, load {self.load:g}"


@dataclass(frozen=True, kw_only=True)
class SeenSlots(OpenRegime):
    """Slots that a pool without end fills at reports alone; prompts play no part.

    Parameters
    ----------
    B
        Slots that are looked at.
    """

    s_max: int = 2
    B: int = 512
    asks: ClassVar[Asks] = {"B": between(1, 1 << 20, "1 to 2^20 slots")}

    def __str__(self) -> str:
        """Return the slots in the words of the report."""
        return f"{self.family or f'p={self.p:g}'}, T={self.period}"


@measured_in("binding-floor", QueuedFleet)
def measure_bound(at: QueuedFleet, seed: int) -> list[Finding]:
    """Run a saturated fleet in which each worker has a queue of bound requests."""
    fleet, ends, length = at.fleet, at.p * at.B, batch_steps(at.p)
    imbalance = fleet.imbalance(at.rule, at.batches * length, burn_in_steps(at.G, at.B, at.p), seed)
    mean, floor, level = steps_mean(imbalance, length), bound_floor(fleet), bound_level(fleet)
    outside = ""
    if ends < ENDS:
        outside = f"{ends:.2g} ends a step and worker are below {ENDS:g}: their sizes level little"
    elif at.queue < 1.95 * ends:
        outside = "a wait below two steps: what one step's sizes leave unlevelled counts"
    wait = at.queue / ends
    sides = [(">=", floor, "the floor of any rule")]
    if at.rule == "levelled":
        sides.append((">=", level, "what workers alike leave"))
        if abs(wait - round(wait)) <= 0.02:
            sides.append(("<=", (1 + ABOVE_FLOOR) * level, f"{1 + ABOVE_FLOOR:g} times that"))
    return [
        mean.finding(
            f"G={at.G}, p={at.p:g}, {fleet.prompts.name}, queue={at.queue}, {at.rule}",
            f"mean imbalance (tokens), against {name}",
            bound,
            relation,
            outside=outside,
            note=f"{mean.mean / level:.3f} times what workers alike leave; a request waits {wait:.3g} steps",
            B=at.B,
        )
        for relation, bound, name in sides
    ]


@measured_in("binding-random", SplitFleet)
def measure_random(at: SplitFleet, seed: int) -> list[Finding]:
    """Bind each arrival to a worker by chance, and count who waits."""
    G, B, p, arrivals = at.G, at.B, at.p, at.open.arrivals
    length = 4 * batch_steps(p)
    waiting = at.open.fleet(seed, slots=B).run("random", at.batches * length, seed).waiting
    return [
        steps_mean(waiting, length).finding(
            str(at),
            "requests that wait at a worker, random split",
            random_waiting(arrivals, p, B),
            note=f"in a pool of all slots {random_waiting(G * arrivals, p, G * B) / G:.2g} a worker",
            B=B,
        )
    ]


@measured_in("stale-pool", SeenSlots, without=("G", "arrivals", "s_max"))
def measure_seen(at: SeenSlots, seed: int) -> list[Finding]:
    """Fill slots at reports alone, from a pool that never ends."""
    requests, period = at.requests(seed), at.period
    lives = requests.lives
    length = -(-int(20 * lives.mean) // period) * period
    skipped = -(-lives.alive.size // period) * period
    busy = pool_by_report(requests, at.B, period, skipped + at.batches * length, seed)[skipped:]
    return [
        steps_mean(busy.astype(np.float64), length).finding(
            str(at), "share of slots that are busy", seen_share(lives, period), B=at.B
        )
    ]


CLAIMS = (
    claim(
        "binding-floor",
        measure_bound,
        quick=({}, {"queue": 128}, {"rule": "present"}),
        full=(
            *({"queue": Q, "batches": 30} for Q in (64, 128, 192)),
            *({"queue": Q, "B": 512, "s_max": 20} for Q in (128, 256)),
            {"queue": 256, "G": 16, "B": 256},
            *({"queue": Q, "rule": "present"} for Q in (32, 128)),
        ),
    ),
    claim(
        "binding-random",
        measure_random,
        quick=({}, {"B": 16, "load": 0.8}),
        full=(
            *({"G": 32, "B": 8, "load": load, "batches": 100} for load in (0.7, 0.8)),
            *({"load": load, "batches": 40} for load in (0.8, 0.9)),
        ),
    ),
    claim(
        "stale-pool",
        measure_seen,
        quick=({}, {"p": 0.02, "period": 5}),
        full=(
            *({"p": p, "period": T, "batches": 100} for p in (0.02, 0.1, 0.5) for T in (2, 10, 50)),
            *({"family": name, "period": 100} for name in ("azure-like", "burstgpt-like")),
        ),
    ),
)
