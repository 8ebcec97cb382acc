"""What SBS (arXiv 2512.16134) states of waiting, time to first token, Table 1 and decode, as numbers that we have too.

Left out: the curves of figures 6 to 8 (no numbers in the text), and auto-scaling. The shorter wait on the device is
asked where there is a latency; without one, who waits at the scheduler hardly waits elsewhere by any rule.

The source has batches go out when an instance is ready, and in the caption of figure 2 to engines that are ready or
soon ready. Both readings are asked: rules as printed, and rules that send ahead of the end of a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from lbopt.studies.printed import Printed, Question, printed_number, printed_range, within, within_odds, within_points
from lbopt.studies.staggered.items import ahead, law, load
from lbopt.studies.staggered.places import AHEAD, HELD_BACK, IMMEDIATE, LATENCIES, LOADS, PLACES, TableRow
from lbopt.studies.staggered.rows import Key, Rows

#: From the rows of one seed to our value.
Figure = Callable[[Rows], float | None]


SOURCE = "SBS, arXiv 2512.16134"
TTFT, TABLE_1 = "evaluation, time to first token", "Table 1"

#: The fleet of the published example of the waiting law, and how near a law has to come.
N, EXACT = 10, 0.02
#: Return the questions on items that are elsewhere.
ELSEWHERE: list[Callable[[], Iterator[Question]]] = []
_LAW = "a formula without a fit, and 10,000 prompts an instance: a limit law may miss it by what its limit leaves out"


def questions(sending: str = "printed") -> list[Question]:
    """Return everything that is asked; `sending` is the reading of when a batch is sent, a name from `HELD_BACK`."""
    rules = HELD_BACK[sending]
    own = [*_waits(), *_first_tokens(rules), *_table_one(rules), *_tails(rules), *_with_latency()]
    return own + [question for more in ELSEWHERE for question in more()]


def place_of(one: Question) -> str:
    """Return the place that a statement is of, which its quantity begins with."""
    begin, colon, _ = one.quantity.partition(": ")
    return begin if colon and begin in PLACES else ""


def asked(item: str, quantity: str, printed: Printed, rule: str, against: str, figure: Figure) -> Question:
    """Return a question of the study, on a rule (empty: on the baseline alone) against a baseline."""
    return Question(item, quantity, printed, figure, rule=rule, against=against)


def _value(quantity: str, **keys: Key) -> Figure:
    return lambda rows: rows.value(quantity, **keys)


def _change(quantity: str, base: str, **keys: Key) -> Figure:
    return lambda rows: rows.change(quantity, base, **keys)


def _of(how: Callable[..., float | None], *figures: Figure) -> Figure:
    """Return what is made of several figures; None where one of them is."""

    def figure(rows: Rows) -> float | None:
        values = [one(rows) for one in figures]
        return None if None in values else how(*values)

    return figure


def _mean(*values: float) -> float:
    return float(np.mean(values))


def _waits() -> Iterator[Question]:
    """Section 3: T / 2 on arrival, T / 2N staggered, at every load (T is 1 s)."""

    def wait(policy: str, at: float) -> Figure:
        return _value("wait", instances=N, capacity="none", load=at, policy=policy)

    def change(policy: str, base: str, at: float) -> Figure:
        return _of(lambda ours, other: 100 * (ours / other - 1) if other else None, wait(policy, at), wait(base, at))

    in_law = partial(printed_number, source=SOURCE, place="section 3")
    for at in law.LOADS:
        where = f"{at:g} requests a pass"
        for base in ("random", "round-robin", "jsq"):
            printed = in_law(0.5, within(EXACT, _LAW), text="T/2", nothing=None)
            yield asked("law", f"wait in passes, {where}", printed, "", base, wait(base, at))
        for rule in ("spacing", "spacing-bypass", "tick", "pooled"):
            printed = in_law(0.5 / N, within(EXACT, _LAW), text=f"T/{2 * N}", nothing=None)
            yield asked("law", f"wait in passes, {where}", printed, rule, "", wait(rule, at))
            for base in ("random", "round-robin", "jsq"):
                less = 100 * (1 / N - 1)
                printed = in_law(less, within_points(100 * EXACT / N, _LAW), text=f"−{-less:g}", unit="%")
                yield asked("law", f"wait, change, {where}", printed, rule, base, change(rule, base, at))


def _pairs(rules: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((rule, base) for rule in rules for base in IMMEDIATE)


def _mean_change(place: str, rule: str, base: str, quantity: str, loads: tuple[float, ...]) -> Figure:
    changes = (_change(quantity, base, place=place, against=base, load=at, contender=rule) for at in loads)
    return _of(_mean, *changes)


def _first_tokens(rules: Sequence[str]) -> Iterator[Question]:
    below = tuple(at for at in load.LOADS if at < 0.8)
    cut = printed_range(-40.0, -30.0, source=SOURCE, place=TTFT, text="−30 to −40", unit="%")
    for place in ("short-3k", "short-5k"):
        for rule, base in _pairs(rules):
            yield asked(
                *("load", f"{place}: mean TTFT below 80 % load", cut, rule, base),
                _mean_change(place, rule, base, "ttft", below),
            )
            yield asked(
                *("load", f"{place}: mean TTFT at the baseline's peak", _below_nothing("lower"), rule, base),
                _mean_change(place, rule, base, "ttft", (1.0,)),
            )


def _below_nothing(text: str) -> Printed:
    """Return a statement that a figure falls, without a number."""
    return printed_range(-math.inf, 0.0, source=SOURCE, place=TTFT, text=text, unit="%")


def _tails(rules: Sequence[str]) -> Iterator[Question]:
    for rule, base in _pairs(rules):
        yield asked(
            *("load", "long-16k: mean TTFT below 80 % load", _below_nothing("lower"), rule, base),
            _mean_change("long-16k", rule, base, "ttft", tuple(at for at in load.LOADS if at < 0.8)),
        )
        yield asked(
            *("load", "long-16k: P99 of TTFT, mean over loads", _below_nothing("held down"), rule, base),
            _mean_change("long-16k", rule, base, "ttft_p99", load.LOADS),
        )


def _table_one(rules: Sequence[str]) -> Iterator[Question]:
    for name, place in PLACES.items():
        if place.printed is not None:
            yield from _table_rows(name, place.printed, rules)


def _table_rows(place: str, printed: TableRow, rules: Sequence[str]) -> Iterator[Question]:
    def at(contender: str, quantity: str) -> Figure:
        return _value(quantity, place=place, contender=contender)

    number = partial(printed_number, source=SOURCE, place=TABLE_1)
    rates = {
        on: number(rate, within(), nothing=None) for on, rate in ((False, printed.rate_off), (True, printed.rate_on))
    }
    used = {
        on: number(100 * share, within_odds(), text=f"{100 * share:.4g}", unit="%", nothing=None)
        for on, share in ((False, printed.utilisation_off), (True, printed.utilisation_on))
    }
    names = [(False, "", base, base) for base in IMMEDIATE] + [(True, rule, "", rule) for rule in rules]
    for on, rule, base, contender in names:
        yield asked("limit", f"{place}: requests/s", rates[on], rule, base, at(contender, "rate"))
        figure = _of(lambda used: 100 * used, at(contender, "utilisation"))
        yield asked("limit", f"{place}: chunk utilisation", used[on], rule, base, figure)
    more = 100 * (printed.rate_on / printed.rate_off - 1)
    served = number(more, within(), text=f"+{more:.1f}", unit="%")
    points_more = 100 * (printed.utilisation_on - printed.utilisation_off)
    filled = number(points_more, within(), text=f"+{points_more:.1f}", unit="points")
    for rule, base in _pairs(rules):
        gain = _change("rate", base, place=place, contender=rule)
        points = _of(lambda ours, other: 100 * (ours - other), at(rule, "utilisation"), at(base, "utilisation"))
        yield asked("limit", f"{place}: requests/s, gain", served, rule, base, gain)
        yield asked("limit", f"{place}: chunk utilisation, gain", filled, rule, base, points)


def _with_latency() -> Iterator[Question]:
    """Time to first token and the wait on the device where it takes a moment to an instance, under both readings."""
    cut = printed_range(-40.0, -30.0, source=SOURCE, place=TTFT, text="−30 to −40", unit="%")
    below = tuple(at for at in LOADS if at < 0.8)

    def change(quantity: str, fleet: str, latency: float, rule: str, base: str) -> Figure:
        keys: dict[str, Key] = {"fleet": fleet, "latency": latency, "contender": rule}
        return _of(_mean, *(_change(quantity, base, **keys, load=at) for at in below))

    for place in PLACES:
        for latency in LATENCIES[1:]:
            for rule in ("staggered", *AHEAD):
                for base in ahead.BASELINES:
                    what = f"{place}: {{}} below 80 % of saturation, {1000 * latency:g} ms"
                    first = cut if place.startswith("short") else _below_nothing("lower")
                    figure = change("ttft", place, latency, rule, base)
                    yield asked("ahead", what.format("mean TTFT"), first, rule, base, figure)
                    figure = change("on_device", place, latency, rule, base)
                    device = printed_range(-math.inf, 0.0, source=SOURCE, place="figure 6", text="lower", unit="%")
                    yield asked("ahead", what.format("wait on the device"), device, rule, base, figure)
