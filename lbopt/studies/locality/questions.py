"""What ELDR's evaluation reports, as numbers that the study computes too, each with the range that was printed.

Source: ELDR (arXiv 2607.00466), evaluation, figures and Table 2. What the simulator can answer of the time to first
token, the prefix cache and the other models is in `more_questions`. Not asked: the split of a request's latency in
Table 1 (work of a GPU and a scheduler that are not here), and all that is in figures alone.

What ELDR's evaluation prints beside its main tables: first token, prefix cache, and the other three models.

The simulator answers each in part.

first-token
    The wait of a request from its hand-over to a decoder until its first step there. The rest of the time to first
    token is prefill's, which no router of decoders changes here: that a faster decoder frees a prefill worker earlier
    is not simulated.
cache
    Routing by the same signatures of requests that reach the decoders at once, or after a prefill of their whole
    prompt. The drop of the time to first token itself is prefill's.
models
    The shapes of GPT-OSS-120B and Gemma-4-26B-A4B in the step time (`laws`), under the synthetic gate of Qwen3.
large
    Qwen3-235B-A22B on four ranks, as `laws` says. The source does not name the router that it compares with; ours is
    round-robin.

A question of the locality study: a figure that ELDR prints, and how ours is computed from one world.

A printed range spans models and workloads there; ours is one model. The best balancer is the best of four in each
world, at each rate and for each quantity, as in the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lbopt.studies.locality.plan import (
    BALANCERS,
    CACHE_LAWS,
    CACHE_RATE,
    LARGE_RATES,
    LARGE_WORKERS,
    OTHER_MODELS,
    POOLS,
    RATE,
    WORKERS,
    PlannedRun,
    eldr_at,
)
from lbopt.studies.printed import Printed, printed_number, printed_range, within
from lbopt.studies.verdict import Judged

SOURCE = "ELDR, arXiv 2607.00466"

#: What one world answered, and the rates of the study.
Answer = dict[str, Any]
Figure = Callable[[Answer, tuple[float, ...]], float | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A row of the study.

    Parameters
    ----------
    item
        The item of the study whose runs it needs.
    workload
        "task" or "language".
    quantity
        What it is about.
    printed
        The figure of the source.
    figure
        From the answer of one world to our value; None where the world cannot tell.
    repeats
        The item that asks for the same figure of ours, if there is one: the tally counts it there.
    """

    item: str
    workload: str
    quantity: str
    printed: Printed
    figure: Figure
    repeats: str = ""


def change(answer: Answer, run: PlannedRun, of: str, base: str = "round-robin") -> float | None:
    """Return by how many percent a run's `of` exceeds that of the rule `base` in the same place."""
    runs = answer["runs"]
    other = replace(run, policy=base)
    if run.key not in runs or other.key not in runs:
        return None
    return 100 * (float(runs[run.key][of]) / float(runs[other.key][of]) - 1)


def mean_over_rates(policy: str, of: str, base: str, workers: int = WORKERS, law: str = "") -> Figure:
    """Return the mean over rates of the change against a rule; "best" is the load balancer that is best at each.

    Parameters
    ----------
    base
        The rule that it is compared with, or "best".
    """

    def figure(answer: Answer, rates: tuple[float, ...]) -> float | None:
        found = []
        for rate in rates:
            run = PlannedRun("decoders", workers, rate, policy, law)
            bases = BALANCERS if base == "best" else (base,)
            changes = [change(answer, run, of, one) for one in bases]
            if None in changes:
                return None
            found.append(max(value for value in changes if value is not None))  # the best has the least of `of`
        return sum(found) / len(found)

    return figure


def judged_by(
    question: Question, figure: Figure, answers: Mapping[str, Sequence[Answer]], rates: tuple[float, ...]
) -> Judged[Question] | None:
    """Return a question with our values by a figure, one a world that can tell; None where none can."""
    values = [figure(answer, rates) for answer in answers.get(question.workload, [])]
    told = tuple(value for value in values if value is not None)
    return Judged(question, told) if told else None


