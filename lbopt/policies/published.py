"""`br-0:published`, `br-h:published`: rules as their papers have them, whatever the bare names come to mean.

What a paper leaves open stands here as lbopt chose it when it first had the rule. Options may follow and change single
values: ``br-0:published,age_bound=50``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbopt.exceptions import InputError

WORD = "published"

#: Every option of each rule by its value.
PUBLISHED: dict[str, dict[str, Any]] = {
    "br-0": {"stage_switch": 7, "window": 4, "window_order": "size", "key": "lexicographic", "age_bound": None},
    "br-h": {
        **{"horizon": 80, "alpha": 1.0, "beta": 48.0, "gamma": 0.9},
        **{"stage_switch": 7, "window": 4, "window_order": "size", "key": "lexicographic", "age_bound": None},
        **{"subset": "enumerate", "growth": 1, "departures": "cut", "boundary": "alive", "update": "constant"},
        **{"predictor": "survival", "refresh": None, "gate": 0.5, "floor": 1.0, "hold_anchor": False},
    },
}


def without_published(name: str, text: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the options that are left of `text`, and the values that hold where these do not say otherwise.

    Parameters
    ----------
    name
        Of the rule.
    text
        ``option=value,option=value``, perhaps with ``published`` before.
    given
        Values of the caller, which go before published ones.
    """
    first, _, rest = text.partition(",")
    if first != WORD:
        return text, dict(given)
    if name not in PUBLISHED:
        known = " or ".join(f"{rule}:{WORD}" for rule in PUBLISHED)
        raise InputError(f"policy '{name}' has no published form of its own; expected {known}, or {name} alone")
    return rest, {**PUBLISHED[name], **given}
