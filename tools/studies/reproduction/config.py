"""What the reproductions are asked to do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lbopt.instances import families
from lbopt.studies.configuration import Configuration, Option
from tools.studies.reproduction.drawn import pool_of

#: The reproductions, and how many requests each runs on 8 workers where the user does not say; energy: in all.
DEFAULT_REQUESTS = {
    "energy": 100_000,
    "balance-route": 20_000,
    "dilution": 5_000,
    "scaling": 5_000,
    "kv-spread": 20_000,
}
ITEMS = tuple(DEFAULT_REQUESTS)
STAND_INS = {"burstgpt": "burstgpt-like", "azure": "azure-like"}
FEWEST_REQUESTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionConfig(Configuration):
    """Configuration of the reproductions: which items, on which traces; a family stands in where there is none.

    `requests` are on 8 workers, in place of `DEFAULT_REQUESTS`; other fleets get as many a worker.
    """

    what = "reproductions"

    items: Annotated[
        tuple[str, ...],
        Option(
            "energy, balance-route, dilution, scaling, kv-spread.",
            argument=True,
            shown="all",
            among=ITEMS,
            kept="once",
            empty=True,
        ),
    ] = ()
    burstgpt: Annotated[
        str | None, Option("BurstGPT trace.", first=True, shown="the family burstgpt-like in its place")
    ] = None
    azure: Annotated[
        str | None, Option("Azure conversation trace.", first=True, shown="the family azure-like in its place")
    ] = None
    logs: Annotated[str | None, Option("Folder of the decision logs of BF-IO's authors, for its rows of energy.")] = (
        None
    )
    requests: Annotated[
        int | None,
        Option(
            "Requests on 8 workers.",
            names=("--requests", "-n"),
            shown="as each item needs, 5000 to 100000",
            low=FEWEST_REQUESTS,
            expected=f"at least {FEWEST_REQUESTS}, fewer fill no fleet",
        ),
    ] = None
    seeds: Annotated[int, Option("Number of seeds; intervals need two.", first=True, low=1, high=1000)] = 10
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0

    def check(self) -> None:
        """Take all items where none is named; a file that cannot be read is refused before anything runs."""
        object.__setattr__(self, "items", self.items or ITEMS)
        for name in STAND_INS:
            pool_of(self.trace(name), 0)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds, ascending."""
        return tuple(range(self.seed, self.seed + self.seeds))

    def trace(self, name: str) -> str:
        """Return the file of "burstgpt" or "azure", or the family that stands in."""
        given: str | None = getattr(self, name)
        return given or STAND_INS[name]

    def trace_name(self, name: str) -> str:
        """Return what rows say of the trace."""
        trace = self.trace(name)
        return f"{trace} (stands in)" if trace in families.NAMES else Path(trace).stem

    def count(self, item: str, G: int = 8) -> int:
        """Return how many requests `item` runs on G workers."""
        return round((self.requests or DEFAULT_REQUESTS[item]) * G / 8)
