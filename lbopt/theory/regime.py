"""Regimes: the parameters of a measurement, each with its default, its meaning and its check in one place.

What the theorems assume, checked: a parameter outside is refused by the name of the claim and of the assumption.

What a parameter may be is said once, where it is declared: `USUAL` for the names that mean the same in every claim, the
table `asks` of a regime or of `measured` for the others.

A claim measures in a `Fleet` or in one of its extensions. Other defaults and further parameters are a subclass in the
claim's own file. `measured_in` makes the `measure` of a claim from a function of such a regime and a seed: it takes the
fields as keywords, shows them in its signature, and refuses by the claim's name what the regime's `require` refuses.
`measured` does the same for a function that takes its parameters as keywords.

Regimes of open fleets: requests come to the workers in every step, and the router sees reports of some age.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from lbopt.exceptions import InputError
from lbopt.instances import open_trace
from lbopt.instances.families import ALL_NAMES
from lbopt.theory.chains.batch_means import FEWEST_BATCHES, batch_steps
from lbopt.theory.chains.open_fleet import OpenFleet, Requests
from lbopt.theory.chains.replete import PEAKS, POOLS, Replete, RepleteRun
from lbopt.theory.claim import Measure
from lbopt.theory.finding import Finding
from lbopt.theory.laws.gap_bounds import CLEAR, onset
from lbopt.theory.laws.slot_law import LONGEST, PromptLaw

#: Workers, and slots of each: beyond, numbers leave the range of floats or of memory in ways that say less.
MOST = 10**9


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a parameter: a test, and its words."""

    holds: Callable[[Any], bool]
    words: str


#: What is asked of parameters, by their names.
Asks = Mapping[str, tuple[Asked, ...]]


def between(least: float, most: float, words: str) -> tuple[Asked, ...]:
    """Ask for a number from `least` to `most`."""
    return (Asked(lambda value: least <= value <= most, words),)


def at_least(least: float, words: str) -> tuple[Asked, ...]:
    """Ask for a number of at least so much."""
    return between(least, math.inf, words)


def one_of(known: Collection[str], words: str) -> tuple[Asked, ...]:
    """Ask for one of the names, which end the words."""
    return (Asked(known.__contains__, f"{words} {', '.join(known)}"),)


USUAL: Asks = {
    "G": (*at_least(2, "at least G = 2 workers"), *between(2, MOST, f"at most {MOST:,} workers")),
    "B": (*at_least(1, "at least B = 1 slot a worker"), *between(1, MOST, f"at most {MOST:,} slots a worker")),
    "p": (Asked(lambda p: 0 < p < 1, "outputs of law Geo(p) with 0 < p < 1"),),
    "s_max": (
        *at_least(2, "prompts that vary, so s_max of at least 2"),  # every statement divides by their spread
        *between(2, LONGEST, f"prompts of at most {LONGEST:,} tokens"),
    ),
    "pool": (Asked(POOLS.__contains__, "a replete pool of 'all' sizes or of 'two'"),),
    "peak": one_of(PEAKS, "one of the peaks"),
}


def require(claim: str, holds: bool, assumes: str, found: str) -> None:
    """Refuse what the claim does not speak of: ``theorem-2 assumes 0 < p < 1; p is 1.2``.

    Parameters
    ----------
    holds
        Whether the hypothesis holds.
    """
    if not holds:
        raise InputError(f"{claim} assumes {assumes}; {found}")


def require_all(claim: str, given: Mapping[str, Any], *tables: Asks) -> None:
    """Refuse the first value that is not what `USUAL` and the tables ask of a parameter of its name."""
    for name, value in given.items():
        for asked in (one for table in (USUAL, *tables) for one in table.get(name, ())):
            require(claim, asked.holds(value), asked.words, f"{name} is {value!r}")


@dataclass(frozen=True, kw_only=True)
class Regime:
    """The parameters of a measurement; every field has a default.

    What `USUAL` does not ask of a field stands in the table `asks` of the class that has it.
    """

    asks: ClassVar[Asks] = {}

    def require(self, claim: str) -> None:
        """Refuse, by the claim's name, what it does not speak of."""
        given = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        require_all(claim, given, *(vars(kind).get("asks", {}) for kind in reversed(type(self).__mro__)))


