"""Regimes of open fleets: requests come to the workers in every step, and the router sees reports of some age."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.instances import open_trace
from lbopt.instances.families import ALL_NAMES
from lbopt.theory.chains.open_fleet import OpenFleet, Requests
from lbopt.theory.hypotheses import require, require_fleet, require_geometric, require_prompts
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.regime import Batched

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
