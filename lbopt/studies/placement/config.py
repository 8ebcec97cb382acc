"""What a placement study is asked to do, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np

import lbopt
from lbopt.exceptions import InputError
from lbopt.runner import Task
from lbopt.spec import unknown
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.placement.layers import RANDOM, WORKLOADS

KINDS = (*WORKLOADS, *RANDOM)
DEFAULT_RANKS = (4, 8, 16)

CELL = "lbopt.studies.placement.cell:place"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementConfig:
    """Configuration of a placement study: `kinds` * `worlds` * `clusters` layers, each at all numbers of ranks.

    Parameters
    ----------
    ranks
        Numbers of ranks, R, each of which divides the experts.
    kinds
        Of layers: "task", "language" (synthetic workloads), "uniform", "exponential" (independent random weights).
    worlds, clusters
        Worlds of each kind, and clusters (decoders) of each world, each of which gives one layer.
    experts, top_k, layers
        E, k and L of the model.
    requests
        Calibration requests of a world; as many others are met in service.
    batch
        B, requests of a decoder's batch.
    draws
        Steps drawn to estimate the mean of the busiest rank's active experts.
    resolution
        By how much of an expert the largest load of a proved placement may exceed the least one.
    time_limit
        Seconds that a layer's exact placement may take with one rounding of its weights, of eight.
    seed
        Of worlds and steps.
    """

    ranks: Annotated[tuple[int, ...], Option("Number of ranks; may be given again.", names=("--ranks", "-R"))] = (
        DEFAULT_RANKS
    )
    kinds: Annotated[
        tuple[str, ...],
        Option(
            "Layers of the synthetic workloads **task** and **language**, or of independent random weights, "
            "**uniform** and **exponential**; may be given again.",
            names=("--kind", "-k"),
            key="kind",
            shown="all four",
        ),
    ] = KINDS
    worlds: Annotated[int, Option("Worlds of each kind.")] = 5
    clusters: Annotated[int, Option("Clusters of a world, each of which gives one layer.")] = 10
    experts: Annotated[int, Option("Experts of a layer.", names=("--experts", "-E"))] = 128
    top_k: Annotated[int, Option("Experts that a token chooses.", names=("--top-k",))] = 8
    layers: Annotated[int, Option("Layers of the model.")] = 4
    requests: Annotated[int, Option("Calibration requests of a world; as many others are met in service.")] = 600
    batch: Annotated[int, Option("Requests of a decoder's batch.")] = 64
    draws: Annotated[int, Option("Steps drawn for the busiest rank's active experts.")] = 200
    resolution: Annotated[float, Option("By how much of an expert a proved largest load may exceed the least one.")] = (
        1e-4
    )
    time_limit: Annotated[float, Option("Seconds a layer and rounding.")] = 2.0
    seed: Annotated[int, Option("First seed.", first=True)] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", tuple(sorted(dict.fromkeys(self.ranks))))
        object.__setattr__(self, "kinds", tuple(dict.fromkeys(self.kinds)))
        for kind in self.kinds:
            if kind not in KINDS:
                raise unknown("kind of layers", kind, KINDS)
        for name in ("worlds", "clusters", "experts", "layers", "requests", "batch", "draws"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        if not self.ranks or not self.kinds:
            raise InputError(f"no {'ranks' if not self.ranks else 'kinds'} were named; give at least one")
        for R in self.ranks:
            if R < 2 or self.experts % R:
                raise InputError(f"ranks are {R}; expected 2 or more, a divisor of the {self.experts} experts")
        if not 1 <= self.top_k <= self.experts:
            raise InputError(f"top_k is {self.top_k}; expected 1 to the {self.experts} experts")
        if self.clusters > self.requests:
            raise InputError(f"clusters is {self.clusters}; {self.requests} requests make as many clusters at most")
        if not 1e-9 <= self.resolution <= 1:
            raise InputError(f"resolution is {self.resolution}; expected 1e-9 to 1 of an expert")
        if not 0 < self.time_limit < np.inf:
            raise InputError(f"time_limit is {self.time_limit}; expected seconds above 0")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected 0 or more")

    def cells(self) -> Iterator[tuple[str, int, int]]:
        """Yield (kind, world, R): all ranks of a world in a row, since a process remembers its last world."""
        for kind in self.kinds:
            for world in range(self.worlds):
                for R in self.ranks:
                    yield kind, world, R

    def task(self, kind: str, world: int, R: int) -> Task:
        """Return the task of one world at one number of ranks."""
        given: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                *("experts", "top_k", "layers", "requests", "clusters", "batch"),
                *("draws", "resolution", "time_limit"),
            )
        }
        given |= {"kind": kind, "R": R, "version": lbopt.__version__}
        entropy = (self.seed, KINDS.index(kind), world)
        return Task(CELL, given, int(np.random.SeedSequence(entropy).generate_state(1)[0]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> PlacementConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a placement study", source=source)