MODELS_SAID = {"gpt-oss": "GPT-OSS-120B", "gemma": "Gemma-4-26B"}
_RANGES = {
    ("task", "p50"): (-13.9, -7.0, "−7.0 to −13.9"),
    ("task", "p99"): (-6.0, -3.4, "−3.4 to −6.0"),
    ("language", "p50"): (-10.0, -5.9, "−5.9 to −10.0"),
    ("language", "p99"): (-6.2, 1.5, "−6.2 to +1.5"),
}


def more_questions() -> list[Question]:
    """Return what is asked of these items."""
    return [*_first_token(), *_cache(), *_models(), *_large()]


def outside_spread(answer: Answer, rates: tuple[float, ...]) -> float | None:
    """Return by how many ms eldr's median wait lies above those of all balancers, or below (negative); mean over rates.

    It is 0 where eldr's lies among theirs.
    """
    runs, found = answer["runs"], []
    for rate in rates:
        waits = [runs.get(PlannedRun("decoders", WORKERS, rate, name).key, {}).get("wait") for name in BALANCERS]
        own = runs.get(PlannedRun("decoders", WORKERS, rate, "eldr").key, {}).get("wait")
        if own is None or None in waits:
            return None
        found.append(1e3 * (max(0.0, own - max(waits)) - max(0.0, min(waits) - own)))
    return float(sum(found) / len(found))


def _first_token() -> list[Question]:
    printed = printed_range(
        -math.inf,
        0.0,
        source=SOURCE,
        place="evaluation, time to first token",
        text="within the baselines' spread, lower near saturation",
        unit="ms",
    )
    quantity = "median wait for the first step, outside of the balancers' spread"
    return [Question("first-token", workload, quantity, printed, outside_spread) for workload in ("task", "language")]


def _cache() -> list[Question]:
    found = []
    for state, law in CACHE_LAWS.items():
        run = PlannedRun("decoders", WORKERS, CACHE_RATE, "eldr", law)
        for of, value in (("p50", -13.0), ("p99", -5.0)):
            printed = printed_number(
                value, within(), source=SOURCE, place="evaluation, prefix cache", text=f"about −{-value:g}", unit="%"
            )
            found.append(
                Question(
                    "cache",
                    "task",
                    f"{of.upper()} of eldr against round-robin, prefix cache {state}",
                    printed,
                    lambda answer, rates, run=run, of=of: change(answer, run, of),  # type: ignore[misc]
                )
            )
    return found


def _models() -> list[Question]:
    found = []
    for law in OTHER_MODELS:
        for (workload, of), (low, high, text) in _RANGES.items():
            printed = printed_range(
                low, high, source=SOURCE, place="evaluation, routers over all rates", text=text, unit="%"
            )
            quantity = f"{MODELS_SAID[law]}: {of.upper()} of eldr against the best balancer"
            found.append(Question("models", workload, quantity, printed, mean_over_rates("eldr", of, "best", law=law)))
    return found


def _large() -> list[Question]:
    ask = partial(printed_range, source=SOURCE, place="evaluation, Qwen3-235B-A22B", unit="%")
    ranges = {"p50": ask(-4.3, -2.7, text="−2.7 to −4.3"), "p99": ask(-2.0, -0.6, text="−0.6 to −2.0")}
    found = []
    for of, printed in ranges.items():
        figure = mean_over_rates("eldr", of, "round-robin", LARGE_WORKERS, "qwen-235b")
        found.append(
            Question(
                "large",
                "language",
                f"{of.upper()} of eldr against round-robin",
                printed,
                lambda answer, rates, figure=figure: figure(answer, LARGE_RATES),  # type: ignore[misc]
            )
        )
    return found


PLACES = {
    "signatures": "evaluation, signatures and layer mask",
    "routers": "evaluation, routers over all rates",
    "band": "evaluation, width of the band",
    "clusters": "evaluation, balanced and vanilla clusters",
    "pool": "Table 2",
}


def questions() -> list[Question]:
    """Return everything that is asked, by item and workload."""
    return [*_signatures(), *_routers(), *_band(), *_clusters(), *_pool(), *more_questions()]


