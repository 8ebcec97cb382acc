"""What the reproductions are asked to do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.instances import families
from lbopt.spec import unknown
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.reproduction.drawn import pool_of

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
class ReproductionConfig:
    """Configuration of the reproductions.

    Parameters
    ----------
    items
        Which; none = all.
    burstgpt, azure
        Files with the traces; where there is none a family stands in.
    logs
        Folder with the authors' decision logs, for BF-IO's rows of the energy item.
    requests
        How many on 8 workers, in place of `DEFAULT_REQUESTS`; other fleets get as many a worker.
    seeds, seed
        How many, and the first.
    """

    items: Annotated[
        tuple[str, ...], Option("energy, balance-route, dilution, scaling, kv-spread.", argument=True, shown="all")
    ] = ()
    burstgpt: Annotated[str | None, Option("BurstGPT trace.", shown="the family burstgpt-like in its place")] = None
    azure: Annotated[str | None, Option("Azure conversation trace.", shown="the family azure-like in its place")] = None
    logs: Annotated[str | None, Option("Folder of the decision logs of BF-IO's authors, for its rows of energy.")] = (
        None
    )
    requests: Annotated[
        int | None,
        Option("Requests on 8 workers.", names=("--requests", "-n"), shown="as each item needs, 5000 to 100000"),
    ] = None
    seeds: Annotated[int, Option("Number of seeds; intervals need two.")] = 10
    seed: Annotated[int, Option("First seed.", first=True)] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(dict.fromkeys(self.items)) or ITEMS)
        for item in self.items:
            if item not in ITEMS:
                raise unknown("reproduction", item, ITEMS)
        if self.requests is not None and self.requests < FEWEST_REQUESTS:
            raise InputError(f"requests are {self.requests}; expected at least {FEWEST_REQUESTS}, fewer fill no fleet")
        if not 1 <= self.seeds <= 1000:
            raise InputError(f"seeds are {self.seeds}; expected 1 to 1000")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected 0 or more")
        for name in STAND_INS:
            pool_of(self.trace(name), 0)  # a file that cannot be read is refused before anything runs

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"items": list(self.items)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> ReproductionConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="reproductions", source=source)
