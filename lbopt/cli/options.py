"""Options that several verbs share: which requests, which fleet, which arrivals."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario

TRACE = typer.Argument(help="A trace file, a fetched trace, or a family: azure-like, burstgpt-like.", show_default=True)

Trace = Annotated[str, TRACE]
Requests = Annotated[
    int | None, typer.Option("--requests", "-n", help="How many requests [default: all of a file, 10000 of a family].")
]
Draw = Annotated[
    str, typer.Option(help="**order**: as they stand; **resample**: with replacement, by seed; **auto**: as fits.")
]
Format = Annotated[str, typer.Option(help="Trace format; auto tells it from the content.")]
PromptColumn = Annotated[str | None, typer.Option(help="Column of prompt tokens, for a CSV of your own.")]
OutputColumn = Annotated[str | None, typer.Option(help="Column of output tokens, for a CSV of your own.")]
ArrivalColumn = Annotated[str | None, typer.Option(help="Column of arrival times, for a CSV of your own.")]
SkipMalformed = Annotated[bool, typer.Option("--skip-malformed", help="Leave malformed rows out, counted.")]
Workers = Annotated[int, typer.Option("--workers", "-G", help="Number of workers.")]
Slots = Annotated[int, typer.Option("--slots", "-B", help="Slots per worker.")]
KvCapacity = Annotated[int | None, typer.Option(help="KV tokens a worker can hold; exceeding it is reported.")]
Arrivals = Annotated[str, typer.Option(help="**closed**: as fast as they are taken; **trace**: the trace's times.")]
RevealTarget = Annotated[int | None, typer.Option(help="Requests kept waiting in a closed loop [default: 4·G].")]
Load = Annotated[float | None, typer.Option(help="Rescale the trace's times to this share of saturation, e.g. 0.95.")]
EventOrder = Annotated[str, typer.Option(help="Where loads are read: **paper** or **theory**.")]
StepTime = Annotated[
    str | None,
    typer.Option(help="Step-time law, e.g. `roofline:device=h800` [default: affine, constants of BF-IO]."),
]
Power = Annotated[str, typer.Option(help="How power is read: **share**, **split**, **split-fixed-busy** or **mfu**.")]
Seed = Annotated[int, typer.Option(help="First seed.")]
Solver = Annotated[str, typer.Option(help="exact, auto, brute-force, cp-sat, highs or pulp.")]
Out = Annotated[str | None, typer.Option("--out", "-o", help="Output folder.")]
TrainShare = Annotated[
    float | None,
    typer.Option(
        help="First share of a file to train predictors on, not run [default: 0.2 where one learns in order]."
    ),
]
TrainOn = Annotated[str | None, typer.Option(help="Other requests to train predictors on: a file or a family.")]
Predictor = Annotated[
    str | None, typer.Option(help="What rules that look ahead go by, where they do not say: survival, oracle, ...")
]


def scenario(given: dict[str, Any]) -> Scenario:
    """Build the scenario from the options of a command, by their names."""
    return Scenario(
        requests=RequestSource(
            trace=given["trace"],
            count=given["requests"],
            draw=given["draw"],
            format=given["format"],
            prompt_column=given["prompt_column"],
            output_column=given["output_column"],
            arrival_column=given["arrival_column"],
            skip_malformed=given["skip_malformed"],
            train_share=given["train_share"],
            train_on=given["train_on"],
        ),
        num_workers=given["workers"],
        slots_per_worker=given["slots"],
        kv_capacity=given["kv_capacity"],
        arrivals=given["arrivals"],
        reveal_target=given["reveal_target"],
        load=given["load"],
        event_order=given["event_order"],
        step_time=given["step_time"],
        power=given["power"],
    )
