"""What an audit is asked to do, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.policies import foresight_of, make_policy
from lbopt.studies.configuration import Option, from_plain

#: Rules that a router can use on arrival, and rules that need a queue of waiting requests.
DEFAULT_RULES = (
    "round-robin",
    "random",
    "power-of-two",
    "jsq",
    "jsq-load:admission=immediate",
    "br-0-bypass",
    "fcfs",
    "jsq-load",
    "max-min",
    "br-0",
    "auto",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """Configuration of an audit.

    Parameters
    ----------
    log
        The file.
    columns
        Texts ``QUANTITY=NAME`` for columns that are not recognised, such as ``worker=pod``.
    unit
        Unit of all times, "s", "ms", "us" or "ns"; None = recognised.
    slots
        Slots of a worker; None = the most that a worker of the log ran at once.
    rules
        Rules to judge, as `make_policy` reads them.
    price, gpus, currency
        Money for an hour of a GPU, GPUs of the fleet (None = one a worker), and what to call the money.
    accept_misfit
        Whether to recommend although the law does not give the log's own times.
    states, time_limit
        Decisions of the log that are compared with the best one (0 = none), and seconds for each.
    seed
        Of rules that draw, of samples and of the bootstrap.
    """

    log: Annotated[str, Option("The router's log: one row a request.", argument=True)]
    columns: Annotated[
        tuple[str, ...],
        Option("Column of a quantity, e.g. `worker=pod`; may be given again.", names=("--column",), key="column"),
    ] = ()
    unit: Annotated[str | None, Option("Unit of all times: s, ms, us or ns.", shown="recognised")] = None
    slots: Annotated[
        int | None, Option("Slots per worker.", names=("--slots", "-B"), shown="the most that ran at once")
    ] = None
    rules: Annotated[
        tuple[str, ...], Option("Rule to judge; may be given again.", names=("--policy", "-p"), key="policy")
    ] = DEFAULT_RULES
    price: Annotated[float | None, Option("Price of a GPU for an hour.")] = None
    gpus: Annotated[int | None, Option("GPUs of the fleet.", shown="one a worker")] = None
    currency: Annotated[str, Option("What the price is in.")] = "USD"
    accept_misfit: Annotated[
        bool, Option("Recommend although the fitted law misses the log's own times by more than 5 %.")
    ] = False
    states: Annotated[int, Option("Decisions of the log to compare with the best one; 0 for none.")] = 50
    time_limit: Annotated[float, Option("Seconds for each of them.")] = 1.0
    seed: Annotated[int, Option("First seed.")] = 0

    def __post_init__(self) -> None:
        _check_kinds(self)
        for text in self.columns:
            quantity, sign, name = text.partition("=")
            if not (quantity and sign and name):
                raise InputError(f"column '{text}' is not understood; expected QUANTITY=NAME, such as worker=pod")
        for name in ("slots", "gpus"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; expected at least 1")
        if self.price is not None and not (math.isfinite(self.price) and self.price >= 0):
            raise InputError(f"price is {self.price}; expected the price of a GPU for an hour, zero or more")
        if self.states < 0:
            raise InputError(f"states is {self.states}; expected zero or more")
        if not (self.time_limit > 0 and math.isfinite(self.time_limit)):
            raise InputError(f"time limit is {self.time_limit}; expected seconds above zero")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")
        if not self.rules:
            raise InputError("no rule is named; name some, such as jsq and br-0")
        for rule in self.rules:
            if foresight_of(make_policy(rule)) is not None:
                raise InputError(f"rule '{rule}' needs a forecast, which a log does not hold; leave it out")
        if (doubled := repeated(self.rules)) is not None:
            raise InputError(f"rule '{doubled}' is named twice")

    @property
    def named_columns(self) -> dict[str, str]:
        """Columns by their quantity."""
        return {text.partition("=")[0]: text.partition("=")[2] for text in self.columns}

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {"columns": list(self.columns), "rules": list(self.rules)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "the configuration") -> AuditConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="an audit", source=source)


def _check_kinds(config: AuditConfig) -> None:
    """Refuse what Python lets through: texts and truth values for numbers, a number for yes or no."""
    kinds: dict[str, tuple[Any, str]] = {
        **dict.fromkeys(("slots", "gpus", "states", "seed"), (int, "a whole number")),
        **dict.fromkeys(("price", "time_limit"), ((int, float), "a number")),
        "accept_misfit": (bool, "True or False"),
        "currency": (str, "a text"),
    }
    for name, (kind, expected) in kinds.items():
        value = getattr(config, name)
        if value is None and name in ("slots", "gpus", "price"):
            continue
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InputError(f"{name} is {value!r}; expected {expected}")
