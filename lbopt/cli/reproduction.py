"""`lbopt study reproduction`: do we find what was printed?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options, running


def reproduction(
    items: Annotated[
        list[str] | None,
        typer.Argument(help="energy, balance-route, dilution, scaling, kv-spread [default: all].", show_default=False),
    ] = None,
    burstgpt: Annotated[
        str | None, typer.Option(help="BurstGPT trace [default: the family burstgpt-like stands in].")
    ] = None,
    azure: Annotated[
        str | None, typer.Option(help="Azure conversation trace [default: the family azure-like stands in].")
    ] = None,
    logs: Annotated[
        str | None, typer.Option(help="Folder of the decision logs of BF-IO's authors, for its rows of energy.")
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option("--requests", "-n", help="Requests on 8 workers [default: as each item needs, 5000 to 100000]."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds; intervals need two.")] = 10,
    seed: options.Seed = 0,
    engine: running.Engine = "serial",
    store: running.StorePath = None,
    collect_only: running.CollectOnly = False,
    out: options.Out = None,
) -> None:
    """Hold published tables of routers against runs of the same rules: agree or not, and why not.

    With --out, writes reproduction.csv, dilution.png, dilution.svg and run.json. Takes half a minute with
    `-n 2000 --seeds 2`, and 5 to 10 minutes in full with `--engine joblib:jobs=2`.

    Example: `lbopt study reproduction dilution scaling -n 2000 --seeds 2 --out my-reproduction`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.reproduction import ReproductionConfig

    config = ReproductionConfig(
        items=tuple(items or ()),
        burstgpt=burstgpt,
        azure=azure,
        logs=logs,
        requests=requests,
        seeds=seeds,
        seed=seed,
    )
    carry_out("reproduction", config, out, store=store, engine=engine, collect_only=collect_only)
