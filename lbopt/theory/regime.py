"""Regimes: the parameters of a measurement, each with its default, its meaning and its check in one place.

A claim measures in a `Fleet` or in one of its extensions. Other defaults and further parameters are a subclass in the
claim's own file. `measured_in` makes the `measure` of a claim from a function of such a regime and a seed: it takes the
fields as keywords, shows them in its signature, and refuses by the claim's name what the regime's `require` refuses.

Regimes of open fleets: requests come to the workers in every step, and the router sees reports of some age.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from lbopt.instances import open_trace
from lbopt.instances.families import ALL_NAMES
from lbopt.theory.chains.batch_means import FEWEST_BATCHES
from lbopt.theory.chains.open_fleet import OpenFleet, Requests
from lbopt.theory.chains.replete import PEAKS, POOLS, require_pool
from lbopt.theory.claim import Measure
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require, require_fleet, require_geometric, require_prompts
from lbopt.theory.laws.slot_law import PromptLaw


@dataclass(frozen=True, kw_only=True)
class Regime:
    """The parameters of a measurement; every field has a default."""

    def require(self, claim: str) -> None:
        """Refuse, by the claim's name, what it does not speak of."""


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

    def require(self, claim: str) -> None:
        """Refuse fewer batches than an error needs."""
        super().require(claim)
        fewest = FEWEST_BATCHES
        require(claim, self.batches >= fewest, f"at least {fewest} batches", f"batches is {self.batches}")


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

    def require(self, claim: str) -> None:
        """Refuse what the claim does not speak of."""
        require_fleet(claim, self.G, self.B)
        require_geometric(claim, self.p)

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

    def require(self, claim: str) -> None:
        """Refuse what the claim does not speak of."""
        super().require(claim)
        require_prompts(claim, self.s_max)


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

    def require(self, claim: str) -> None:
        """Refuse what the claim does not speak of."""
        super().require(claim)
        require_pool(claim, self.pool)
        require_peak(claim, self.peak)

    @property
    def law(self) -> PromptLaw:
        """The law of the sizes in the pool."""
        return POOLS[self.pool](self.s_max)

    @property
    def raised(self) -> str:
        """The peak in the words of the report, where it is not the lowest."""
        return "" if self.peak == "lowest" else f", {self.peak} peak"


@dataclass(frozen=True, kw_only=True)
class BatchedFleet(Batched, RepleteFleet):
    """A fleet with a replete pool, followed for a number of batches."""


@dataclass(frozen=True, kw_only=True)
class SteppedFleet(RepleteFleet):
    """A fleet with a replete pool, followed for a number of steps.

    Parameters
    ----------
    steps
        Number of steps.
    """

    steps: int = 1_000

    def require(self, claim: str) -> None:
        """Refuse what the claim does not speak of."""
        super().require(claim)
        require(claim, self.steps >= 1, "at least one step to look at", f"steps is {self.steps}")


def require_peak(claim: str, peak: str) -> None:
    """Refuse a peak that the exact rule does not know."""
    require(claim, peak in PEAKS, f"one of the peaks {', '.join(PEAKS)}", f"peak is '{peak}'")


AnyRegime = TypeVar("AnyRegime", bound=Regime)


def measured_in(
    claim: str, regime: type[AnyRegime], *, without: tuple[str, ...] = (), **usual: Any
) -> Callable[[Callable[[AnyRegime, int], list[Finding]]], Measure]:
    """Return what makes a claim's `measure` from a function of a regime and a seed.

    Parameters
    ----------
    regime
        Class of the regime: a dataclass with a default for every field and a method `require`.
    without
        Fields that the claim does not take; they keep their defaults.
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
            return body(at, seed)

        signature = inspect.Signature([*shown, inspect.Parameter("seed", keyword, annotation="int")])
        measure.__signature__ = signature  # type: ignore[attr-defined]
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

    def require(self, claim: str) -> None:
        """Refuse an open fleet that the laws say nothing of, and requests that are none."""
        super().require(claim)
        G, arrivals, period = self.G, self.arrivals, self.period
        require_fleet(claim, G, 1)
        require(claim, G <= 1024, "at most 1,024 workers, whose loads are kept", f"G is {G}")
        require(claim, 0.05 <= arrivals <= 1000, "0.05 to 1,000 arrivals a worker and step", f"arrivals is {arrivals}")
        require(claim, 1 <= period <= 10_000, "reports of every 1 to 10,000 steps", f"period is {period}")
        if self.family:
            known = f"a family of requests: {', '.join(ALL_NAMES)}"
            require(claim, self.family in ALL_NAMES, known, f"family is {self.family}")
            return
        require_geometric(claim, self.p)
        require(claim, self.p >= 1e-4, "lives of at most 10,000 steps on average, to be run", f"p is {self.p}")
        require_prompts(claim, self.s_max)

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
