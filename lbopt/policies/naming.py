"""What tables call a policy: its name with the options that differ from their defaults."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

#: Options that mean nothing without a window.
_OF_A_WINDOW = {"predictor", "refresh", "gate", "floor", "hold_anchor", "growth", "departures", "boundary", "new"}


def named(name: str, policy: Any) -> str:
    """Return `name`, and behind it the changed options of the dataclass `policy`, as a user would write them.

    Options of the forecast are left out where the policy does not look ahead.
    """
    silent = set() if getattr(policy, "horizon", 0) else _OF_A_WINDOW
    changed = []
    for option in fields(policy):
        value = getattr(policy, option.name)
        if option.init and option.name not in silent and value != option.default:
            changed.append(f"{option.name}={_written(value)}")
    return ":".join([name, *([",".join(changed)] if changed else [])])


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