@dataclass(frozen=True, kw_only=True)
class Batched(Regime):
    """What is followed for a number of batches.

    A regime names it before its fleet, whose fields then come first in the signature.

    Parameters
    ----------
    batches
        Number of batches of the mean.
    """

    batches: int = 20
    asks: ClassVar[Asks] = {"batches": at_least(FEWEST_BATCHES, f"at least {FEWEST_BATCHES} batches")}


@dataclass(frozen=True, kw_only=True)
class Fleet(Regime):
    """Workers whose requests end with the same probability in every step.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    """

    G: int = 8
    B: int = 1024
    p: float = 0.5

    def __str__(self) -> str:
        """Return the fleet in the words of the report."""
        return f"G={self.G}, B={self.B}, p={self.p:g}"


@dataclass(frozen=True, kw_only=True)
class PromptFleet(Fleet):
    """A fleet whose prompts have 1 to `s_max` tokens.

    Parameters
    ----------
    s_max
        Largest prompt, tokens.
    """

    s_max: int = 4


@dataclass(frozen=True, kw_only=True)
class RepleteFleet(PromptFleet):
    """A fleet with a pool that never lacks a size.

    Parameters
    ----------
    pool
        "all": the pool holds every size up to `s_max`; "two": 1 and `s_max` alone.
    peak
        "lowest" of the optimal loads; "raised": all loads higher while that costs nothing; "mean": so much higher that
        the mean admitted size is that of the pool.
    """

    pool: str = "two"
    peak: str = "lowest"

    @property
    def law(self) -> PromptLaw:
        """The law of the sizes in the pool."""
        return POOLS[self.pool](self.s_max)

    def chain(self, **other: Any) -> Replete:
        """Return the chain under the exact rule; `other` are parameters of it in place of the fleet's own."""
        return dataclasses.replace(Replete(self.G, self.B, self.p, self.law, peak=self.peak), **other)

    @property
    def raised(self) -> str:
        """The peak in the words of the report, where it is not the lowest."""
        return "" if self.peak == "lowest" else f", {self.peak} peak"


@dataclass(frozen=True, kw_only=True)
class BatchedFleet(Batched, RepleteFleet):
    """A fleet with a replete pool, followed for a number of batches."""

    @property
    def length(self) -> int:
        """Steps of a batch."""
        return batch_steps(self.p)

    def run(self, seed: int, **other: Any) -> RepleteRun:
        """Run `chain` for these batches."""
        return self.chain(**other).run(self.batches * self.length, seed)


@dataclass(frozen=True, kw_only=True)
class DoubledFleet(BatchedFleet):
    """Fleets from B = 4 B* on.

    Parameters
    ----------
    doublings
        Number of times that B is doubled.
    """

    B: int = 1
    doublings: int = 4
    asks: ClassVar[Asks] = {"doublings": between(2, 10, "2 to 10 doublings of B")}

    def require(self, claim: str) -> None:
        """Refuse fleets too large to run."""
        super().require(claim)
        first, slots = self.fleets[0], self.G * self.fleets[-1]
        require(claim, slots <= 2**24, "fleets of at most 2^24 slots", f"4 B* is {first}: they would be larger")

    @property
    def fleets(self) -> list[int]:
        """The slots of a worker, fleet by fleet."""
        first = math.ceil(CLEAR * onset(self.G, self.p, self.law))
        return [first * 2**i for i in range(self.doublings)]

    def runs(self, seed: int, claim: int) -> list[RepleteRun]:
        """Run each fleet, on streams of its own and of the claim's number."""
        seeds = np.random.SeedSequence([seed, claim]).generate_state(self.doublings).tolist()
        return [self.run(own, B=B) for B, own in zip(self.fleets, seeds, strict=True)]


@dataclass(frozen=True, kw_only=True)
class SteppedFleet(RepleteFleet):
    """A fleet with a replete pool, followed for a number of steps.

    Parameters
    ----------
    steps
        Number of steps.
    """

    steps: int = 1_000
    asks: ClassVar[Asks] = {"steps": at_least(1, "at least one step to look at")}

    def run(self, seed: int, **other: Any) -> RepleteRun:
        """Run `chain` for these steps."""
        return self.chain(**other).run(self.steps, seed)


