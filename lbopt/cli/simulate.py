"""`lbopt simulate`: one policy over a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options
from lbopt.exceptions import InputError
from lbopt.simulator.metrics import Window


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
    from lbopt.cli.console import ProgressBar, command_line, print_table, remark, say
    from lbopt.hardware.step_time import StepTimeByUse
    from lbopt.policies import LookingAhead, foresight_of, look_ahead, make_policy
    from lbopt.report.folder import check_target
    from lbopt.report.run_folder import FORMAT, write_run_folder
    from lbopt.report.run_table import run_table
    from lbopt.simulator import simulate as run_policy
    from lbopt.studies.logs import refuse_logs_of_other_requests
    from lbopt.studies.training import said_of_training, training_for, with_training

    scenario = options.scenario(context.params)
    chosen = make_policy(policy, look_ahead(horizon, predictor))
    if foresight_of(chosen) is None and (horizon or predictor):
        if isinstance(chosen, LookingAhead):
            raise InputError(f"policy '{chosen.name}' looks 0 steps ahead; add --horizon, or leave --predictor out")
        raise InputError(f"policy '{chosen.name}' does not look ahead; leave --horizon and --predictor out")
    refuse_logs_of_other_requests(scenario.requests, [chosen])
    scenario = with_training(scenario, [chosen])
    steps = _window(window)
    folder = Path(out) if out else None
    if folder is not None:
        check_target(folder, FORMAT)
    drawn, training = scenario.requests.draw_for(seed), training_for(scenario, [chosen], seed)
    with ProgressBar() as bar:
        bar.begin(chosen.name, len(drawn))
        done = 0

        def show(ended: int, total: int) -> None:
            nonlocal done
            bar.advance(ended - done)
            done = ended

        run = run_policy(drawn, chosen, scenario.setting, seed=seed, training=training, progress=show)
    metrics = run.metrics(steps)
    if folder is not None:
        asked = {"scenario": scenario.to_dict(), "policy": policy, "horizon": horizon, "predictor": predictor}
        write_run_folder(run, metrics, folder, command_line(), asked)
    print_table(run_table(run, metrics))
    if drawn.experts is not None and not isinstance(scenario.setting.law, StepTimeByUse):
        remark("note: this step time does not go by the experts that requests use; --step-time experts does")
    for note in said_of_training(scenario, [chosen]):
        remark(f"note: {note}")
    if folder is not None:
        say(f"tables: {folder}")


def _window(text: str | None) -> Window | None:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not colon or not (first.isdecimal() and last.isdecimal()):
        raise InputError(f"window '{text}' is not understood; expected FIRST:LAST, steps counted from 1")
    return Window(int(first), int(last))
