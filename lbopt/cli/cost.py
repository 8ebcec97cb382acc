"""`lbopt cost`: what does imbalance cost, in milliseconds, joules and money?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lbopt.cli import options
from lbopt.exceptions import InputError

if TYPE_CHECKING:
    from lbopt.report.cost_sources import CostSource
    from lbopt.studies.cost import CostConfig, CostOutcome
    from lbopt.studies.progress import Progress


def cost(
    context: typer.Context,
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
    from lbopt.cli.carry_out import carry_out

    question = read_question(context.params)
    carry_out("cost", question.config, out, run=question.price)


class Question(NamedTuple):
    """What is to be priced: load points, on what, and which other fleets."""

    config: CostConfig
    found: CostSource
    change: tuple[str, list[int]] | None

    def price(self, progress: Progress) -> CostOutcome:
        """Return the cost; the outcome says where its loads are from."""
        from lbopt.studies.cost import run_cost

        outcome = run_cost(self.found.points, self.config, progress, self.change, self.found.rerun)
        outcome.source = self.found.title
        outcome.notes = [*self.found.notes, *outcome.notes]
        return outcome


def read_question(given: dict[str, Any]) -> Question:
    """Read the options of the command, by their names."""
    from lbopt.report.cost_sources import of_numbers, read_cost_source
    from lbopt.studies.cost import CostConfig, parse_change
    from lbopt.studies.cost.config import DEFAULT_DEVICES

    names = ("model", "devices_per_worker", "experts", "tokens_per_request", "step_time", "charge", "carbon")
    config = CostConfig(
        devices=tuple(given["device"] or DEFAULT_DEVICES),
        **{name: given[name] for name in (*names, "overhead", "rental", "draws", "seed")},
    )
    source, router, what_if = given["source"], given["router"], given["what_if"]
    plain = tuple(given[name] for name in ("loads", "mean_load", "imbalance", "workers", "running"))
    options_of_loads = ("--loads", "--mean-load", "--imbalance", "--workers", "--running")
    named = [name for name, value in zip(options_of_loads, plain, strict=True) if value is not None]
    if source is not None and named:
        raise InputError(f"the loads come from '{source}'; leave {', '.join(named)} out")
    if source is None and router is not None:
        raise InputError(f"router '{router}' is one of a gap report; give its folder")
    found = of_numbers(*plain) if source is None else read_cost_source(source, router)
    return Question(config, found, None if what_if is None else parse_change(what_if, found.rerun))


def run_command(command: str, progress: Progress) -> CostOutcome:
    """Price again what a stored command line names; paths in it are as seen from the present folder."""
    import click
    from typer.main import get_command

    verb, words = get_command(_app()), shlex.split(command)
    if words[:2] != ["lbopt", "cost"]:
        raise InputError(f"the loads are named by the command of a cost folder, and this is not one: {command}")
    try:
        given = verb.make_context("cost", words[2:]).params
    except click.ClickException as error:
        raise InputError(f"the command '{command}' is not one of this version: {error.format_message()}") from None
    return read_question(given).price(progress)


def _app() -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(cost)
    return app
