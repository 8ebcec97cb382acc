"""The two sides of `lbopt gap`: which option belongs to which, and the prefill side itself."""

from __future__ import annotations

from typing import Any

import typer

SIDES = ("decode", "prefill")

#: Options of the prefill side alone, and those that mean something on both; all others are of the decode side.
_PREFILL = {"instances", "chunk"}
_BOTH = {
    *("trace", "side", "requests", "draw", "format", "prompt_column", "output_column", "skip_malformed", "workers"),
    *("load", "behaviour", "policy", "states", "seed", "time_limit", "out"),
}


def check_side(side: str, context: typer.Context) -> None:
    """Refuse a side that there is not, and options given on the side to which they say nothing."""
    from lbopt.exceptions import InputError
    from lbopt.spec import unknown

    if side not in SIDES:
        raise unknown("side", side, SIDES)
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in _BOTH or source is None or source.name.startswith("DEFAULT"):
            continue
        concerns = "prefill" if name in _PREFILL else "decode"
        if concerns != side:
            raise InputError(
                f"{parameter.opts[0]} concerns the {concerns} side; expected --side {concerns}, or a command without it"
            )


def judge_batches(given: dict[str, Any]) -> None:
    """Sample prefill batches, solve them and judge allocations by the options of the command, by their names."""
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.batches import BatchesConfig
    from lbopt.studies.batches.config import DEFAULT_BEHAVIOURS, DEFAULT_LOAD, DEFAULT_RULES, DEFAULT_TIME_LIMIT
    from lbopt.studies.requests import RequestSource

    files = ("trace", "draw", "format", "prompt_column", "output_column", "skip_malformed")
    load, time_limit, out = given["load"], given["time_limit"], given["out"]
    config = BatchesConfig(
        requests=RequestSource(count=given["requests"], **{name: given[name] for name in files}),
        behaviours=tuple(given["behaviour"] or DEFAULT_BEHAVIOURS),
        rules=tuple(given["policy"] or DEFAULT_RULES),
        states=given["states"],
        instances=given["instances"],
        units=given["workers"],
        chunk=given["chunk"],
        load=DEFAULT_LOAD if load is None else load,
        seed=given["seed"],
        time_limit=DEFAULT_TIME_LIMIT if time_limit is None else time_limit,
    )
    carry_out("batches", config, "lbopt-batch-gap" if out is None else out)
