"""Where tasks run: the table of engines, and `make_engine`, which builds one by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from lbopt.exceptions import InputError
from lbopt.runner.engines.engine import Engine
from lbopt.runner.engines.isolated import Isolated
from lbopt.runner.engines.joblib_pool import Joblib
from lbopt.runner.engines.serial import Serial

__all__ = ["ENGINES", "Engine", "Isolated", "Joblib", "Serial", "make_engine"]

#: Every engine there is, by the name that the user writes.
ENGINES: dict[str, type[Serial] | type[Joblib] | type[Isolated]] = {
    "serial": Serial,
    "joblib": Joblib,
    "isolated": Isolated,
}


def make_engine(name: str, **options: Any) -> Engine:
    """Return the engine of that name with these options."""
    if name not in ENGINES:
        near = get_close_matches(str(name), ENGINES, n=1)
        meant = f" (did you mean '{near[0]}'?)" if near else ""
        raise InputError(f"engine is {name!r}{meant}; expected one of {', '.join(ENGINES)}")
    make: Callable[..., Engine] = ENGINES[name]
    known = [entry.name for entry in fields(ENGINES[name])]
    for option in options:
        if option not in known:
            raise InputError(f"engine '{name}' has no option '{option}'; it has {', '.join(known) or 'none'}")
    return make(**options)
