"""What SBS (arXiv 2512.16134) states of waiting, time to first token, Table 1 and decode, as numbers that we have too.

Not asked: the curves of figures 6 to 8 (no numbers in the text), auto-scaling, and that less is waited on the device:
without latency, whoever waits at the scheduler until an instance is ready waits next to nowhere else, by any rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from lbopt.studies.staggered.claim import Claim, Figure
from lbopt.studies.staggered.contenders import IMMEDIATE, LATE
from lbopt.studies.staggered.items import decode, law, load
from lbopt.studies.staggered.places import PLACES, Printed
from lbopt.studies.staggered.rows import Rows
from lbopt.studies.verdict import around

#: The fleet of the published example of the waiting law, and how near a law has to come.
N, EXACT = 10, 0.02


def claims() -> list[Claim]:
    """Return everything that is asked."""
    return [*_waits(), *_first_tokens(), *_table_one(), *_tails(), *_decode()]


def _waits() -> Iterator[Claim]:
    """Section 3: T / 2 on arrival, T / 2N staggered, at every load (T is 1 s)."""

    def wait(policy: str, at: float) -> Figure:
        return lambda rows: rows.value("wait", instances=N, capacity="none", load=at, policy=policy)

    def change(policy: str, base: str, at: float) -> Figure:
        def figure(rows: Rows) -> float | None:
            ours, other = wait(policy, at)(rows), wait(base, at)(rows)
            return None if ours is None or not other else 100 * (ours / other - 1)

        return figure

    for at in law.LOADS:
        where = f"{at:g} requests a pass"
        for base in ("random", "round-robin", "jsq"):
            span = (0.5 * (1 - EXACT), 0.5 * (1 + EXACT), "T/2")
            yield Claim("law", f"wait in passes, {where}", "", *span, "", base, wait(base, at))
        for rule in ("spacing", "spacing-bypass", "tick", "pooled"):
            span = (0.5 / N * (1 - EXACT), 0.5 / N * (1 + EXACT), f"T/{2 * N}")
            yield Claim("law", f"wait in passes, {where}", "", *span, rule, "", wait(rule, at))
            for base in ("random", "round-robin", "jsq"):
                less = 100 * (1 / N - 1)  # a change: of a ratio no verdict could tell that 2 is the other way than 1/10
                span = (less - 100 * EXACT / N, less + 100 * EXACT / N, f"−{-less:g}")
                yield Claim("law", f"wait, change, {where}", "%", *span, rule, base, change(rule, base, at))


def _pairs() -> Iterator[tuple[str, str]]:
    return ((rule, base) for rule in LATE for base in IMMEDIATE)


def _mean_change(place: str, rule: str, base: str, quantity: str, loads: tuple[float, ...]) -> Figure:
    def figure(rows: Rows) -> float | None:
        found = [rows.change(quantity, base, place=place, against=base, load=at, contender=rule) for at in loads]
        told = [value for value in found if value is not None]
        return float(np.mean(told)) if len(told) == len(loads) else None

    return figure


def _first_tokens() -> Iterator[Claim]:
    below = tuple(at for at in load.LOADS if at < 0.8)
    for place in ("short-3k", "short-5k"):
        for rule, base in _pairs():
            yield Claim(
                *("load", f"{place}: mean TTFT below 80 % load", "%", -40.0, -30.0, "−30 to −40", rule, base),
                _mean_change(place, rule, base, "ttft", below),
            )
            yield Claim(
                *("load", f"{place}: mean TTFT at the baseline's peak", "%", -math.inf, 0.0, "lower", rule, base),
                _mean_change(place, rule, base, "ttft", (1.0,)),
            )


def _tails() -> Iterator[Claim]:
    for rule, base in _pairs():
        yield Claim(
            *("load", "long-16k: mean TTFT below 80 % load", "%", -math.inf, 0.0, "lower", rule, base),
            _mean_change("long-16k", rule, base, "ttft", tuple(at for at in load.LOADS if at < 0.8)),
        )
        yield Claim(
            *("load", "long-16k: P99 of TTFT, mean over loads", "%", -math.inf, 0.0, "held down", rule, base),
            _mean_change("long-16k", rule, base, "ttft_p99", load.LOADS),
        )


def _table_one() -> Iterator[Claim]:
    for name, place in PLACES.items():
        if place.printed is not None:
            yield from _table_rows(name, place.printed)


def _table_rows(place: str, printed: Printed) -> Iterator[Claim]:
    def at(contender: str, quantity: str) -> Figure:
        return lambda rows: rows.value(quantity, place=place, contender=contender)

    def points(rule: str, base: str) -> Figure:
        def figure(rows: Rows) -> float | None:
            ours, other = at(rule, "utilisation")(rows), at(base, "utilisation")(rows)
            return None if ours is None or other is None else 100 * (ours - other)

        return figure

    def gain(rule: str, base: str) -> Figure:
        return lambda rows: rows.change("rate", base, place=place, contender=rule)

    for base in IMMEDIATE:
        value = printed.rate_off
        yield Claim(*("limit", f"{place}: requests/s", "", *around(value), f"{value:g}", "", base), at(base, "rate"))
        used = 100 * printed.utilisation_off
        yield Claim(
            *("limit", f"{place}: chunk utilisation", "%", *around(used), f"{used:.4g}", "", base),
            _percent(at(base, "utilisation")),
        )
    for rule in LATE:
        value = printed.rate_on
        yield Claim(*("limit", f"{place}: requests/s", "", *around(value), f"{value:g}", rule, ""), at(rule, "rate"))
        used = 100 * printed.utilisation_on
        yield Claim(
            *("limit", f"{place}: chunk utilisation", "%", *around(used), f"{used:.4g}", rule, ""),
            _percent(at(rule, "utilisation")),
        )
    more = 100 * (printed.rate_on / printed.rate_off - 1)
    filled = 100 * (printed.utilisation_on - printed.utilisation_off)
    for rule, base in _pairs():
        yield Claim(
            *("limit", f"{place}: requests/s, gain", "%", *around(more), f"+{more:.1f}", rule, base), gain(rule, base)
        )
        yield Claim(
            *("limit", f"{place}: chunk utilisation, gain", "points", *around(filled), f"+{filled:.1f}", rule, base),
            points(rule, base),
        )


def _decode() -> Iterator[Claim]:
    """Figures 7 and 8: the band of KV over units is a cut of 55.6 %, its caption says 40."""

    def change(quantity: str, arrivals: str, base: str) -> Figure:
        return lambda rows: rows.change(quantity, base, arrivals=arrivals, contender=decode.THEIRS)

    for arrivals in decode.ARRIVALS:
        for base in decode.BASELINES:
            what = f"requests {arrivals}: deviation of KV over units"
            yield Claim(
                *("decode", what, "%", -55.6, -40.0, "−55.6, −40", decode.THEIRS, base),
                change("sd_tokens", arrivals, base),
            )
            for fixed in decode.FIXED:
                what = f"requests {arrivals}: throughput, t0 = {fixed} ms"
                yield Claim(
                    *("decode", what, "%", *around(15.0), "+15", decode.THEIRS, base),
                    change(f"throughput_{fixed:02d}", arrivals, base),
                )


def _percent(figure: Figure) -> Figure:
    def percent(rows: Rows) -> float | None:
        value = figure(rows)
        return None if value is None else 100 * value

    return percent
