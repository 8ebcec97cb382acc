"""`lbopt study placement`: what does placing experts exactly gain over greedy, and a placement of one's own?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options, running


def placement(
    ranks: Annotated[
        list[int] | None, typer.Option("--ranks", "-R", help="May be given again [default: 4 8 16].")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            "-k",
            help="Layers of the synthetic workloads **task** and **language**, or of independent random weights, "
            "**uniform** and **exponential**; may be given again [default: all four].",
        ),
    ] = None,
    worlds: Annotated[int, typer.Option(help="Worlds of each kind.")] = 5,
    clusters: Annotated[int, typer.Option(help="Clusters of a world, each of which gives one layer.")] = 10,
    experts: Annotated[int, typer.Option("--experts", "-E", help="Experts of a layer.")] = 128,
    top_k: Annotated[int, typer.Option("--top-k", help="Experts that a token chooses.")] = 8,
    layers: Annotated[int, typer.Option(help="Layers of the model.")] = 4,
    requests: Annotated[
        int, typer.Option(help="Calibration requests of a world; as many others are met in service.")
    ] = 600,
    batch: Annotated[int, typer.Option(help="Requests of a decoder's batch.")] = 64,
    draws: Annotated[int, typer.Option(help="Steps drawn for the busiest rank's active experts.")] = 200,
    resolution: Annotated[
        float, typer.Option(help="By how much of an expert a proved largest load may exceed the least one.")
    ] = 1e-4,
    time_limit: Annotated[float, typer.Option(help="Seconds a layer and rounding.")] = 2.0,
    seed: options.Seed = 0,
    engine: running.Engine = "serial",
    store: running.StorePath = None,
    collect_only: running.CollectOnly = False,
    out: options.Out = None,
) -> None:
    """Place the experts of random layers on ranks, greedily and exactly, and compare.

    With --out, writes placement.csv, gaps.png, gaps.svg and run.json.

    Example: `lbopt study placement -R 8 -R 16 --worlds 2 --out my-placements`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.placement import PlacementConfig
    from lbopt.studies.placement.config import DEFAULT_RANKS, KINDS

    config = PlacementConfig(
        ranks=tuple(ranks or DEFAULT_RANKS),
        kinds=tuple(kind or KINDS),
        worlds=worlds,
        clusters=clusters,
        experts=experts,
        top_k=top_k,
        layers=layers,
        requests=requests,
        batch=batch,
        draws=draws,
        resolution=resolution,
        time_limit=time_limit,
        seed=seed,
    )
    carry_out("placement", config, out, store=store, engine=engine, collect_only=collect_only)
