"""Which columns make the three times of a request: its arrival, the start of its decoding, and its end."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.instances.router_log.guess import Choice, Chooser


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Columns of the times.

    Parameters
    ----------
    arrival
        Column of absolute times.
    begin
        "start", "first_token", "ttft" or "queue": what says when decoding started.
    begin_column
        Its column. A ttft or a queue time counts from the arrival.
    end
        "finish", "e2e", "decode" or "tpot": what says when the request finished.
    end_column
        Its column. An e2e latency counts from the arrival, the others from the start of decoding.
    arrival_is_start
        Whether the log has no arrivals, and the start of decoding stands for them.
    """

    arrival: Choice
    begin: str
    begin_column: Choice
    end: str
    end_column: Choice
    arrival_is_start: bool = False

    @property
    def after_first_token(self) -> bool:
        """Whether the first token was out when `start` was read: one more in memory, one less to decode."""
        return self.begin in ("first_token", "ttft")


def plan_times(chooser: Chooser, hints: dict[str, str]) -> Plan:
    """Choose the columns of the times; `hints` adds to the error about a quantity that is missing."""
    arrival = chooser.find("arrival")
    begin, column = _begin(chooser, arrival)
    if column is None:
        raise chooser.missing("start", hints.get("start", ""))
    arrival_is_start = False
    if arrival is None:
        chooser.refuse_unreadable("arrival")
        # "start" beside a first token is when the request started, not when its decoding did.
        arrival = chooser.find("start") if begin != "start" else None
        if arrival is None and begin in ("ttft", "queue"):
            raise chooser.missing("arrival", hints.get("arrival", ""))
        if arrival is None:
            arrival, arrival_is_start = column, True
    end, end_column = _end(chooser)
    if end_column is None:
        raise chooser.missing("finish", hints.get("finish", ""))
    return Plan(
        arrival=arrival,
        begin=begin,
        begin_column=column,
        end=end,
        end_column=end_column,
        arrival_is_start=arrival_is_start,
    )


def _begin(chooser: Chooser, arrival: Choice | None) -> tuple[str, Choice | None]:
    for quantity in ("start", "first_token", "ttft", "queue"):
        if choice := chooser.given.get(quantity):
            return quantity, choice
    if "start" not in chooser.given and (choice := chooser.find_at("start", 0)):
        return "start", choice
    counts_from = arrival or chooser.find("start")
    for quantity in ("first_token", "ttft", "start", "queue"):
        if quantity in ("ttft", "queue") and counts_from is None:
            continue
        if choice := chooser.find(quantity):
            return quantity, choice
    return "start", None


def _end(chooser: Chooser) -> tuple[str, Choice | None]:
    for quantity in ("finish", "e2e", "decode", "tpot"):
        if choice := chooser.given.get(quantity):
            return quantity, choice
    for quantity in ("finish", "e2e", "decode", "tpot"):
        if choice := chooser.find(quantity):
            return quantity, choice
    return "finish", None
