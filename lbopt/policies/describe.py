"""The routing rules as users read of them: in words, with the options of their factories."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from lbopt.policies.table import ABOUT, POLICIES, make_policy
from lbopt.spec import unknown


@dataclass(frozen=True, slots=True)
class RuleDescription:
    """A rule.

    Parameters
    ----------
    name
        As `make_policy` reads it.
    does
        What it does, in a few words.
    needs
        What it has to know of requests and workers.
    admission
        By default "pooled", where requests wait in one pool for a free slot, or "immediate", bound on arrival.
    options
        Name and default of each option, as `make_policy` reads them.
    source
        Where the rule is from.
    """

    name: str
    does: str
    needs: str
    admission: str
    options: dict[str, str]
    source: str


def describe_policies(name: str | None = None) -> list[RuleDescription]:
    """Return all rules, or the one that is named.

    Raises
    ------
    InputError
        If there is no such rule.
    """
    if name is not None and name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    return [_describe(rule) for rule in POLICIES if name in (None, rule)]


def _describe(name: str) -> RuleDescription:
    options = {
        parameter.name: "none" if parameter.default is None else str(parameter.default)
        for parameter in inspect.signature(POLICIES[name]).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    }
    about = ABOUT[name]
    return RuleDescription(name, about.does, about.needs, make_policy(name).admission, options, about.source)
