"""BalanceRoute's tables (arXiv 2605.06113) as orderings and ratios on public traces.

The cluster and the proprietary trace cannot be had. What can be asked is whether the same rules on public requests,
with a calibrated step time, are ordered alike and apart by as much. Step time: affine, 100 ns a token with the
published slopes' ends 20 and 200 beside it, and fixed so that a balanced step takes 60 ms, the engine step that the
paper quotes. The paper's baselines bind on arrival and queue at the worker; its own rules hold a pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.studies.reproduction.config import ReproductionConfig
from lbopt.studies.reproduction.criterion import ALIKE, Criterion, same_order, within
from lbopt.studies.reproduction.drawn import longest_filter, pool_of
from lbopt.studies.reproduction.question import Cell, Question, printed

TABLE = "balance-route"
B = 72
BALANCED_SECONDS = 0.060
NANOSECONDS = 100.0
SENSITIVITY = (20.0, 200.0)
#: Azure's requests of the paper have more output tokens than this; few of 2023 have.
LONGER_THAN = 1000

RULES = {
    "Random": "random",
    "Round-Robin": "round-robin",
    "P2C": "power-of-two",
    "JSQ": "jsq",
    "BR-0": "br-0",
    "BR-H oracle b": "br-h:predictor=oracle,horizon=80,beta=48,gamma=0.9",
}
COUNTS = ("Round-Robin", "P2C", "JSQ")
BR_0, BR_H = "BR-0", "BR-H oracle b"

_WHY_SPREAD = (
    "lengths decide the spread: of the proprietary trace only their means are published, which are 9 and 21 times "
    "BurstGPT's, and the paper's spread counts ramp and drain"
)
_WHY_RANDOM = (
    "BurstGPT's lengths differ so much that levelling the number of requests levels tokens little better than chance: "
    "random, round-robin, P2C and JSQ are one group"
)
_WHY_AHEAD = (
    "BurstGPT's requests run 57 steps on average: within 80 steps most of what a forecast sees has left and been "
    "replaced by requests that nobody knew, so there is less to foresee than with the paper's outputs of 1,185"
)
_WHY_AZURE = (
    "2023 has next to no requests with more than 1,000 output tokens; those that come closest have prompts that hardly "
    "differ, so counting requests is nearly balancing tokens and little is left to gain"
)
_WHY_TPOT = (
    "a cut in TPOT is the cut of the heaviest load times the share of the step that depends on it: with these lengths "
    "and 60 ms that share is 13 to 17 % at 100 ns a token, so the gain moves with the assumed slope"
)
_WHY_OPEN = (
    "below saturation tokens a second are what arrives, under every rule; a rule with longer steps has more requests "
    "running, not fewer"
)
_WHY_FULL = (
    "JSQ keeps all slots full from its queues just as a pool does, so only shorter steps are left: what made fewer "
    "requests run in the published baselines is not their queues alone"
)
_WHY_EMPTY = (
    "the effect is there, slots of some workers are empty while requests queue at others, but its size depends on how "
    "many wait"
)
_WHY_BY_RULE = {"Random": _WHY_RANDOM, BR_H: _WHY_AHEAD}


@dataclass(frozen=True, slots=True)
class Place:
    """A trace on a fleet: what rows have in common. `group` is the published group they are held against."""

    config: ReproductionConfig
    name: str
    G: int
    group: str
    longer_than: int

    def cell(self, method: str, load: float | None, slope: float = NANOSECONDS, binds: str = "") -> Cell:
        """Return a rule's run; `binds` replaces when it binds."""
        trace = self.config.trace(self.name)
        pool = pool_of(trace, self.longer_than)
        fixed = BALANCED_SECONDS - slope * 1e-9 * B * pool.mean_resident_tokens
        if fixed < 0:
            raise InputError(
                f"requests of '{trace}' hold {pool.mean_resident_tokens:,.0f} tokens on average: {B} of them at "
                f"{slope:g} ns a token take longer than the balanced step of {1e3 * BALANCED_SECONDS:g} ms; give a "
                "trace of shorter requests"
            )
        return Cell(
            requests=(("trace", trace), ("longer_than", self.longer_than)),
            content=pool.digest,
            count=self.config.count("balance-route", self.G),
            G=self.G,
            B=B,
            policy=RULES[method] + binds,
            load=load,
            step_time=f"affine:fixed={fixed!r},per_token={slope * 1e-9!r}",
        )

    def shared(self, load: float | None, slope: float = NANOSECONDS) -> dict[str, Any]:
        """Return what all rows of a load have in common."""
        longer = f", output > {self.longer_than}" if self.longer_than else ""
        return {
            "item": "balance-route",
            "source": f"{TABLE} {self.group}",
            "requests": self.config.trace_name(self.name) + longer,
            "fleet": f"G = {self.G}, B = {B}; balanced step 60 ms, {slope:g} ns a token",
            "arrivals": "closed loop" if load is None else f"Poisson, load {load:g}",
            "seeds": self.config.all_seeds,
        }

    def printed(self, column: str, method: str) -> float:
        """Return a number of the group that this place is held against."""
        return printed(TABLE, column, group=self.group, method=method)


