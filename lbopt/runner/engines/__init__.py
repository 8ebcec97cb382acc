"""Where tasks run: the table of engines, and `make_engine`, which builds one from what the user writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from lbopt.exceptions import InputError
from lbopt.runner.engines.dask_cluster import Dask
from lbopt.runner.engines.isolated import Engine, Isolated, Serial
from lbopt.runner.engines.joblib_pool import Joblib
from lbopt.spec import options_of, unknown

__all__ = ["ENGINES", "Dask", "Engine", "Isolated", "Joblib", "Serial", "make_engine"]

#: Every engine there is, by the name that the user writes.
ENGINES: dict[str, type[Serial] | type[Joblib] | type[Isolated] | type[Dask]] = {
    "serial": Serial,
    "joblib": Joblib,
    "isolated": Isolated,
    "dask": Dask,
}

#: How the address of a scheduler begins, and what Dask calls the same.
_SCHEDULERS = {"dask://": "", "dask+tls://": "tls://"}


def make_engine(spec: str, **options: Any) -> Engine:
    """Return the engine that ``name``, ``name:option=value,option=value`` or ``dask://host:port`` means.

    ``dask+tls://host:port`` is a scheduler that asks for certificates.

    `options` are set from Python; they go before those in the text.
    """
    if not isinstance(spec, str):
        raise InputError(f"engine is {spec!r}; expected text such as {', '.join(ENGINES)} or dask://host:port")
    name, _, text = spec.partition(":")
    address = {}
    for begin, scheme in _SCHEDULERS.items():
        if spec.startswith(begin):
            name, text, address = "dask", "", {"address": scheme + spec.removeprefix(begin).rstrip("/")}
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES, " (also dask://host:port)")
    make: Callable[..., Engine] = ENGINES[name]
    known = [entry.name for entry in fields(ENGINES[name])]
    for option in options:
        if option not in known:
            raise InputError(f"engine '{name}' has no option '{option}'; it takes {', '.join(known) or 'none'}")
    return make(**options_of("engine", name, text, make) | address | options)
