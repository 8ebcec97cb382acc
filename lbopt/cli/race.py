"""`lbopt race`: who proves it first?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options


def race(
    solvers: Annotated[str, typer.Option(help="Who takes part, separated by commas.")] = "exact,highs,cp-sat",
    limit: Annotated[float, typer.Option(help="Seconds a run, for the solver proper.")] = 20.0,
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instances",
            "-i",
            help="Names or kinds of the packaged library, **all**, or problem files (.json, .jsonl), separated by "
            "commas; may be given again.",
        ),
    ] = None,
    states: Annotated[
        list[str] | None,
        typer.Option(
            help="Classes of steady states, e.g. `rich-burstgpt-g16`, separated by commas; may be given again."
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="States of each class.")] = 20,
    shift: Annotated[int, typer.Option(help="Added to the seeds of the classes: other states, for tuning.")] = 0,
    data: Annotated[Path | None, typer.Option(help="Folder of the traces that the states are drawn from.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Solver that times are divided by [default: the first].")
    ] = None,
    seed: options.Seed = 0,
    jobs: Annotated[int, typer.Option(help="Runs at a time; more than one disturbs the timing.")] = 1,
    retry_failures: Annotated[bool, typer.Option("--retry-failures", help="Make stored failures again.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder; the same one goes on.")] = Path("lbopt-race"),
) -> None:
    """Let solvers race to a proof on the same step problems, each in a process of its own.

    Writes race.sqlite, results.csv, summary.json, profile and ratios (png, svg), report.html and run.json. What the
    folder's race.sqlite holds is not run again. Exit code 1 if a bound that counts excludes a placement of somebody
    else.

    Example: `lbopt race --solvers exact,highs --limit 5 --instances examples/one_step.json --out my-race`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.race import RaceConfig

    config = RaceConfig(
        solvers=tuple(_split([solvers])),
        time_limit=limit,
        seed=seed,
        reference=reference,
        instances=tuple(_split(instances)),
        states=tuple(_split(states)),
        count=count,
        shift=shift,
        data=None if data is None else str(data),
        jobs=jobs,
        retry_failures=retry_failures,
    )
    carry_out("race", config, out)


def _split(words: list[str] | None) -> list[str]:
    return [part for word in words or [] for part in word.split(",") if part]
