"""The rules of a prefill simulation: instances and their passes, the way to them, and who binds a request when.

What a number of a setting can be, said at its field by ``Annotated``, and the refusal of what is outside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.prefill.codes import BACK_TO_BACK, WORK_CONSERVING
from lbopt.kinds import refuse_kinds
from lbopt.prefill.allocations import Allocation, make_allocation
from lbopt.prefill.policies import DispatchPolicy, make_prefill_policy
from lbopt.spec import unknown


@dataclass(frozen=True, slots=True)
class Range:
    """Metadata of a field; None, where the field can be that, is in every range.

    Parameters
    ----------
    expected
        What a refusal says was expected.
    low, high
        Least and largest value; without a largest one the value has to be finite.
    above, below
        Whether the least, the largest value is excluded itself.
    unit
        Said after the value.
    """

    expected: str
    low: float = 0
    high: float = math.inf
    above: bool = False
    below: bool = False
    unit: str = ""

    def holds(self, value: Any) -> bool:
        """Whether a value is in range; NaN is in none."""
        low = value > self.low if self.above else value >= self.low
        return bool(low and (value < self.high if self.below or self.high == math.inf else value <= self.high))


SECONDS = Range("0 or more", unit=" s")
PROBABILITY = Range("a probability, 0 to 1", high=1)
TOKENS = Range("at least 1 token, or None for no limit", low=1, high=2**50, below=True)
REQUESTS = Range("at least 1 request, or None for no limit", low=1, high=2**50, below=True)


@cache
def _ranges(kind: type[Any]) -> dict[str, Range]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: one for name, hint in hints.items() for one in getattr(hint, "__metadata__", ())}


def refuse_outside(record: Any, what: str = "") -> None:
    """Raise InputError for the first field of a record that is out of its range; `what` is said before its name."""
    for name, allowed in _ranges(type(record)).items():  # type: ignore[arg-type]  # a class is hashable
        value = getattr(record, name)
        if value is not None and not allowed.holds(value):
            raise InputError(f"{what}{name} is {value}{allowed.unit}; expected {allowed.expected}")


def refuse_others(**named: tuple[Any, Iterable[str]]) -> None:
    """Raise InputError for the first name that is not among those that there are."""
    for what, (name, known) in named.items():
        if name not in known:
            raise unknown(what, name, known)


#: Shorter passes would vanish in the rounding of the clock of a long run.
SHORTEST_PASS = 1e-6


_NO_NEGATIVE_TIME = Range("0 or more, as no pass takes negative time", unit=" s")


@dataclass(frozen=True, slots=True)
class PassTime:
    """base + per_token * fullest unit + per_longest * longest chunk of a request + per_mean * mean unit, in tokens.

    The default is the line through the published utilisations and rates (Table 1), 94.3 ms and 0.0801 ms a token of
    a unit, within 1.7 ms. What was published are cycles, so that passes may be shorter. per_token = 0 is the
    batch-insensitive pass of the waiting law.

    Parameters
    ----------
    base
        s, at least a microsecond.
    per_token, per_longest, per_mean
        s per token, >= 0. What experts compute is shared by all units, if routing is even, and goes by the mean; the
        source has no such term.
    """

    base: Annotated[float, _NO_NEGATIVE_TIME] = 0.0943
    per_token: Annotated[float, _NO_NEGATIVE_TIME] = 80.1e-6
    per_longest: Annotated[float, _NO_NEGATIVE_TIME] = 0.0
    per_mean: Annotated[float, _NO_NEGATIVE_TIME] = 0.0

    def __post_init__(self) -> None:
        refuse_outside(self, "pass time: ")
        if self.base < SHORTEST_PASS:
            raise InputError(f"pass time: base is {self.base} s; expected at least {SHORTEST_PASS} s")

    @classmethod
    def constant(cls, seconds: float) -> PassTime:
        """Return the pass that takes so long whatever it holds."""
        return cls(seconds, 0.0)

    def seconds(self, fullest: int, longest: int = 0, mean: float = 0.0) -> float:
        """Return the time of a pass of so many tokens of its fullest unit, of a request at most, and of a mean unit."""
        return self.base + self.per_token * fullest + self.per_longest * longest + self.per_mean * mean

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


MOST_INSTANCES = 4096
MOST_UNITS = 4096

#: ``work-conserving``: an idle instance starts when a request is there. ``back-to-back``: one pass follows the other,
#: empty if no request is there (assumption A2 of the waiting law).
ENGINES: dict[str, int] = {"work-conserving": WORK_CONSERVING, "back-to-back": BACK_TO_BACK}
PHASES = ("random", "even", "free")


@dataclass(frozen=True, slots=True)
class PrefillSetting:
    """Everything about a run but the requests and the seed.

    Parameters
    ----------
    num_instances, units_per_instance
        N instances of D units; an instance's pass lasts until its fullest unit is done.
    policy
        Who binds a request to an instance, and when: a name with options, or a `DispatchPolicy`.
    allocation
        How the requests of a batch are given to the units of the instance: a name from `ALLOCATIONS`, with options as
        ``name:option=value``.
    pass_time
        Seconds of a pass.
    chunk_tokens
        Most tokens of a unit in a pass, >= 1; None = no limit. What exceeds it goes on first in the next pass.
    requests_per_pass
        Most requests of a unit in a pass, >= 1; None = no limit.
    latency
        s, from the scheduler to an instance, >= 0. That an instance is free is known at once.
    engine
        When a pass starts, out of `ENGINES`.
    phases
        Until when each instance is busy, with an empty pass, at the start: ``random`` (uniform on a base pass, by the
        seed), ``even`` (g / N of a base pass), ``free`` (0), or N times in s. Instances are numbered in this order.
    queue_limit
        An arrival is refused when so many have come and not begun, >= 1; None = never.
    topology
        (time in s, healthy instances from then on), ascending; instances from that number on finish what they have and
        get nothing new. Not for policies that bind on arrival.
    """

    num_instances: int
    units_per_instance: Annotated[int, Range(f"1 to {MOST_UNITS}", low=1, high=MOST_UNITS)] = 1
    policy: DispatchPolicy | str = "pooled"
    allocation: str = "least-loaded"
    pass_time: PassTime = field(default_factory=PassTime)
    chunk_tokens: Annotated[int | None, TOKENS] = None
    requests_per_pass: Annotated[int | None, REQUESTS] = None
    latency: Annotated[float, SECONDS] = 0.0
    engine: Literal["work-conserving", "back-to-back"] = "work-conserving"
    phases: str | tuple[float, ...] = "random"
    queue_limit: Annotated[int | None, REQUESTS] = None
    topology: tuple[tuple[float, int], ...] = ()

    def __post_init__(self) -> None:
        refuse_kinds(self)
        if isinstance(self.policy, str):
            object.__setattr__(self, "policy", make_prefill_policy(self.policy))
        if self.num_instances < 1:
            raise InputError(f"there are {self.num_instances} instances; expected at least 1 to serve requests")
        if self.num_instances > MOST_INSTANCES:
            raise InputError(f"there are {self.num_instances} instances; expected at most {MOST_INSTANCES}")
        refuse_outside(self)
        if self.rule.chooses and self.dispatch.immediate:
            raise InputError(
                f"allocation '{self.rule.name}' holds requests back, but policy '{self.dispatch.name}' binds them on "
                "arrival; expected pooled or staggered"
            )
        self._check_phases()
        self._check_topology()

    @property
    def dispatch(self) -> DispatchPolicy:
        """The policy, built."""
        assert isinstance(self.policy, DispatchPolicy)
        return self.policy

    @property
    def rule(self) -> Allocation:
        """The allocation, built."""
        return make_allocation(self.allocation)

    def initial_phases(self, seed: int) -> NDArray[np.float64]:
        """Return until when each instance is busy at the start, float64 (N,), s, ascending."""
        N, base = self.num_instances, self.pass_time.base
        if self.phases == "random":
            return base * np.sort(np.random.default_rng([seed, 2]).random(N))
        if self.phases == "even":
            even: NDArray[np.float64] = base / N * np.arange(N, dtype=np.float64)
            return even
        if self.phases == "free":
            return np.zeros(N)
        return np.array(self.phases, dtype=np.float64)

    def saturating_rate(self, mean_tokens: float) -> float:
        """Return the requests a second that instances in full passes can just keep up with; infinite without a chunk.

        `mean_tokens` is the mean of what a request has to compute, tokens. Units that are not equally full saturate
        sooner.
        """
        if self.chunk_tokens is None:
            return math.inf
        full = self.chunk_tokens
        seconds = self.pass_time.seconds(full, full, full)
        return self.num_instances * self.units_per_instance * full / seconds / mean_tokens

    def describe(self) -> dict[str, Any]:
        """Return the setting as plain data."""
        rest = ("num_instances", "units_per_instance", "allocation", "chunk_tokens", "requests_per_pass", "latency")
        more = ("engine", "phases", "queue_limit", "topology")
        return {
            "policy": self.dispatch.describe(),
            "pass_time": self.pass_time.describe(),
            **{name: getattr(self, name) for name in (*rest, *more)},
        }

    def _check_phases(self) -> None:
        if isinstance(self.phases, str):
            if self.phases not in PHASES:
                raise unknown("phases", self.phases, PHASES)
            return
        times = np.array(self.phases, dtype=np.float64)
        if times.shape != (self.num_instances,):
            raise InputError(f"there are {times.size} phases; expected one for each of {self.num_instances} instances")
        if not (np.isfinite(times).all() and (times >= 0).all() and (np.diff(times) >= 0).all()):
            raise InputError(f"phases are {times.tolist()}; expected times from 0 on, in ascending order")

    def _check_topology(self) -> None:
        if not self.topology:
            return
        if self.dispatch.immediate:
            raise InputError(
                f"policy '{self.dispatch.name}' binds on arrival and does not follow a changing topology; expected "
                "pooled or staggered"
            )
        before = 0.0
        for time, healthy in self.topology:
            if not (math.isfinite(time) and time >= before):
                raise InputError(f"topology changes at {time} s after {before} s; expected times from 0 on, ascending")
            if not 0 <= healthy <= self.num_instances:
                raise InputError(
                    f"topology leaves {healthy} instances at {time} s; expected 0 to num_instances = "
                    f"{self.num_instances}"
                )
            before = time
        if self.topology[-1][1] == 0:
            raise InputError(
                f"topology leaves no healthy instance from {before} s on, so that later requests would wait for ever; "
                "end it with at least 1"
            )
