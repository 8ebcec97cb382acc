"""`lbopt policies`: the routing rules with their options, what they need to know, and their source."""

from __future__ import annotations

from typing import Annotated

import typer


def policies(
    name: Annotated[str | None, typer.Argument(help="One rule, to be shown with every option and its default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object per rule.")] = False,
) -> None:
    """List the routing rules: what they need to know of requests, when they bind them, their options, their source.

    Example: `lbopt policies br-h`
    """
    import json
    from dataclasses import asdict

    from lbopt.cli.console import print_table, say
    from lbopt.policies.table import describe_policies
    from lbopt.report.policy_tables import policy_list_table, policy_option_table

    rules = describe_policies(name)
    if as_json:
        say(json.dumps([asdict(rule) for rule in rules], indent=2))
        return
    print_table(policy_list_table(rules) if name is None else policy_option_table(rules[0]))
