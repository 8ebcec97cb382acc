"""`lbopt predict`: what is known of how long a running request will run?"""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options


def predict(
    trace: options.Trace = "burstgpt-like",
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps that predictors look ahead.")] = 80,
    predictor: Annotated[
        list[str] | None,
        typer.Option(
            help="Predictor to judge, e.g. `memorised:bins=20`; may be given again "
            "[default: survival, memorised, memorised:bins=20, learned]."
        ),
    ] = None,
    train_share: Annotated[float, typer.Option(help="Share of the requests, the first, to learn from.")] = 0.5,
    stride: Annotated[int, typer.Option(help="Tokens between two ages at which a request is asked about.")] = 10,
    requests: options.Requests = None,
    format: options.Format = "auto",
    prompt_column: options.PromptColumn = None,
    output_column: options.OutputColumn = None,
    arrival_column: options.ArrivalColumn = None,
    skip_malformed: options.SkipMalformed = False,
    seed: options.Seed = 0,
    out: options.Out = None,
) -> None:
    """Train predictors on the first requests of a trace, and judge them on the others.

    Every test request is walked through its ages; at each, a predictor says how likely the request ends within the
    horizon, and when. With --out, writes prediction.csv, calibration.csv, prediction.png, prediction.svg and run.json.

    Example: `lbopt predict azure-like --horizon 20 --predictor survival --predictor learned --out my-prediction`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.prediction import PredictionConfig
    from lbopt.studies.prediction.config import DEFAULT_PREDICTORS
    from lbopt.studies.requests import RequestSource

    config = PredictionConfig(
        requests=RequestSource(
            trace=trace,
            count=requests,
            draw="order",
            format=format,
            prompt_column=prompt_column,
            output_column=output_column,
            arrival_column=arrival_column,
            skip_malformed=skip_malformed,
        ),
        horizon=horizon,
        predictors=tuple(predictor or DEFAULT_PREDICTORS),
        train_share=train_share,
        stride=stride,
        seed=seed,
    )
    carry_out("prediction", config, out)
