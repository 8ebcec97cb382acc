"""`run_placement`: every world at every number of ranks, through a store if there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

import lbopt
from lbopt.exceptions import InputError
from lbopt.runner import Task
from lbopt.studies.configuration import Option
from lbopt.studies.grid import Grid, Row, run_grid
from lbopt.studies.placement.cell import RANDOM, WORKLOADS
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.study import Outcome, Study

KINDS = (*WORKLOADS, *RANDOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementConfig(Grid):
    """Configuration of a placement study: `kinds` * `worlds` * `clusters` layers, each at all numbers of ranks.

    A layer's exact placement may take `time_limit` seconds with one rounding of its weights, of eight. The axis `world`
    varies before that of ranks, since a process remembers its last world.
    """

    what = "a placement study"
    axes = ("kind", "kinds"), ("world", "all_worlds"), ("R", "ranks")
    function = "lbopt.studies.placement.cell:place"

    ranks: Annotated[
        tuple[int, ...], Option("Number of ranks; may be given again.", names=("--ranks", "-R"), low=2, kept="sorted")
    ] = (4, 8, 16)
    kinds: Annotated[
        tuple[str, ...],
        Option(
            "Layers of the synthetic workloads **task** and **language**, or of independent random weights, "
            "**uniform** and **exponential**; may be given again.",
            names=("--kind", "-k"),
            key="kind",
            shown="all four",
            among=KINDS,
            kept="once",
        ),
    ] = KINDS
    worlds: Annotated[int, Option("Worlds of each kind.", low=1)] = 5
    clusters: Annotated[int, Option("Clusters of a world, each of which gives one layer.", low=1)] = 10
    experts: Annotated[int, Option("Experts of a layer.", names=("--experts", "-E"), low=1)] = 128
    top_k: Annotated[int, Option("Experts that a token chooses.", names=("--top-k",), low=1)] = 8
    layers: Annotated[int, Option("Layers of the model.", low=1)] = 4
    requests: Annotated[int, Option("Calibration requests of a world; as many others are met in service.", low=1)] = 600
    batch: Annotated[int, Option("Requests of a decoder's batch.", low=1)] = 64
    draws: Annotated[int, Option("Steps drawn for the busiest rank's active experts.", low=1)] = 200
    resolution: Annotated[
        float,
        Option(
            "By how much of an expert a proved largest load may exceed the least one.",
            low=1e-9,
            high=1,
            expected="1e-9 to 1 of an expert",
        ),
    ] = 1e-4
    time_limit: Annotated[
        float, Option("Seconds a layer and rounding.", low=0, high=math.inf, open=True, expected="seconds above 0")
    ] = 2.0
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0

    def check(self) -> None:
        """Refuse what does not divide the experts, and more clusters than requests."""
        for R in self.ranks:
            if self.experts % R:
                raise InputError(f"ranks are {R}; expected 2 or more, a divisor of the {self.experts} experts")
        if self.top_k > self.experts:
            raise InputError(f"top_k is {self.top_k}; expected 1 to the {self.experts} experts")
        if self.clusters > self.requests:
            raise InputError(f"clusters is {self.clusters}; {self.requests} requests make as many clusters at most")

    @property
    def all_worlds(self) -> range:
        """The worlds of a kind."""
        return range(self.worlds)

    def task(self, **cell: Any) -> Task:
        """Return the task of one world at one number of ranks; its number is in the seed alone."""
        parts = ("experts", "top_k", "layers", "requests", "clusters", "batch", "draws", "resolution", "time_limit")
        given = {name: getattr(self, name) for name in parts} | {"version": lbopt.__version__}
        entropy = (self.seed, KINDS.index(cell["kind"]), cell["world"])
        seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        return Task(self.function, given | {"kind": cell["kind"], "R": cell["R"]}, seed)


#: Random weights meet no requests in service.
_NOT_MET = {f"{of}_{name}": None for of in ("busiest", "on_average") for name in ("greedy", "exact", "one_layout")}


class PlacedLayer(Row):
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

    def __init__(self, **values: Any) -> None:
        super().__init__(**_NOT_MET | values)

    @property
    def gap(self) -> float:
        """Share by which greedy's largest load exceeds the exact one's."""
        return float(self.greedy / self.exact - 1) if self.exact > 0 else 0.0

    @property
    def proved(self) -> bool:
        """Whether the exact placement was proved."""
        return bool(self.proof != "none")

    @property
    def in_service(self) -> bool:
        """Whether batches were drawn."""
        return self.busiest_exact is not None


@dataclass(slots=True, repr=False)
class PlacementOutcome(Outcome):
    """All layers of a study."""

    config: PlacementConfig
    layers: list[PlacedLayer] = field(default_factory=list)

    def add(self, answer: dict[str, Any], **cell: Any) -> None:
        """Keep the layers of a world at one number of ranks."""
        self.layers += [PlacedLayer(**cell, **one) for one in answer["layers"]]

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


@of_tasks("worlds and ranks")
def run_placement(config: PlacementConfig, run: RunTasks) -> PlacementOutcome:
    """Run the study; Ctrl-C keeps the worlds that have ended."""
    outcome = run_grid(config, run, PlacementOutcome)
    for R in config.ranks:
        rows = [one for one in outcome.layers if one.R == R]
        open_rows = [one for one in rows if not one.proved]
        if open_rows:
            outcome.notes.append(
                f"not proved in time at R = {R}: {len(open_rows)} of {len(rows)} layers; the placements found are at "
                f"most {max(one.excess for one in open_rows):.2g} above the least"
            )
    return outcome


HELP = """Place the experts of random layers on ranks, greedily and exactly, and compare.

With --out, writes placement.csv, gaps.png, gaps.svg and run.json.

Example: `lbopt study placement -R 8 -R 16 --worlds 2 --out my-placements`
"""

STUDY = Study(name="placement", config=PlacementConfig, help=HELP, run=run_placement)
