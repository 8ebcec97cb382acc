"""`lbopt cost`: what does imbalance cost, in milliseconds, joules and money?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options
from lbopt.exceptions import InputError


def cost(
    source: Annotated[
        Path | None, typer.Argument(help="Output folder of `lbopt gap` or `lbopt simulate`; or give plain numbers.")
    ] = None,
    loads: Annotated[
        str | None, typer.Option(help="Tokens of every worker in one step, e.g. 100000,80000.", show_default=False)
    ] = None,
    mean_load: Annotated[float | None, typer.Option(help="Mean load of a worker, tokens.")] = None,
    imbalance: Annotated[float | None, typer.Option(help="Mean imbalance G · max − sum, tokens.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", "-G", help="Number of workers, with --mean-load.")] = None,
    running: Annotated[
        float | None, typer.Option(help="Running requests a worker, with --loads or --mean-load.")
    ] = None,
    router: Annotated[
        str | None, typer.Option(help="Today's router, of a gap report [default: the report's baseline].")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option("--device", "-d", help="Card, or path of one; may be given again [default: ascend-910c, h800]."),
    ] = None,
    model: Annotated[str, typer.Option(help="Model that is served: a card, or path of one.")] = "deepseek-v3",
    devices_per_worker: Annotated[
        int | None, typer.Option(help="Devices of one worker [default: the fewest that hold weights and tokens].")
    ] = None,
    experts: Annotated[
        str, typer.Option(help="Experts of a mixture: **parallel** over all workers, or **local** to each.")
    ] = "parallel",
    tokens_per_request: Annotated[int, typer.Option(help="Tokens a request makes in a step.")] = 1,
    step_time: Annotated[
        str | None, typer.Option(help="A step-time law in place of the devices' rooflines; it has no interval.")
    ] = None,
    charge: Annotated[
        str, typer.Option(help="How the wait is charged: **wait-idle**, **split** or **share**.")
    ] = "wait-idle",
    carbon: Annotated[float | None, typer.Option(help="Carbon intensity, g CO₂ a kWh.")] = None,
    overhead: Annotated[float, typer.Option(help="Energy of the building for a joule of the devices (PUE).")] = 1.0,
    rental: Annotated[float | None, typer.Option(help="USD an hour and device [default: the card's range].")] = None,
    what_if: Annotated[
        str | None, typer.Option(help="Other fleets: workers=16,32,64 or slots=32,64; folders are simulated again.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws of the constants between their ends.")] = 1000,
    seed: options.Seed = 0,
    out: options.Out = None,
) -> None:
    """Price a fleet's imbalance on devices: today's router against better ones and against perfect balance.

    With --out, writes cost.csv, cost.png, cost.svg and run.json.

    Examples: `lbopt cost my-gap --device h800 --what-if workers=16,32` and
    `lbopt cost --mean-load 85000 --imbalance 200000 --workers 8 --running 35`
    """
    from lbopt.cli.console import ProgressBar, command_line, print_table, remark, say
    from lbopt.report.cost_folder import FORMAT, write_cost_folder
    from lbopt.report.cost_sources import of_numbers, read_cost_source
    from lbopt.report.cost_tables import cost_tables, lead
    from lbopt.report.folder import check_target
    from lbopt.studies.cost import CostConfig, parse_change, run_cost
    from lbopt.studies.cost.config import DEFAULT_DEVICES

    config = CostConfig(
        devices=tuple(device or DEFAULT_DEVICES),
        model=model,
        devices_per_worker=devices_per_worker,
        experts=experts,
        tokens_per_request=tokens_per_request,
        step_time=step_time,
        charge=charge,
        carbon=carbon,
        overhead=overhead,
        rental=rental,
        draws=draws,
        seed=seed,
    )
    plain = {"--loads": loads, "--mean-load": mean_load, "--imbalance": imbalance, "--workers": workers}
    named = [name for name, value in {**plain, "--running": running}.items() if value is not None]
    if source is not None and named:
        raise InputError(f"the loads come from '{source}'; leave {', '.join(named)} out")
    if source is None and router is not None:
        raise InputError(f"router '{router}' is one of a gap report; give its folder")
    if source is not None:
        found = read_cost_source(source, router)
    else:
        found = of_numbers(loads, mean_load, imbalance, workers, running)
    change = None if what_if is None else parse_change(what_if, found.rerun)
    folder = Path(out) if out else None
    if folder is not None:
        check_target(folder, FORMAT)
    with ProgressBar() as bar:
        outcome = run_cost(found.points, config, bar, change, found.rerun)
    outcome.notes = [*found.notes, *outcome.notes]
    if folder is not None:  # before anything is printed: a closed pipe must not cost the study
        write_cost_folder(outcome, found.title, folder, command_line())
    say(found.title)
    for table in cost_tables(outcome):
        print_table(table)
    for line in lead(outcome):
        say(line)
    for note in outcome.notes:
        remark(f"note: {note}")
    if folder is not None:
        say(f"table and picture: {folder}")
    if outcome.interrupted:
        remark("interrupted: tables and folder cover what was done until then")
        raise typer.Exit(130)