AnyRegime = TypeVar("AnyRegime", bound=Regime)


def measured_in(
    claim: str, regime: type[AnyRegime], *, without: tuple[str, ...] = (), asks: Asks | None = None, **usual: Any
) -> Callable[[Callable[[AnyRegime, int], list[Finding]]], Measure]:
    """Return what makes a claim's `measure` from a function of a regime and a seed.

    Parameters
    ----------
    regime
        Class of the regime: a dataclass with a default for every field and a method `require`.
    without
        Fields that the claim does not take; they keep their defaults.
    asks
        What this claim asks of fields beyond the regime.
    usual
        The claim's own defaults of fields.
    """
    fields = [one for one in dataclasses.fields(regime) if one.name not in without]
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [
        inspect.Parameter(one.name, keyword, default=usual.get(one.name, one.default), annotation=one.type)
        for one in fields
    ]
    known = {one.name for one in fields}

    def decorate(body: Callable[[AnyRegime, int], list[Finding]]) -> Measure:
        @functools.wraps(body)
        def measure(*, seed: int, **given: Any) -> list[Finding]:
            if unknown := sorted(set(given) - known):
                raise TypeError(f"{claim} takes no parameter {', '.join(unknown)}")
            at = regime(**{**usual, **given})
            at.require(claim)
            require_all(claim, vars(at), asks or {})
            return body(at, seed)

        signature = inspect.Signature([*shown, inspect.Parameter("seed", keyword, annotation="int")])
        measure.__signature__ = signature  # type: ignore[attr-defined]
        return measure

    return decorate


def measured(claim: str, **asks: tuple[Asked, ...]) -> Callable[[Measure], Measure]:
    """Return what makes a function of keywords and a seed refuse, by the claim's name, what it does not speak of.

    Parameters
    ----------
    asks
        What is asked of its keywords beyond `USUAL`.
    """

    def decorate(body: Measure) -> Measure:
        usual = {one.name: one.default for one in inspect.signature(body).parameters.values() if one.name != "seed"}

        @functools.wraps(body)
        def measure(*, seed: int, **given: Any) -> Sequence[Finding]:
            require_all(claim, {**usual, **given}, asks)
            return body(**given, seed=seed)

        return measure

    return decorate


#: Requests of a family that stand for its law.
_FAMILY = 20_000


@dataclass(frozen=True, kw_only=True)
class OpenRegime(Batched):
    """An open fleet; its requests have geometric lives and uniform prompts, or are those of a seeded family.

    Parameters
    ----------
    G
        Number of workers.
    arrivals
        Requests a worker and step.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    family
        A seeded family of requests in place of the two; empty for none.
    period
        Steps between reports.
    """

    G: int = 8
    arrivals: float = 20.0
    p: float = 0.1
    s_max: int = 200
    family: str = ""
    period: int = 10
    asks: ClassVar[Asks] = {
        "G": between(2, 1024, "at most 1,024 workers, whose loads are kept"),
        "arrivals": between(0.05, 1000, "0.05 to 1,000 arrivals a worker and step"),
        "period": between(1, 10_000, "reports of every 1 to 10,000 steps"),
        "p": at_least(1e-4, "lives of at most 10,000 steps on average, to be run"),
        "family": one_of(("", *ALL_NAMES), "a family of requests:"),
    }

    @property
    def law(self) -> PromptLaw:
        """The law of the prompts, where no family gives them."""
        return PromptLaw.uniform(self.s_max)

    def requests(self, seed: int) -> Requests:
        """Return what arrives; the seed is that of a family's draws."""
        if not self.family:
            return Requests.geometric(self.p, self.law)
        trace = open_trace(self.family, count=_FAMILY, seed=seed)
        return Requests.observed(trace.prompt, trace.output)

    def fleet(self, seed: int, slots: int | None = None) -> OpenFleet:
        """Return the fleet, whose workers run so many requests at once; None = all of theirs."""
        requests = self.requests(seed)
        return OpenFleet(G=self.G, arrivals=self.arrivals, requests=requests, period=self.period, slots=slots)

    def __str__(self) -> str:
        """Return the fleet in the words of the report."""
        words = self.family or f"p={self.p:g}, {self.law.name}"
        return f"G={self.G}, {self.arrivals:g} a step, {words}, T={self.period}"