def questions(config: ReproductionConfig) -> list[Question]:
    """Return the rows."""
    least = longest_filter(config.trace("azure"), LONGER_THAN)
    burst = [Place(config, "burstgpt", G, f"prop-g{G}", 0) for G in (4, 8, 16)]
    azure = Place(config, "azure", 8, "azure-g8", least)
    others = [Place(config, "azure", G, f"prop-g{G}", least) for G in (4, 16)]
    found = [question for place in (*burst, azure) for question in _orders(place, 0.95)]
    for load in (0.95, 0.9):
        found += [one for place in (*burst, azure) for one in (*_ratios(place, load), *_times(place, load))]
    found += [one for place in others for one in (*_ratios(place, 0.95), *_times(place, 0.95))]
    for slope in SENSITIVITY:
        found += [one for place in (burst[1], azure) for one in _times(place, 0.95, slope)]
    for place in (*burst, azure):
        found += concurrency(place)
    return found


def _orders(place: Place, load: float) -> list[Question]:
    shared = place.shared(load) | {"dispatch": "baselines immediate, BR pooled"}
    return [
        _ratio(
            place, shared, load, "random over the widest of round-robin, P2C, JSQ", ("Random",), COUNTS, same_order()
        ),
        _ratio(
            place, shared, load, "BR-0 over the narrowest baseline", (BR_0,), ("Random", *COUNTS), same_order(), min
        ),
        _ratio(place, shared, load, "BR-H over BR-0", (BR_H,), (BR_0,), same_order()),
    ]


def _ratios(place: Place, load: float) -> list[Question]:
    shared = place.shared(load)
    first, second = {"dispatch": "JSQ immediate, BR pooled"}, {"dispatch": "pooled"}
    return [
        _ratio(place, shared | first, load, "BR-0 over JSQ", (BR_0,), ("JSQ",), within(ALIKE)),
        _ratio(place, shared | second, load, "BR-H over BR-0", (BR_H,), (BR_0,), within(ALIKE)),
    ]


def _ratio(
    place: Place,
    shared: dict[str, Any],
    load: float,
    text: str,
    above: tuple[str, ...],
    below: tuple[str, ...],
    criterion: Criterion,
    pick: Any = max,
) -> Question:
    top = place.printed("spread_tokens", above[0])
    bottom = pick(place.printed("spread_tokens", method) for method in below)
    return Question(
        quantity=f"spread, {text}",
        unit="",
        published=top / bottom,
        cells=tuple(place.cell(method, load) for method in (*above, *below)),
        figure=lambda first, *rest: first["spread"] / pick(one["spread"] for one in rest),
        criterion=criterion,
        why=_WHY_AZURE if place.name == "azure" else _WHY_BY_RULE.get(above[0], _WHY_SPREAD),
        **shared,
    )


def _times(place: Place, load: float, slope: float = NANOSECONDS) -> list[Question]:
    return [
        Question(
            quantity=f"TPOT P95 cut, {label} below JSQ",
            unit="%",
            published=100 * (1 - place.printed("tpot_p95_ms", method) / place.printed("tpot_p95_ms", "JSQ")),
            cells=(place.cell(method, load, slope), place.cell("JSQ", load, slope)),
            figure=lambda ours, jsq: 100 * (1 - ours["tpot_p95"] / jsq["tpot_p95"]),
            criterion=within(ALIKE),
            why=_WHY_TPOT,
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
    for method, load, binds, text, why in (
        ("JSQ", 0.95, "", "JSQ immediate, BR-H pooled", _WHY_OPEN),
        ("JSQ", None, "", "JSQ immediate, BR-H pooled", _WHY_FULL),
        ("JSQ", None, ":admission=pooled", "both pooled", _WHY_FULL),
        ("Random", None, "", "random immediate, BR-H pooled", _WHY_EMPTY),
    ):
        cells = (place.cell(BR_H, load), place.cell(method, load, binds=binds))
        rates = [place.printed("throughput_tok_s", one) for one in (BR_H, method)]
        running = [rate * place.printed("tpot_p95_ms", one) for rate, one in zip(rates, (BR_H, method), strict=True)]
        for quantity, figure, published in (
            ("throughput gain", "throughput", rates[0] / rates[1]),
            ("of it by more running requests", "running", running[0] / running[1]),
        ):
            found.append(
                Question(
                    quantity=f"{quantity}, BR-H over {method}",
                    unit="%",
                    published=100 * (published - 1),
                    cells=cells,
                    figure=lambda br_h, other, figure=figure: 100 * (br_h[figure] / other[figure] - 1),
                    criterion=within(ALIKE),
                    why=why,
                    dispatch=text,
                    **place.shared(load),
                )
            )
    return found
