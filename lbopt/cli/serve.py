"""`lbopt serve`: route live requests by any rule; `lbopt serve seal`: join the record of such a router."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from lbopt.cli.lazy import CONTEXT
from lbopt.exceptions import InputError

app = typer.Typer(
    help="Route live requests to workers by any rule, or decide beside your router first (`--shadow`).",
    context_settings=CONTEXT,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)

_LIMITS, _RULE, _DOORS, _ENGINES = "Limits", "Rule", "Doors", "Engines"


def _option(text: str, panel: str | None = None, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel)


@app.callback()
def serve(
    context: typer.Context,
    fleet: Annotated[str | None, _option("Fleet file (TOML): groups of workers that meet at a barrier.")] = None,
    policy: Annotated[str | None, _option("Rule, e.g. `auto` or `file.py:function`.", None, "--policy", "-p")] = None,
    host: Annotated[str | None, _option("Address to listen on; loopback by default.")] = None,
    port: Annotated[int | None, _option("Port; 0 = any free one.")] = None,
    shadow: Annotated[
        str | None, _option("Forward by this rule, e.g. `round-robin`, and let --policy decide beside it.")
    ] = None,
    record: Annotated[str | None, _option("Folder for the record of decisions.")] = None,
    set_: Annotated[
        list[str] | None,
        _option("Any option of the manual's table, NAME=VALUE; may be given again.", None, "--set"),
    ] = None,
    tls_cert: Annotated[str | None, _option("Certificate (PEM).", _DOORS)] = None,
    tls_key: Annotated[str | None, _option("Its key (PEM).", _DOORS)] = None,
    seed: Annotated[int | None, _option("Seed of rules that draw.", _RULE)] = None,
    train_on: Annotated[str | None, _option("Trace from which predictors learn.", _RULE)] = None,
) -> None:
    """Route live requests to workers by any rule.

    The keys are read from the environment: `LBOPT_API_KEY` for clients, `LBOPT_ADMIN_TOKEN` for `/workers`,
    `LBOPT_ROUTE_TOKEN` for gateways that ask `/route`.

    Example: `lbopt serve --fleet fleet.toml --shadow round-robin`
    """
    if context.invoked_subcommand is not None:
        return
    from lbopt.serving.process import require_serving

    require_serving("lbopt serve")
    if fleet is None:
        raise InputError("no fleet is named; expected --fleet FILE, see the manual's page on serve")
    given = {"policy": policy, "host": host, "port": port, "shadow": shadow, "record": record}
    given |= {"seed": seed, "train_on": train_on}
    _run(fleet, given, set_ or [], (tls_cert, tls_key))


def _run(fleet: str, given: dict[str, Any], settings: list[str], tls: tuple[str | None, str | None]) -> None:
    """Read the fleet, build the router and serve.

    Parameters
    ----------
    given
        Options of the command line; None = not given.
    """
    import logging

    from lbopt.cli.console import remark
    from lbopt.serving.router.fleet_file import read_fleet
    from lbopt.serving.router.options import KEYS, options_from
    from lbopt.serving.router.rules import needs_compiler
    from lbopt.serving.router.run import run, tls_of
    from lbopt.serving.router.service import Router

    logging.getLogger("lbopt.serving").setLevel(logging.INFO)
    plan = read_fleet(fleet)
    keys = {name: os.environ.get(f"LBOPT_{name.upper()}") for name in KEYS}
    options = options_from(plan.options, settings, {**given, **keys})
    training = None
    if options.train_on is not None:
        from lbopt.studies.requests import RequestSource

        training = RequestSource(trace=options.train_on).draw_for(options.seed, num_seeds=1)
    router = Router(plan, options, training)
    if not needs_compiler(router.rules, plan.groups, options):
        os.environ["NUMBA_DISABLE_JIT"] = "1"

    def told(server: Any) -> None:
        scheme = "http" if tls[0] is None else "https"
        workers = sum(len(group.workers) for group in plan.groups)
        beside = "" if options.shadow is None else f", {options.policy} decides beside it"
        remark(f"{router.rule_name} routes {workers} workers on {scheme}://{options.host}:{server.port}{beside}")

    run(router, tls_of(*tls), told)
    if router.shadow is not None:
        from lbopt.cli.console import say

        for side in ("forwards", "shadow"):
            course = router.shadow.summary()[side]
            idle, wait = course["idle_share_at_barrier"], course["mean_wait_seconds"]
            if idle is not None and wait is not None:
                say(f"{side:<9}{course['rule']:<24} idle at the barrier {idle:.1%}, mean wait {wait:.3f} s")


@app.command("seal")
def seal_record(
    folder: Annotated[str, typer.Argument(help="Folder that --record named.")],
    out: Annotated[str | None, _option("Folder for the files; the same by default.", None, "--out", "-o")] = None,
) -> None:
    """Join decisions and outcomes: `requests.csv` for `lbopt audit`, `steps.jsonl` for `lbopt gap --problems`.

    With `trace.jsonl` for studies of prefix caches, where the record tells what prompts begin with.
    """
    from lbopt.cli.console import say
    from lbopt.serving.record.seal import seal

    sealed = seal(folder, out)
    endings = ", ".join(f"{count:,} {ending}" for ending, count in sorted(sealed.endings.items())) or "none"
    say(f"{sealed.requests:,} requests ({endings}), {sealed.steps:,} step problems")
    if sealed.prefixes:
        say(f"trace.jsonl: {sealed.prefixes:,} finished requests with their prefixes")
    for reason, count in sorted(sealed.left_out.items()):
        say(f"left out: {count:,} {reason}")