def _ends(item: str, low: float, high: float, text: str, unit: str = "%", calibrated: bool = False) -> Printed:
    """Return a printed range of an item."""
    return printed_range(low, high, source=SOURCE, place=PLACES[item], text=text, unit=unit, calibrated=calibrated)


def _number(item: str, value: float, text: str, unit: str = "%", calibrated: bool = False) -> Printed:
    """Return a single printed number of an item."""
    return printed_number(
        value, within(), source=SOURCE, place=PLACES[item], text=text, unit=unit, calibrated=calibrated
    )


def _at_60(policy: str, of: str, base: str = "round-robin", fleet: str = "decoders") -> Figure:
    return lambda answer, rates: change(answer, PlannedRun(fleet, WORKERS, RATE, policy), of, base)


def _signature(*path: str, scale: float = 1.0) -> Figure:
    def figure(answer: Answer, rates: tuple[float, ...]) -> float | None:
        value = answer["signatures"]
        for name in path:
            value = value.get(name)
            if value is None:
                return None
        return scale * float(value)

    return figure


def _rho_lead(better: tuple[str, ...], worse: tuple[str, ...]) -> Figure:
    def figure(answer: Answer, rates: tuple[float, ...]) -> float | None:
        rho = answer["signatures"].get("rho")
        if rho is None:
            return None
        return float(np.mean([rho[one] for one in better]) - np.mean([rho[one] for one in worse]))

    return figure


def _signatures() -> list[Question]:
    # the order of transforms is what generalists were put in for, at this height and swing (`lbopt.locality.gate`)
    counted = ("count", "count-idf", "sqrt-count")
    ends, found = partial(_ends, "signatures"), []
    for workload, low, high in (("task", 17, 21), ("language", 3, 10)):
        ask = partial(Question, "signatures", workload)
        found += [
            ask(
                f"fewer experts in a batch of {B} of one domain",
                ends(low, high, f"{low} to {high}", calibrated=True),
                _signature("fewer", str(B), scale=100),
            )
            for B in (32, 64, 128)
        ]
        found += [
            ask(
                "rho: transforms of counts above gate-prob",
                ends(0.035, math.inf, "above 0.035", "", calibrated=True),
                _rho_lead(counted, ("gate-prob",)),
            ),
            ask(
                "rho: count-idf above count",
                _number("signatures", 0.015, "0.015, up to 0.089", "", calibrated=True),
                _rho_lead(("count-idf",), ("count",)),
            ),
            ask("rho: kept layers above all", ends(0.005, 0.032, "0.005 to 0.032", ""), _signature("mask_gain")),
            ask(
                "prefill and decode correlate by expert",
                ends(0.70, 0.92, "0.70 to 0.92", "", calibrated=True),
                _signature("alike"),
            ),
            ask(
                "P50 with count-idf against gate-prob",
                ends(-14, 0, "−3 on average, up to −14"),
                _at_60("eldr", "p50", eldr_at(0.1, transform="gate-prob")),
            ),
        ]
    return found


