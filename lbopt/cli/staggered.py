"""`lbopt study staggered`: what is it worth to hold prompts back, and against which baseline do we find it?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options, running


def staggered(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            help="law, load, fleet, limit, latency, split, needs, adapting, watchdog, decode, cache [default: all].",
            show_default=False,
        ),
    ] = None,
    place: Annotated[
        list[str] | None,
        typer.Option(help="**short-3k**, **short-5k** or **long-16k**; may be given again [default: all]."),
    ] = None,
    instances: Annotated[int, typer.Option(help="Prefill instances, where the item does not go through fleets.")] = 3,
    requests: Annotated[int, typer.Option(help="Requests of an instance in a run.")] = 10_000,
    waits: Annotated[int, typer.Option(help="Requests of a run of item law.")] = 200_000,
    seeds: Annotated[int, typer.Option(help="Draws of prompts, gaps and phases; intervals need two.")] = 10,
    seed: options.Seed = 0,
    engine: running.Engine = "serial",
    store: running.StorePath = None,
    collect_only: running.CollectOnly = False,
    out: options.Out = None,
) -> None:
    """Hold what SBS printed of staggered prefill against simulated instances, with each of four immediate baselines.

    With --out, writes claims.csv, a CSV an item, pictures (png, svg) and run.json. Takes about 13 minutes a
    seed on one core, half of it for item needs: an hour in full with `--engine joblib:jobs=2`, and half a
    minute with `law load fleet limit split --seeds 2 --requests 1000 --waits 20000`.

    Example: `lbopt study staggered load limit --place short-3k --seeds 3 --requests 2000 --out my-staggered`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.staggered import PLACES, StaggeredConfig

    config = StaggeredConfig(
        items=tuple(items or ()),
        places=tuple(place or PLACES),
        instances=instances,
        requests=requests,
        waits=waits,
        seeds=seeds,
        seed=seed,
    )
    carry_out("staggered", config, out, store=store, engine=engine, collect_only=collect_only)
