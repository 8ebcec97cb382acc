"""BalanceRoute's tables (arXiv 2605.06113) as orderings and ratios on public traces.

The cluster and the proprietary trace cannot be had. What can be asked is whether the same rules on public requests, or
on drawn ones with the published means, are ordered alike and apart by as much with a calibrated step time: 100 ns a
token, with the ends of the published slopes, 20 and 200, beside it. The paper's baselines bind on arrival and queue at
the worker; its own rules hold a pool. It says "near saturation" without a number: 0.95, 0.9, and a closed loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lbopt.model import Trace
from lbopt.studies.printed import Tolerance, within
from tools.studies.reproduction import reasons
from tools.studies.reproduction.config import ReproductionConfig
from tools.studies.reproduction.drawn import draw, longest_filter, pool_of
from tools.studies.reproduction.place import NANOSECONDS, B, Place, of_published_means, of_trace
from tools.studies.reproduction.question import Question, Row, asked
from tools.studies.reproduction.tolerances import same_side, within_effect

SAME_ORDER = same_side(1.0, "same order")
SENSITIVITY = (20.0, 200.0)
#: Azure's requests of the paper have more output tokens than this; none of 2023 has.
LONGER_THAN = 1000
#: Steps that BR-H looks ahead.
HORIZON = 80
#: Requests that are drawn to say how long those with the published means run.
SAMPLE = 20_000

RULES = {
    "Random": "random",
    "Round-Robin": "round-robin",
    "P2C": "power-of-two",
    "JSQ": "jsq",
    "BR-0": "br-0",
    "BR-H oracle b": f"br-h:predictor=oracle,horizon={HORIZON},beta=48,gamma=0.9",
}
COUNTS = ("Round-Robin", "P2C", "JSQ")
BR_0, BR_H = "BR-0", "BR-H oracle b"


def questions(config: ReproductionConfig) -> list[Question]:
    """Return the rows."""
    least = longest_filter(config.trace("azure"), LONGER_THAN)
    burst = [of_trace(config, "burstgpt", G, f"prop-g{G}", 0) for G in (4, 8, 16)]
    azure = of_trace(config, "azure", 8, "azure-g8", least)
    others = [of_trace(config, "azure", G, f"prop-g{G}", least) for G in (4, 16)]
    means = [of_published_means(config, G, f"prop-g{G}") for G in (4, 8, 16)]
    found = [question for place in (*burst, azure, *means) for question in _orders(place, 0.95)]
    for places, loads in (((*burst, azure), (0.95, 0.9, None)), (others, (0.95,)), (means, (0.95, None))):
        for load in loads:
            found += [one for place in places for one in (*_ratios(place, load), *_times(place, load))]
    for slope in SENSITIVITY:
        found += [one for place in (burst[1], azure) for one in _times(place, 0.95, slope)]
    for place in (*burst, azure, means[1]):
        found += concurrency(place)
    return found


def _orders(place: Place, load: float) -> list[Question]:
    shared = place.shared(load) | {"dispatch": "baselines immediate, BR pooled"}
    return [
        _ratio(place, shared, load, "random over the widest of round-robin, P2C, JSQ", ("Random",), COUNTS, SAME_ORDER),
        _ratio(place, shared, load, "BR-0 over the narrowest baseline", (BR_0,), ("Random", *COUNTS), SAME_ORDER, min),
        _ratio(place, shared, load, "BR-H over BR-0", (BR_H,), (BR_0,), SAME_ORDER),
    ]


def _ratios(place: Place, load: float | None) -> list[Question]:
    shared = place.shared(load)
    first, second = {"dispatch": "JSQ immediate, BR pooled"}, {"dispatch": "pooled"}
    return [
        _ratio(place, shared | first, load, "BR-0 over JSQ", (BR_0,), ("JSQ",), within_effect()),
        _ratio(place, shared | second, load, "BR-H over BR-0", (BR_H,), (BR_0,), within_effect()),
    ]


def _ratio(
    place: Place,
    shared: dict[str, Any],
    load: float | None,
    text: str,
    above: tuple[str, ...],
    below: tuple[str, ...],
    tolerance: Tolerance,
    pick: Any = max,
) -> Question:
    top = place.printed("spread_tokens", above[0])
    bottom = pick(place.printed("spread_tokens", method) for method in below)
    return asked(
        quantity=f"spread, {text}",
        nothing=1.0,
        published=top / bottom,
        cells=tuple(place.cell(RULES[method], load) for method in (*above, *below)),
        figure=lambda first, *rest: first["spread"] / pick(one["spread"] for one in rest),
        tolerance=tolerance,
        why=_why_ratio(place, above[0]),
        **shared,
    )


def _why_ratio(place: Place, above: str) -> Callable[[Row], str]:
    known = dict(place.requests)
    if known.get("longer_than", LONGER_THAN) < LONGER_THAN and place.kind == "azure":
        trace = str(known["trace"])
        return reasons.of_few_long(pool_of(trace, 0), pool_of(trace, int(known["longer_than"])), LONGER_THAN)
    if above == "Random":
        return reasons.of_spreads((above, *COUNTS))
    if above == BR_H:
        return reasons.of_lengths(_requests(place), HORIZON)
    return reasons.of_pool(above)


def _requests(place: Place) -> Trace:
    """Return the requests of a trace, or some drawn with the published means."""
    known = dict(place.requests)
    if "trace" in known:
        return pool_of(str(known["trace"]), int(known["longer_than"]))
    return draw(known, SAMPLE, 0)


def _times(place: Place, load: float | None, slope: float = NANOSECONDS) -> list[Question]:
    return [
        asked(
            quantity=f"TPOT P95 cut, {label} below JSQ",
            unit="%",
            published=100 * (1 - place.printed("tpot_p95_ms", method) / place.printed("tpot_p95_ms", "JSQ")),
            cells=(place.cell(RULES[method], load, slope), place.cell(RULES["JSQ"], load, slope)),
            figure=lambda ours, jsq: 100 * (1 - ours["tpot_p95"] / jsq["tpot_p95"]),
            tolerance=within(),
            why=reasons.of_share(place.share(slope)),
            dispatch="JSQ immediate, BR pooled",
            **place.shared(load, slope),
        )
        for label, method in (("BR-0", BR_0), ("BR-H", BR_H))
    ]


def concurrency(place: Place) -> list[Question]:
    """Return the throughput rows: each gain beside the part of it that more running requests explain.

    Throughput is running requests over the time of a step. For the published runs their number follows from Little's
    law, throughput times TPOT, with the 95th percentile in place of the mean.
    """
    found = []
    for method, load, binds, text in (
        ("JSQ", 0.95, "", "JSQ immediate, BR-H pooled"),
        ("JSQ", None, "", "JSQ immediate, BR-H pooled"),
        ("JSQ", None, ":admission=pooled", "both pooled"),
        ("Random", None, "", "random immediate, BR-H pooled"),
    ):
        cells = (place.cell(RULES[BR_H], load), place.cell(RULES[method] + binds, load))
        rates = [place.printed("throughput_tok_s", one) for one in (BR_H, method)]
        running = [rate * place.printed("tpot_p95_ms", one) for rate, one in zip(rates, (BR_H, method), strict=True)]
        for quantity, figure, published in (
            ("throughput gain", "throughput", rates[0] / rates[1]),
            ("of it by more running requests", "running", running[0] / running[1]),
        ):
            found.append(
                asked(
                    quantity=f"{quantity}, BR-H over {method}",
                    unit="%",
                    published=100 * (published - 1),
                    cells=cells,
                    figure=lambda br_h, other, figure=figure: 100 * (br_h[figure] / other[figure] - 1),
                    tolerance=within(),
                    why=reasons.of_slots(("BR-H", method), place.G * B),
                    dispatch=text,
                    **place.shared(load),
                )
            )
    return found
