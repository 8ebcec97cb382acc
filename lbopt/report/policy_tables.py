"""Tables of the routing rules."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt.policies.table import RuleDescription
from lbopt.table import Table


def policy_list_table(rules: Sequence[RuleDescription]) -> Table:
    """Return a line a rule."""
    return Table(
        title="routing rules",
        caption="Options are given as name:option=value,option=value; `lbopt show policies NAME` shows their defaults. "
        "Further: replay:FILE follows a log, file.py:function is a rule of your own.",
        headers=("rule", "what it does", "needs to know", "admission", "options", "source"),
        rows=[
            (rule.name, rule.does, rule.needs, rule.admission, ", ".join(rule.options) or "–", rule.source)
            for rule in rules
        ],
    )


def policy_option_table(rule: RuleDescription) -> Table:
    """Return a line an option."""
    return Table(
        title=f"{rule.name}: {rule.does}",
        caption=f"Needs to know: {rule.needs}. Admission: {rule.admission}. Source: {rule.source}.",
        headers=("option", "default"),
        rows=list(rule.options.items()),
    )
