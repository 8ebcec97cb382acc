"""Where the loads of a price come from: load points, what runs their routers again, and points of plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from lbopt.exceptions import InputError
from lbopt.studies.configuration import Option
from lbopt.studies.cost.load_point import LEVEL, LoadPoint
from lbopt.studies.cost.what_if import Rerun


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadsAsked:
    """Where the loads come from.

    Parameters
    ----------
    source
        Output folder of a gap study or a simulation; None where plain numbers are given.
    loads
        Tokens of every worker in one step, separated by commas.
    mean_load, imbalance
        Mean load of a worker and mean imbalance G * max - sum, tokens.
    workers
        Number of workers, with `mean_load`.
    running
        Running requests of a worker, with plain numbers.
    router
        Today's router, of a folder; None = the baseline of its study.
    what_if
        Other fleets, such as ``workers=16,32``.
    allow_code
        Whether policy files that the folder names may be run.
    """

    source: Annotated[
        Path | None,
        Option("Output folder of `lbopt gap` or `lbopt simulate`; or give plain numbers.", argument=True),
    ] = None
    loads: Annotated[str | None, Option("Tokens of every worker in one step, e.g. 100000,80000.", first=True)] = None
    mean_load: Annotated[float | None, Option("Mean load of a worker, tokens.", first=True)] = None
    imbalance: Annotated[float | None, Option("Mean imbalance G · max − sum, tokens.", first=True)] = None
    workers: Annotated[
        int | None,
        Option("Number of workers, with --mean-load.", names=("--workers", "-G"), first=True),
    ] = None
    running: Annotated[
        float | None,
        Option("Running requests a worker, with --loads or --mean-load.", first=True),
    ] = None
    router: Annotated[str | None, Option("Today's router, of a gap report.", shown="the report's baseline")] = None
    what_if: Annotated[
        str | None,
        Option("Other fleets: workers=16,32,64 or slots=32,64; folders are simulated again.", first=True),
    ] = None
    allow_code: Annotated[bool, Option("Run the policy files (file.py:function) that the folder names.")] = False


@dataclass(frozen=True, slots=True)
class CostSource:
    """Load points, the first of them today's, what runs their routers on another fleet, and the law they ran with."""

    title: str
    points: list[LoadPoint]
    notes: list[str] = field(default_factory=list)
    rerun: Rerun | None = None
    step_time: str | None = None


def of_numbers(asked: LoadsAsked) -> CostSource:
    """Return the point that plain numbers give: the loads of one step, or a mean load and a mean imbalance."""
    loads, running = asked.loads, asked.running
    mean_load, imbalance, workers = asked.mean_load, asked.imbalance, asked.workers
    means = {"--mean-load": mean_load, "--imbalance": imbalance, "--workers": workers}
    if loads is None and mean_load is None:
        raise InputError(
            "there is nothing to price: give an output folder of lbopt gap or simulate, or --loads, or --mean-load "
            "with --imbalance and --workers"
        )
    if running is None:
        raise InputError("--running is missing: a price a token needs the running requests of a worker")
    if loads is not None:
        named = [name for name, value in means.items() if value is not None]
        if named:
            raise InputError(f"--loads says all of the loads; leave {', '.join(named)} out")
        try:
            point = LoadPoint.of_loads([float(part) for part in loads.split(",")], running)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"loads '{loads}' are not numbers; expected tokens such as 100000,80000") from None
    else:
        missing = [name for name, value in means.items() if value is None]
        if missing:
            raise InputError(f"{', '.join(missing)} must be given with --mean-load")
        assert mean_load is not None and imbalance is not None and workers is not None
        point = LoadPoint.of_means(mean_load, imbalance, workers, running)
    return CostSource(title="plain numbers", points=[point, point.balanced(LEVEL)])
