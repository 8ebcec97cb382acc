"""`lbopt gap`: how far is each rule from the best placement?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options
from lbopt.cli.gap_sides import check_side, judge_batches


def gap(
    context: typer.Context,
    trace: options.Trace = "burstgpt-like",
    side: Annotated[
        str, typer.Option(help="**decode**: where requests start; **prefill**: units for the prompts of a batch.")
    ] = "decode",
    requests: options.Requests = None,
    draw: options.Draw = "auto",
    format: options.Format = "auto",
    prompt_column: options.PromptColumn = None,
    output_column: options.OutputColumn = None,
    arrival_column: options.ArrivalColumn = None,
    skip_malformed: options.SkipMalformed = False,
    workers: Annotated[
        int, typer.Option("--workers", "-G", help="Number of workers; prefill: units of an instance.")
    ] = 8,
    instances: Annotated[int, typer.Option(help="Prefill: number of instances.")] = 3,
    chunk: Annotated[int, typer.Option(help="Prefill: most tokens of a unit in a pass.")] = 3072,
    slots: options.Slots = 72,
    kv_capacity: options.KvCapacity = None,
    arrivals: options.Arrivals = "closed",
    reveal_target: options.RevealTarget = None,
    load: Annotated[
        float | None,
        typer.Option(
            help="Rescale the trace's times to this share of saturation, e.g. 0.95. Prefill: rate of random "
            "arrivals, as a share of that which fills every chunk [default: 0.8]."
        ),
    ] = None,
    event_order: options.EventOrder = "paper",
    step_time: options.StepTime = None,
    power: options.Power = "share",
    horizon: Annotated[
        int, typer.Option("--horizon", "-H", help="Judge over a window of so many steps; rules look so far ahead.")
    ] = 0,
    new: Annotated[
        str, typer.Option(help="Waiting requests in that window: **survives** it, or **ends**.")
    ] = "survives",
    predictor: options.Predictor = None,
    train_share: options.TrainShare = None,
    train_on: options.TrainOn = None,
    behaviour: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy under which states are sampled; may be given again [default: fcfs, br-0; prefill: pbaa, "
            "round-robin]."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="Policy to judge, e.g. `br-0:age_bound=50`; may be given again [default: all rules]. Prefill: an "
            "allocation [default: pbaa, longest-first, round-robin].",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Policy that differences are taken to [default: the first].")
    ] = None,
    states: Annotated[int, typer.Option(help="States per behaviour.")] = 50,
    problems: Annotated[
        str | None, typer.Option(help="Score frozen problems (steps.jsonl) instead of sampling.")
    ] = None,
    long_runs: Annotated[bool, typer.Option(help="Also run every policy over the requests.")] = True,
    seed: options.Seed = 0,
    seeds: Annotated[int, typer.Option(help="Number of seeds of the long runs.")] = 1,
    solver: options.Solver = "exact",
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds per state [default: 10; prefill: 2 for each optimum].")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Output folder [default: lbopt-gap; prefill: lbopt-batch-gap].")
    ] = None,
) -> None:
    """Sample decode steps, solve each to optimality, and measure how far every policy stays behind.

    Writes gap.csv, long_runs.csv, differences.csv, steps.jsonl, pictures, report.html and run.json; with --side prefill
    batches.csv, gap.csv, batches.jsonl, a picture and run.json.

    Example: `lbopt gap burstgpt-like --requests 3000 --states 20 --out demo-gap`
    """
    check_side(side, context)
    if side == "prefill":
        judge_batches(context.params)
        return
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.gap import GapConfig
    from lbopt.studies.gap.config import DEFAULT_BEHAVIOURS, DEFAULT_POLICIES, with_training

    config = GapConfig(
        scenario=options.scenario(context.params),
        behaviours=tuple(behaviour or DEFAULT_BEHAVIOURS),
        policies=tuple(policy or DEFAULT_POLICIES),
        baseline=baseline,
        states=states,
        seed=seed,
        seeds=seeds,
        solver=solver,
        time_limit=10.0 if time_limit is None else time_limit,
        problems=problems,
        long_runs=long_runs and problems is None,
        horizon=horizon,
        new=new,
        predictor=predictor,
    )
    carry_out("gap", with_training(config), "lbopt-gap" if out is None else out)
