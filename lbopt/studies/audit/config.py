"""What an audit is asked to do, as plain data."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Annotated

from lbopt.exceptions import InputError
from lbopt.instances.router_log.guess import LABELS
from lbopt.policies import foresight_of, make_policy
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.requests import by_quantity, understood_column

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


def _labelled(text: str) -> None:
    """Refuse what is no quantity and name."""
    quantity, sign, name = text.partition("=")
    quantities = (*LABELS, "worker")
    if not (sign and name) or quantity not in quantities:
        raise InputError(f"only is '{text}'; expected QUANTITY=NAME with {', '.join(quantities)}, such as model=llama")


def _needs_no_forecast(rule: str) -> None:
    """Refuse a rule that looks ahead."""
    if foresight_of(make_policy(rule)) is not None:
        raise InputError(f"rule '{rule}' needs a forecast, which a log does not hold; leave it out")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig(Configuration):
    """Configuration of an audit.

    Of a log, slots of a worker are the most that one ran at once where they are not given, GPUs one a worker, and units
    recognised. `seed` is of rules that draw, of samples and of the bootstrap.
    """

    what = "an audit"

    log: Annotated[str, Option("The router's log: one row a request.", argument=True)]
    columns: Annotated[
        tuple[str, ...],
        Option(
            "Column of a quantity, e.g. `worker=pod`; may be given again.",
            names=("--column",),
            key="column",
            first=True,
            each=understood_column,
            empty=True,
        ),
    ] = ()
    group: Annotated[
        str | None,
        Option(
            "Column that names the workers which share a barrier; - says that all do.",
            first=True,
            shown="found",
            later="left out",
        ),
    ] = None
    only: Annotated[
        tuple[str, ...],
        Option(
            "Rows to audit, e.g. `model=llama`; may be given again.",
            first=True,
            each=_labelled,
            empty=True,
            later="left out",
        ),
    ] = ()
    unit: Annotated[str | None, Option("Unit of all times: s, ms, us or ns.", shown="recognised")] = None
    slots: Annotated[
        int | None, Option("Slots per worker.", names=("--slots", "-B"), shown="the most that ran at once", low=1)
    ] = None
    rules: Annotated[
        tuple[str, ...],
        Option(
            "Rule to judge; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            each=_needs_no_forecast,
            kept="once",
        ),
    ] = DEFAULT_RULES
    logged: Annotated[str | None, Option("Rule that wrote the log.", shown="recognised", later="left out")] = None
    price: Annotated[
        float | None,
        Option(
            "Price of a GPU for an hour.",
            first=True,
            low=0,
            high=sys.float_info.max,
            expected="the price of a GPU for an hour, zero or more",
        ),
    ] = None
    gpus: Annotated[int | None, Option("GPUs of the fleet.", first=True, shown="one a worker", low=1)] = None
    currency: Annotated[str, Option("What the price is in.")] = "USD"
    accept_misfit: Annotated[
        bool, Option("Recommend although the fitted law misses the log's own times by more than 5 %.")
    ] = False
    states: Annotated[
        int, Option("Decisions of the log to compare with the best one; 0 for none.", first=True, low=0)
    ] = 50
    time_limit: Annotated[
        float, Option("Seconds for each of them.", low=0, high=math.inf, open=True, expected="seconds above zero")
    ] = 1.0
    seed: Annotated[int, Option("First seed.", low=0)] = 0

    def check(self) -> None:
        """Refuse a rule of the log that cannot be replayed."""
        if self.logged is not None:
            _needs_no_forecast(self.logged)

    @property
    def named_columns(self) -> dict[str, str]:
        """Columns by their quantity."""
        group = {} if self.group is None else {"group": self.group}
        return by_quantity(self.columns) | group

    @property
    def is_one_group(self) -> bool:
        """Whether all workers are said to share a barrier."""
        return self.group is not None and self.group.strip() in ("", "-")
