"""``lbopt study``: questions that take many runs."""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options
from lbopt.cli.export import export
from lbopt.cli.locality_study import locality
from lbopt.cli.placement import placement
from lbopt.cli.reproduction import reproduction
from lbopt.cli.scaling import scaling
from lbopt.cli.staggered import staggered

app = typer.Typer(no_args_is_help=True, help="Questions that take many runs, such as what a wrong forecast costs.")
app.command()(export)
app.command()(placement)
app.command()(locality)
app.command()(reproduction)
app.command()(scaling)
app.command()(staggered)


@app.callback()
def study() -> None:
    """Questions that take many runs, such as what a wrong forecast costs."""


@app.command()
def misprediction(
    context: typer.Context,
    trace: options.Trace = "burstgpt-like",
    requests: options.Requests = None,
    draw: options.Draw = "auto",
    format: options.Format = "auto",
    prompt_column: options.PromptColumn = None,
    output_column: options.OutputColumn = None,
    arrival_column: options.ArrivalColumn = None,
    skip_malformed: options.SkipMalformed = False,
    workers: options.Workers = 8,
    slots: options.Slots = 72,
    kv_capacity: options.KvCapacity = None,
    arrivals: options.Arrivals = "closed",
    reveal_target: options.RevealTarget = None,
    load: options.Load = None,
    event_order: options.EventOrder = "paper",
    step_time: options.StepTime = None,
    power: options.Power = "share",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="Rule that looks ahead, without its predictor, e.g. `br-h:gamma=0.6`; may be given again "
            "[default: br-h].",
        ),
    ] = None,
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps that rules look ahead, at least 1.")] = 20,
    noise: Annotated[
        list[float] | None,
        typer.Option(help="Spread of the logarithm of believed outputs; may be given again [default: 0.1 0.3 1 3]."),
    ] = None,
    bias: Annotated[
        list[float] | None,
        typer.Option(help="Factor on believed outputs; may be given again [default: 0.25 0.5 2 4]."),
    ] = None,
    shuffled: Annotated[
        list[float] | None,
        typer.Option(help="Share of outputs exchanged among requests; may be given again [default: 0.25 0.5 1]."),
    ] = None,
    other_trace: Annotated[
        str | None,
        typer.Option(help="File or family on which predictors are also trained [default: the other family]."),
    ] = None,
    train_share: options.TrainShare = None,
    train_on: options.TrainOn = None,
    behaviour: Annotated[str, typer.Option(help="Policy under which states are sampled.")] = "br-0",
    states: Annotated[int, typer.Option(help="How many frozen states.")] = 50,
    new: Annotated[
        str, typer.Option(help="Waiting requests in the window of a state: **survives** it, or **ends**.")
    ] = "survives",
    seed: options.Seed = 0,
    seeds: Annotated[int, typer.Option(help="Number of seeds of the long runs.")] = 3,
    time_limit: Annotated[float, typer.Option(help="Seconds per state.")] = 2.0,
    out: options.Out = None,
) -> None:
    """Give rules that look ahead worse and worse forecasts, and measure what each costs.

    With --out, writes misprediction.csv, long_runs.csv, steps.jsonl, misprediction.png, misprediction.svg and run.json.

    Example: `lbopt study misprediction burstgpt-like --requests 4000 --states 20 --out my-study`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.misprediction import MispredictionConfig
    from lbopt.studies.misprediction.config import DEFAULT_BIAS, DEFAULT_NOISE, DEFAULT_POLICIES, DEFAULT_SHUFFLED

    config = MispredictionConfig(
        scenario=options.scenario(context.params),
        policies=tuple(policy or DEFAULT_POLICIES),
        horizon=horizon,
        noise=tuple(noise or DEFAULT_NOISE),
        bias=tuple(bias or DEFAULT_BIAS),
        shuffled=tuple(shuffled or DEFAULT_SHUFFLED),
        other_trace=other_trace,
        behaviour=behaviour,
        states=states,
        new=new,
        seed=seed,
        seeds=seeds,
        time_limit=time_limit,
    )
    carry_out("misprediction", config, out)