def _routers() -> list[Question]:
    ends, mean = partial(_ends, "routers"), mean_over_rates
    task, language = (partial(Question, "routers", workload) for workload in ("task", "language"))
    # topics and requests of the workloads spread as far as it takes to come near the two that are marked as calibrated
    # (`lbopt.locality.workload`)
    return [
        task(
            "P50 of eldr against the best balancer",
            ends(-13.9, -7.0, "−7.0 to −13.9"),
            mean("eldr", "p50", "best"),
        ),
        task(
            "P99 of eldr against the best balancer",
            ends(-6.0, -3.4, "−3.4 to −6.0"),
            mean("eldr", "p99", "best"),
        ),
        task(
            "P50 of domain against the best balancer",
            ends(-9.7, -6.8, "−6.8 to −9.7"),
            mean("domain", "p50", "best"),
        ),
        task("P50 of eldr against domain", ends(-6.9, -1.4, "−1.4 to −6.9"), mean("eldr", "p50", "domain")),
        task("P99 of eldr against domain", ends(-4.5, -1.6, "−1.6 to −4.5"), mean("eldr", "p99", "domain")),
        task(
            "experts of eldr against round-robin",
            _number("routers", -22.0, "−22.0", calibrated=True),
            mean("eldr", "experts", "round-robin"),
        ),
        language(
            "P50 of eldr against the best balancer",
            ends(-10.0, -5.9, "−5.9 to −10.0"),
            mean("eldr", "p50", "best"),
        ),
        language(
            "P99 of eldr against the best balancer",
            ends(-6.2, 1.5, "−6.2 to +1.5"),
            mean("eldr", "p99", "best"),
        ),
        language(
            "P50 of domain against round-robin",
            ends(-3.0, 3.0, "within 3", calibrated=True),
            mean("domain", "p50", "round-robin"),
        ),
        language(
            "P99 of domain against round-robin",
            ends(0.0, 6.1, "up to +6.1"),
            mean("domain", "p99", "round-robin"),
        ),
        language("P50 of eldr against domain", ends(-9.1, -5.7, "−5.7 to −9.1"), mean("eldr", "p50", "domain")),
        language("P99 of eldr against domain", ends(-9.5, -7.0, "−7.0 to −9.5"), mean("eldr", "p99", "domain")),
    ]


def _band() -> list[Question]:
    ends, found = partial(_ends, "band"), []
    for workload in ("task", "language"):
        ask = partial(Question, "band", workload)
        found += [
            ask("P50 at tau 0.1", ends(-12.7, -5.2, "−5.2 to −12.7"), _at_60("eldr", "p50")),
            ask("P99 at tau 0.1", ends(-math.inf, 0.0, "no regression"), _at_60("eldr", "p99")),
            ask("P99 at tau 0", ends(0.0, 7.9, "worse on 4 of 6, up to +7.9"), _at_60(eldr_at(0.0), "p99")),
            ask(
                "P50 at tau 0.3, against 0.1",
                ends(0.0, math.inf, "the gain erodes"),
                _at_60(eldr_at(0.3), "p50", "eldr"),
            ),
        ]
    return found


def _clusters() -> list[Question]:
    vanilla = eldr_at(0.1, "vanilla")
    ends, found = partial(_ends, "clusters"), []
    for workload in ("task", "language"):
        ask = partial(Question, "clusters", workload)
        found += [
            ask("P50, vanilla", ends(-9.8, 0.0, "up to −9.8"), _at_60(vanilla, "p50")),
            ask("P99, vanilla", ends(0.0, 17.4, "up to +17.4"), _at_60(vanilla, "p99")),
            # balanced clusters with a band of 0.1 are the rule of the item `band`: the same runs, the same figure
            ask("P50, balanced", ends(-12.6, 0.0, "up to −12.6"), _at_60("eldr", "p50"), repeats="band"),
            ask("P99, balanced", ends(-6.8, 0.0, "up to −6.8"), _at_60("eldr", "p99"), repeats="band"),
            ask("P99, vanilla against balanced", ends(0.0, math.inf, "worse"), _at_60(vanilla, "p99", "eldr")),
        ]
    return found


def _pool() -> list[Question]:
    printed = {8: (-8.0, -2.5), 16: (-9.8, -0.8), 24: (-10.2, -1.1)}
    ask, found = partial(Question, "pool", "language"), []
    for pool in POOLS:
        for of, value in zip(("p50", "p99"), printed[pool], strict=True):
            number = _number("pool", value, f"{value:+.1f}".replace("-", "−"))
            found.append(
                ask(f"{of.upper()}, {pool} decoders", number, mean_over_rates("eldr", of, "round-robin", pool))
            )

    def grows(answer: Answer, rates: tuple[float, ...]) -> float | None:
        ends = [mean_over_rates("eldr", "p50", "round-robin", pool)(answer, rates) for pool in (POOLS[0], POOLS[-1])]
        return None if ends[0] is None or ends[1] is None else ends[1] - ends[0]

    growth = _ends("pool", -math.inf, 0.0, "−2.2", "points")
    return [*found, ask("P50 with 24 decoders less 8", growth, grows)]
