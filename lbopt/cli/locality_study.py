"""`lbopt study locality`: does routing by expert locality pay, and do we find what was printed of it?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options, running


def locality(
    items: Annotated[
        list[str] | None,
        typer.Argument(help="signatures, routers, band, clusters, pool, barrier [default: all].", show_default=False),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help="**task** or **language**; may be given again [default: both].")
    ] = None,
    rates: Annotated[
        list[float] | None,
        typer.Option(help="Requests a second of routers and pool; may be given again [default: 20 40 60 80 100]."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Length of the arrivals. A request takes 5 to 15 s: shorter runs never fill up.")
    ] = 120.0,
    warm_up: Annotated[float, typer.Option(help="First seconds that are not looked at.")] = 30.0,
    prompts: Annotated[
        int, typer.Option(help="Prompts that requests repeat, and as many others that tables are fitted to.")
    ] = 1000,
    layers: Annotated[int, typer.Option(help="Layers of the model that are drawn.")] = 6,
    seeds: Annotated[int, typer.Option(help="Worlds, each with its own gates and requests; intervals need two.")] = 20,
    seed: options.Seed = 0,
    engine: running.Engine = "serial",
    store: running.StorePath = None,
    collect_only: running.CollectOnly = False,
    out: options.Out = None,
) -> None:
    """Hold what ELDR printed of routing by experts against a synthetic workload, with sweeps of what it is made of.

    With --out, writes claims.csv, runs.csv, signatures.csv, pictures (png, svg) and run.json. Takes about 25 s a
    world and workload: 8 minutes in full with `--engine joblib:jobs=2`, and a minute with
    `--seeds 2 --rates 60 --seconds 60`.

    Example: `lbopt study locality band clusters --seeds 2 --rates 60 --seconds 60 --out my-locality`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.locality import WORKLOADS, LocalityConfig

    config = LocalityConfig(
        items=tuple(items or ()),
        workloads=tuple(workload or WORKLOADS),
        rates=tuple(rates or LocalityConfig().rates),
        seconds=seconds,
        warm_up=warm_up,
        prompts=prompts,
        layers=layers,
        seeds=seeds,
        seed=seed,
    )
    carry_out("locality", config, out, store=store, engine=engine, collect_only=collect_only)
