"""`lbopt study scaling`: how does the imbalance grow with slots and workers?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options, running


def scaling(
    workers: Annotated[
        list[int] | None, typer.Option("--workers", "-G", help="May be given again [default: 2 4 8 16].")
    ] = None,
    slots: Annotated[
        list[int] | None, typer.Option("--slots", "-B", help="May be given again [default: 16 32 64 128 256].")
    ] = None,
    p: Annotated[float, typer.Option("--p", help="Probability that a request ends in a step.")] = 0.1,
    ends: Annotated[
        float | None, typer.Option(help="Take p = ends / B instead: so many ends a worker and step at every B.")
    ] = None,
    s_max: Annotated[int, typer.Option("--s-max", help="Prompts are uniform on 1 to this many tokens.")] = 10,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="Rule with one pool, or bf-io-replete; repeatable [default: fcfs, jsq, jsq-load, br-0, bf-io].",
        ),
    ] = None,
    pool: Annotated[float, typer.Option(help="Requests kept waiting, in multiples of a step's mean ends.")] = 3.0,
    batches: Annotated[int, typer.Option(help="Batches of 20/p steps, at least 20.")] = 20,
    time_limit: Annotated[float, typer.Option(help="Seconds a decision of bf-io.")] = 0.02,
    seed: options.Seed = 0,
    engine: running.Engine = "serial",
    store: running.StorePath = None,
    collect_only: running.CollectOnly = False,
    out: options.Out = None,
) -> None:
    """Run rules over a grid of fleets, and fit exponents of B and log G to their imbalance.

    With --out, writes scaling.csv, exponents.csv, pictures (png, svg) and run.json.

    Example: `lbopt study scaling -G 2 -G 8 -B 16 -B 64 --policy fcfs --policy bf-io-replete --out my-scaling`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.scaling import ScalingConfig
    from lbopt.studies.scaling.config import DEFAULT_POLICIES, DEFAULT_SLOTS, DEFAULT_WORKERS

    config = ScalingConfig(
        workers=tuple(workers or DEFAULT_WORKERS),
        slots=tuple(slots or DEFAULT_SLOTS),
        p=p,
        ends=ends,
        s_max=s_max,
        policies=tuple(policy or DEFAULT_POLICIES),
        pool=pool,
        batches=batches,
        time_limit=time_limit,
        seed=seed,
    )
    carry_out("scaling", config, out, store=store, engine=engine, collect_only=collect_only)
