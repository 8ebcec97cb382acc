"""Which loads are priced, as a user names them: an output folder, or plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lbopt.studies.configuration import Option


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
    loads: Annotated[
        str | None, Option("Tokens of every worker in one step, e.g. 100000,80000.", panel="Plain numbers", first=True)
    ] = None
    mean_load: Annotated[float | None, Option("Mean load of a worker, tokens.", panel="Plain numbers", first=True)] = (
        None
    )
    imbalance: Annotated[
        float | None, Option("Mean imbalance G · max − sum, tokens.", panel="Plain numbers", first=True)
    ] = None
    workers: Annotated[
        int | None,
        Option("Number of workers, with --mean-load.", names=("--workers", "-G"), panel="Plain numbers", first=True),
    ] = None
    running: Annotated[
        float | None,
        Option("Running requests a worker, with --loads or --mean-load.", panel="Plain numbers", first=True),
    ] = None
    router: Annotated[str | None, Option("Today's router, of a gap report.", shown="the report's baseline")] = None
    what_if: Annotated[
        str | None,
        Option(
            "Other fleets: workers=16,32,64 or slots=32,64; folders are simulated again.", panel="Study", first=True
        ),
    ] = None
    allow_code: Annotated[
        bool, Option("Run the policy files (file.py:function) that the folder names.", panel="Study")
    ] = False
