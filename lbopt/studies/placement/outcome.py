"""What a placement study found: a row for each layer and number of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lbopt.display import Displayed
from lbopt.studies.placement.config import PlacementConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLayer:
    """One layer at one number of ranks; loads are in active experts.

    Parameters
    ----------
    kind, world, cluster, layer, R
        Which.
    mean_load, bound
        Mean load of a rank, and the greater of the two lower bounds of the largest.
    greedy, exact
        Largest load of either placement.
    proof
        What proves the exact one least in rounded weights: "mean", "heaviest" (bounds), "certificate", "exhaustion";
        "within" where it is not, and yet within the resolution of a bound; "none" where nothing proves it.
    excess
        By how much `exact` may be above the least largest load, at most.
    seconds
        Until it was proved, all roundings together.
    busiest_greedy, busiest_exact, busiest_one_layout
        Mean over steps of the busiest rank's active experts, on requests that were not fitted: both placements, and
        greedy for all clusters together; None without such requests.
    on_average_greedy, on_average_exact, on_average_one_layout
        The mean over the same steps of the rank where it is largest, which is less.
    """

    kind: str
    world: int
    cluster: int
    layer: int
    R: int
    mean_load: float
    bound: float
    greedy: float
    exact: float
    proof: str
    excess: float
    seconds: float
    busiest_greedy: float | None = None
    busiest_exact: float | None = None
    busiest_one_layout: float | None = None
    on_average_greedy: float | None = None
    on_average_exact: float | None = None
    on_average_one_layout: float | None = None

    @property
    def gap(self) -> float:
        """Share by which greedy's largest load exceeds the exact one's."""
        return self.greedy / self.exact - 1 if self.exact > 0 else 0.0

    @property
    def proved(self) -> bool:
        """Whether the exact placement was proved."""
        return self.proof != "none"

    @property
    def in_service(self) -> bool:
        """Whether batches were drawn."""
        return self.busiest_exact is not None


@dataclass(slots=True, repr=False)
class PlacementOutcome(Displayed):
    """All layers of a study."""

    config: PlacementConfig
    layers: list[PlacedLayer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<PlacementOutcome {len(self.layers)} layers on {', '.join(map(str, self.config.ranks))} ranks>"

    def add(self, kind: str, world: int, R: int, answer: dict[str, Any]) -> None:
        """Add what a task returned.

        Parameters
        ----------
        kind
            Kind of layers.
        world
            Number of the world.
        R
            Number of ranks.
        answer
            What the task returned.
        """
        self.layers += [PlacedLayer(kind=kind, world=world, R=R, **one) for one in answer["layers"]]

    def groups(self) -> list[tuple[int, str, list[PlacedLayer]]]:
        """Return (R, kind, layers), every kind together first, as "all"."""
        found = []
        for R in self.config.ranks:
            rows = [one for one in self.layers if one.R == R]
            kinds = [kind for kind in self.config.kinds if any(one.kind == kind for one in rows)]
            if len(kinds) > 1:
                found.append((R, "all", rows))
            found += [(R, kind, [one for one in rows if one.kind == kind]) for kind in kinds]
        return found
