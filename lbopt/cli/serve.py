"""`lbopt serve`: route live requests by any rule."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from lbopt.cli.from_config import as_verb, parameter
from lbopt.exceptions import InputError
from lbopt.serving.router.options import KEYS, RouterOptions, options_from


def _option(text: str, *names: str, kind: Any = str) -> Any:
    """Return the annotation of an option; what is not given is left to the fleet file."""
    return Annotated[kind | None, typer.Option(*names, help=text)]


_OPTIONS = {
    "fleet": _option("Fleet file (TOML): groups of workers that meet at a barrier."),
    "policy": _option("Rule, e.g. `auto` or `file.py:function`.", "--policy", "-p"),
    "host": _option("Address to listen on; loopback by default."),
    "port": _option("Port; 0 = any free one.", kind=int),
    "shadow": _option("Forward by this rule, e.g. `round-robin`, and let --policy decide beside it."),
    "record": _option("Folder for the record of decisions."),
    "tls_cert": _option("Certificate (PEM)."),
    "tls_key": _option("Its key (PEM)."),
}


def _serve(**given: Any) -> None:
    """Route live requests to workers by any rule.

    The keys are read from the environment: `LBOPT_API_KEY` for clients, `LBOPT_ADMIN_TOKEN` for `/workers`,
    `LBOPT_ROUTE_TOKEN` for gateways that ask `/route`.

    Example: `lbopt serve --fleet fleet.toml --shadow round-robin`
    """
    from lbopt.serving.process import require_serving

    require_serving("lbopt serve")
    fleet, tls = given.pop("fleet"), (given.pop("tls_cert"), given.pop("tls_key"))
    if fleet is None:
        raise InputError("no fleet is named; expected --fleet FILE, see the manual's page on serve")
    _run(fleet, given, tls)


serve = as_verb(
    _serve,
    "serve",
    _serve.__doc__ or "",
    (RouterOptions,),
    {name: parameter(name, kind, None) for name, kind in _OPTIONS.items()},
)


def _run(fleet: str, given: dict[str, Any], tls: tuple[str | None, str | None]) -> None:
    """Read the fleet, build the router and serve.

    Parameters
    ----------
    given
        Options of the command line; None = not given.
    """
    import logging

    from lbopt.cli.console import remark
    from lbopt.serving.router.dispatcher import needs_compiler
    from lbopt.serving.router.fleet_file import read_fleet
    from lbopt.serving.router.run import run, tls_of
    from lbopt.serving.router.service import Router

    logging.getLogger("lbopt.serving").setLevel(logging.INFO)
    plan = read_fleet(fleet)
    keys = {name: os.environ.get(f"LBOPT_{name.upper()}") for name in KEYS}
    options = options_from(plan.options, {**given, **keys})
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
