"""`lbopt simulate`: one policy over a trace."""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options


def simulate(
    context: typer.Context,
    trace: options.Trace = "burstgpt-like",
    policy: Annotated[str, typer.Option("--policy", "-p", help="A rule, replay:FILE, or file.py:function.")] = "fcfs",
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
    horizon: Annotated[
        int | None, typer.Option("--horizon", "-H", help="Steps that the rule looks ahead, where it can.")
    ] = None,
    predictor: options.Predictor = None,
    train_share: options.TrainShare = None,
    train_on: options.TrainOn = None,
    seed: options.Seed = 0,
    window: Annotated[
        str | None, typer.Option(help="Steps to average over, FIRST:LAST [default: up to the last admission].")
    ] = None,
    out: options.Out = None,
) -> None:
    """Run one policy over a trace and print its metrics.

    With --out, writes requests.csv, steps.csv and run.json.

    Example: `lbopt simulate burstgpt-like --policy br-0 --workers 16 --requests 20000`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.simulation import SimulationConfig

    config = SimulationConfig(
        scenario=options.scenario(context.params),
        policy=policy,
        horizon=horizon,
        predictor=predictor,
        seed=seed,
        window=window,
    )
    carry_out("simulation", config, out)
