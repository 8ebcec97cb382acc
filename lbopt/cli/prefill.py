"""`lbopt prefill`: rules that dispatch prompts to prefill instances, beside each other."""

from __future__ import annotations

from typing import Annotated

import typer

from lbopt.cli import options


def prefill(
    trace: options.Trace = "burstgpt-like",
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="Dispatch policy with its allocation behind a slash, e.g. `staggered:window=50/pbaa`; may be given "
            "again [default: five].",
            show_default=False,
        ),
    ] = None,
    requests: options.Requests = None,
    draw: options.Draw = "auto",
    format: options.Format = "auto",
    prompt_column: options.PromptColumn = None,
    output_column: options.OutputColumn = None,
    arrival_column: options.ArrivalColumn = None,
    skip_malformed: options.SkipMalformed = False,
    arrivals: Annotated[
        str, typer.Option(help="**poisson**, or **trace**: its times, stretched where a rate or load is given.")
    ] = "poisson",
    rate: Annotated[float | None, typer.Option(help="Requests a second, of all instances together.")] = None,
    load: Annotated[
        float | None,
        typer.Option(help="The same as a share of what full passes can keep up with [default: 0.7 if poisson]."),
    ] = None,
    instances: Annotated[int, typer.Option("--instances", "-N", help="Prefill instances.")] = 3,
    units: Annotated[int, typer.Option("--units", "-D", help="Data-parallel units of an instance.")] = 8,
    chunk: Annotated[int | None, typer.Option(help="Most tokens of a unit in a pass [default: 3072].")] = None,
    no_chunk: Annotated[bool, typer.Option("--no-chunk", help="Let a pass take all that waits.")] = False,
    per_pass: Annotated[int | None, typer.Option(help="Most requests of a unit in a pass.")] = None,
    base: Annotated[float, typer.Option(help="Seconds of a pass that holds nothing.")] = 0.0943,
    per_token: Annotated[float, typer.Option(help="Seconds of a pass a token of its fullest unit.")] = 80.1e-6,
    per_longest: Annotated[float, typer.Option(help="Seconds of a pass a token of its longest chunk.")] = 0.0,
    per_mean: Annotated[float, typer.Option(help="Seconds of a pass a token of its mean unit.")] = 0.0,
    latency: Annotated[float, typer.Option(help="Seconds from the scheduler to an instance.")] = 0.0,
    engine: Annotated[str, typer.Option(help="**work-conserving** or **back-to-back**.")] = "work-conserving",
    queue_limit: Annotated[
        int | None, typer.Option(help="Refuse who comes when so many have come and not begun.")
    ] = None,
    seed: options.Seed = 0,
    out: options.Out = None,
) -> None:
    """Send prompts to prefill instances by several rules, and compare times to first token.

    Policies: random, round-robin, jsq[:by=tokens], pooled, staggered[:window=, interval=, timer=, target=,
    idle_bypass=]. Allocations to units: round-robin, least-loaded, longest-first, pbaa[:whole=, n_limit=].

    With --out, writes rules.csv, requests.csv, passes.csv and run.json.

    Example: `lbopt prefill azure-like --load 0.8 -p round-robin -p staggered:window=50/pbaa`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.exceptions import InputError
    from lbopt.prefill import PassTime, PrefillSetting
    from lbopt.studies.prefill import PrefillConfig
    from lbopt.studies.prefill.config import DEFAULT_CHUNK, DEFAULT_RULES
    from lbopt.studies.requests import RequestSource

    if no_chunk and chunk is not None:
        raise InputError(f"a chunk of {chunk} tokens and --no-chunk are both given; expected one of them")
    setting = PrefillSetting(
        instances,
        units,
        pass_time=PassTime(base, per_token, per_longest, per_mean),
        chunk_tokens=None if no_chunk else DEFAULT_CHUNK if chunk is None else chunk,
        requests_per_pass=per_pass,
        latency=latency,
        engine=engine,  # type: ignore[arg-type]  # checked there, with a sentence
        queue_limit=queue_limit,
    )
    source = RequestSource(
        trace=trace,
        count=requests,
        draw=draw,
        format=format,
        prompt_column=prompt_column,
        output_column=output_column,
        arrival_column=arrival_column,
        skip_malformed=skip_malformed,
    )
    config = PrefillConfig(
        requests=source,
        rules=tuple(rule or DEFAULT_RULES),
        arrivals=arrivals,
        rate=rate,
        load=load,
        setting=setting,
        seed=seed,
    )
    carry_out("prefill", config, out)
