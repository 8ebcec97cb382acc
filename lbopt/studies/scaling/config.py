"""What a scaling study is asked to do, as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np

import lbopt
from lbopt.exceptions import InputError
from lbopt.policies import Policy, foresight_of, make_policy
from lbopt.policies.editions import spelled_out
from lbopt.runner import Task
from lbopt.studies.option import Option
from lbopt.studies.plain import from_plain
from lbopt.studies.scaling.fleet import FleetTheory
from lbopt.theory.chains.batch_means import FEWEST_BATCHES, batch_steps, burn_in_steps
from lbopt.theory.chains.memory import require_memory
from lbopt.theory.laws.prompt_law import LONGEST

DEFAULT_WORKERS = (2, 4, 8, 16)
DEFAULT_SLOTS = (16, 32, 64, 128, 256)
DEFAULT_POLICIES = ("fcfs", "jsq:admission=pooled", "jsq-load:admission=pooled", "br-0", "bf-io")

#: The exact rule with a pool that never lacks a size, run by the theory's chain and not by the simulator.
REPLETE = "bf-io-replete"

CELL = "lbopt.studies.scaling.cell:measure"

#: Bytes that the simulator holds for a request, and for a step beside its workers' loads; measured, rounded up.
_BYTES_PER_REQUEST, _BYTES_PER_STEP = 150, 400

_SMALLER = "fewer workers or slots, fewer batches or a larger p"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingConfig:
    """Configuration of a scaling study.

    Parameters
    ----------
    workers, slots
        The grid of G and B.
    p
        Probability that a request ends in a step, so outputs have the mean 1/p.
    ends
        If given, p is `ends` / B instead: so many ends a worker and step, whatever B is.
    s_max
        Prompts are uniform on 1 .. s_max tokens.
    policies
        Rules without a window, and "bf-io-replete".
    pool
        Requests kept waiting, in multiples of the ends that a step has on average.
    batches
        Batches of 20/p steps after the burn-in, at least 20.
    time_limit
        Seconds that bf-io has for a decision, where its name does not say otherwise.
    seed
        Of requests and rules; rules on the same fleet get the same requests.
    """

    workers: Annotated[tuple[int, ...], Option("Number of workers; may be given again.", names=("--workers", "-G"))] = (
        DEFAULT_WORKERS
    )
    slots: Annotated[tuple[int, ...], Option("Slots per worker; may be given again.", names=("--slots", "-B"))] = (
        DEFAULT_SLOTS
    )
    p: Annotated[float, Option("Probability that a request ends in a step.", names=("--p",))] = 0.1
    ends: Annotated[float | None, Option("Take p = ends / B instead: so many ends a worker and step at every B.")] = (
        None
    )
    s_max: Annotated[int, Option("Prompts are uniform on 1 to this many tokens.", names=("--s-max",))] = 10
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule with one pool, or bf-io-replete; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            shown="fcfs, jsq, jsq-load, br-0, bf-io",
        ),
    ] = DEFAULT_POLICIES
    pool: Annotated[float, Option("Requests kept waiting, in multiples of a step's mean ends.")] = 3.0
    batches: Annotated[int, Option("Batches of 20/p steps, at least 20.")] = 20
    time_limit: Annotated[float, Option("Seconds a decision of bf-io.")] = 0.02
    seed: Annotated[int, Option("First seed.", first=True)] = 0

    def __post_init__(self) -> None:
        for name, least in (("workers", 2), ("slots", 1)):
            values = getattr(self, name)
            object.__setattr__(self, name, tuple(sorted(dict.fromkeys(values))))
            if not values or min(values) < least:
                raise InputError(f"{name} are {', '.join(map(str, values)) or 'none'}; expected at least {least} each")
        if not 0 < self.p < 1:
            raise InputError(f"p is {self.p}; expected a probability between 0 and 1")
        if self.ends is not None and not 0 < self.ends < min(self.slots):
            raise InputError(f"ends is {self.ends}; expected more than 0 and fewer than the {min(self.slots)} slots")
        if self.s_max < 2:
            raise InputError(f"s_max is {self.s_max}; prompts that do not vary leave nothing to choose: at least 2")
        if self.s_max > LONGEST:
            raise InputError(f"s_max is {self.s_max}; expected at most {LONGEST:,} tokens")
        if not 0 < self.time_limit < math.inf:
            raise InputError(f"time_limit is {self.time_limit}; expected seconds above 0")
        if not 1 <= self.pool <= 1000:
            raise InputError(f"pool is {self.pool}; expected 1 to 1000 times the ends of a step")
        if self.batches < FEWEST_BATCHES:
            raise InputError(f"batches is {self.batches}; fewer than {FEWEST_BATCHES} give no error to trust")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected 0 or more")
        object.__setattr__(self, "policies", tuple(dict.fromkeys(self.policies)))
        if not self.policies:
            raise InputError("no policy was named; give at least one")
        for policy in self.policies:
            if policy != REPLETE:
                self._require_pooled(policy, make_policy(policy))
        self._require_memory()
        for G, B in self.fleets():  # a law that is too wide is refused before anything runs
            FleetTheory.of(G, B, self.end_probability(B), self.s_max)

    def end_probability(self, B: int) -> float:
        """Return p for a fleet with `B` slots a worker."""
        return self.p if self.ends is None else self.ends / B

    def fleets(self) -> Iterator[tuple[int, int]]:
        """Yield (G, B), the small ones first."""
        for G in self.workers:
            for B in self.slots:
                yield G, B

    def task(self, policy: str, G: int, B: int) -> Task:
        """Return the task of one rule on one fleet."""
        given: dict[str, Any] = {
            "policy": spelled_out(policy),  # other processes do not know of editions
            "G": G,
            "B": B,
            "p": self.end_probability(B),
            "s_max": self.s_max,
            "batches": self.batches,
            "version": lbopt.__version__,
        }
        if policy != REPLETE:
            given |= {"pool": self.pool, "time_limit": self.time_limit}
        return Task(CELL, given, int(np.random.SeedSequence((self.seed, G, B)).generate_state(1)[0]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> ScalingConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a scaling study", source=source)

    def _require_pooled(self, name: str, policy: Policy) -> None:
        if policy.admission != "pooled":
            raise InputError(
                f"policy '{name}' binds requests on arrival, and the study compares rules with one pool; "
                "try admission=pooled"
            )
        if foresight_of(policy) is not None:
            raise InputError(
                f"policy '{name}' looks ahead, and the study compares rules that see the present alone; "
                "take it without a horizon, or br-0 or bf-io"
            )

    def _require_memory(self) -> None:
        G, B = self.workers[-1], self.slots[-1]
        p = self.end_probability(B)
        steps = steps_of(G, B, p, self.batches)
        if set(self.policies) == {REPLETE}:  # no requests: a chain of slots
            require_memory(
                steps * _BYTES_PER_STEP + G * B * 40, f"the grid's largest cell, G = {G}, B = {B},", _SMALLER
            )
            return
        requests, _ = requests_of(G, B, p, steps, self.pool)
        require_memory(
            requests * _BYTES_PER_REQUEST + steps * (_BYTES_PER_STEP + 16 * G),
            f"the grid's largest cell, G = {G}, B = {B} with {requests:,} requests,",
            _SMALLER,
        )


def steps_of(G: int, B: int, p: float, batches: int) -> int:
    """Return the steps of a cell, burn-in included.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    batches
        Number of batches of the mean.
    """
    return burn_in_steps(G, B, p) + batches * batch_steps(p)


def requests_of(G: int, B: int, p: float, steps: int, pool: float) -> tuple[int, int]:
    """Return the requests that last for so many steps, and those kept waiting.

    Ends are binomial: six standard deviations are added to both.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    steps
        Number of steps.
    pool
        Requests kept waiting, in multiples of a step's mean ends.
    """
    each = p * G * B
    waiting = math.ceil(pool * each + 6 * math.sqrt(each)) + G
    taken = math.ceil(steps * each + 6 * math.sqrt(steps * each))
    return G * B + taken + 2 * waiting, waiting
