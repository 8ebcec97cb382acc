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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
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
from lbopt.studies.printed import Judged, Printed, Question, printed_number, printed_range, within

SOURCE = "ELDR, arXiv 2607.00466"
_BASE = "round-robin"

#: What one world answered, and the rates of the study.
Answer = dict[str, Any]
Figure = Callable[[Answer, tuple[float, ...]], float | None]


def change(answer: Answer, run: PlannedRun, of: str, base: str = _BASE) -> float | None:
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
) -> Judged:
    """Return a question with our values by a figure, one a world that can tell."""
    return Judged.by(question, (figure(answer, rates) for answer in answers.get(question.workload, [])))


#: Quantity of a statement of the item `routers`, and what of a run it is about.
STATEMENTS = {"P50 of eldr against the best balancer": "p50", "P99 of eldr against the best balancer": "p99"}


@dataclass(frozen=True, slots=True)
class AtLaw:
    """A statement under the step time of this name."""

    law: str
    judged: Judged


def at_laws(
    asked: Sequence[Question], answers: Mapping[str, Sequence[Answer]], rates: tuple[float, ...], laws: Iterable[str]
) -> list[AtLaw]:
    """Return the statements of `STATEMENTS` that the worlds can answer, under each step time in its order.

    Those of a workload stand together.
    """
    found = []
    for one in asked:
        of = STATEMENTS.get(one.quantity)
        if one.item == "routers" and of is not None:
            judged = {law: judged_by(one, mean_over_rates("eldr", of, "best", law=law), answers, rates) for law in laws}
            found += [AtLaw(law, told) for law, told in judged.items() if told.values]
    return found


_PLACES = {
    "signatures": "evaluation, signatures and layer mask",
    "routers": "evaluation, routers over all rates",
    "band": "evaluation, width of the band",
    "clusters": "evaluation, balanced and vanilla clusters",
    "pool": "Table 2",
    "first-token": "evaluation, time to first token",
    "cache": "evaluation, prefix cache",
    "models": "evaluation, routers over all rates",
    "large": "evaluation, Qwen3-235B-A22B",
}
_MODELS_SAID = {"gpt-oss": "GPT-OSS-120B", "gemma": "Gemma-4-26B"}
#: Change of eldr against the best balancer, by workload and quantity.
_AGAINST_BEST = {
    ("task", "p50"): ((-13.9, -7.0), "−7.0 to −13.9"),
    ("task", "p99"): ((-6.0, -3.4), "−3.4 to −6.0"),
    ("language", "p50"): ((-10.0, -5.9), "−5.9 to −10.0"),
    ("language", "p99"): ((-6.2, 1.5), "−6.2 to +1.5"),
}


def questions() -> list[Question]:
    """Return everything that is asked, by item and workload."""
    asked = (*_signatures(), *_routers(), *_band(), *_clusters(), *_pool(), *_beside())
    return [
        Question(item, quantity, _printed(item, *said), figure, workload, repeats="".join(repeats))
        for item, workload, quantity, said, figure, *repeats in asked
    ]


def _printed(
    item: str, said: float | tuple[float, float], text: str, unit: str = "%", calibrated: bool = False
) -> Printed:
    """Return a printed number of an item, or a range of which the two ends are printed."""
    of: dict[str, Any] = {
        "source": SOURCE,
        "place": _PLACES[item],
        "text": text,
        "unit": unit,
        "calibrated": calibrated,
    }
    return printed_range(*said, **of) if isinstance(said, tuple) else printed_number(said, within(), **of)


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


def changed(run: PlannedRun, of: str, base: str = _BASE) -> Figure:
    """Return by how many percent a run's `of` exceeds that of another rule in the same world."""
    return lambda answer, rates: change(answer, run, of, base)


def _at_60(policy: str, of: str, base: str = _BASE) -> Figure:
    return changed(PlannedRun("decoders", WORKERS, RATE, policy), of, base)


def signature(*path: str, scale: float = 1.0) -> Figure:
    """Return a number of the signatures, by its path in the answer, such as "rho", "count"."""

    def figure(answer: Answer, rates: tuple[float, ...]) -> float | None:
        value = answer["signatures"]
        for name in path:
            value = value.get(name)
            if value is None:
                return None
        return scale * float(value)

    return figure


def _rho_lead(better: tuple[str, ...], worse: str) -> Figure:
    def figure(answer: Answer, rates: tuple[float, ...]) -> float | None:
        rho = answer["signatures"].get("rho")
        return None if rho is None else float(np.mean([rho[one] for one in better]) - rho[worse])

    return figure


def _signatures() -> Iterator[tuple[Any, ...]]:
    # the order of transforms is what generalists were put in for, at this height and swing (`lbopt.locality.workload`)
    rho, mixed = "rho: transforms of counts above gate-prob", "fewer experts in a batch of {} of one domain"
    by_prob = _at_60("eldr", "p50", eldr_at(0.1, transform="gate-prob"))
    counted = _rho_lead(("count", "count-idf", "sqrt-count"), "gate-prob")
    for name, low, high in (("task", 17, 21), ("language", 3, 10)):
        of, fewer = ("signatures", name), ((low, high), f"{low} to {high}", "%", True)
        yield from ((*of, mixed.format(B), fewer, signature("fewer", str(B), scale=100)) for B in (32, 64, 128))
        yield from (
            (*of, rho, ((0.035, math.inf), "above 0.035", "", True), counted),
            (
                *of,
                "rho: count-idf above count",
                (0.015, "0.015, up to 0.089", "", True),
                _rho_lead(("count-idf",), "count"),
            ),
            (*of, "rho: kept layers above all", ((0.005, 0.032), "0.005 to 0.032", ""), signature("mask_gain")),
            (
                *of,
                "prefill and decode correlate by expert",
                ((0.70, 0.92), "0.70 to 0.92", "", True),
                signature("alike"),
            ),
            (*of, "P50 with count-idf against gate-prob", ((-14, 0), "−3 on average, up to −14"), by_prob),
        )


def _routers() -> list[tuple[Any, ...]]:
    # topics and requests of the workloads spread as far as it takes to come near the two that are marked as calibrated
    # (`lbopt.locality.workload`)
    task, language, mean = ("routers", "task"), ("routers", "language"), mean_over_rates
    best = [
        ("routers", name, f"{of.upper()} of eldr against the best balancer", said, mean("eldr", of, "best"))
        for (name, of), said in _AGAINST_BEST.items()
    ]
    return [
        *best[:2],
        (
            *task,
            "P50 of domain against the best balancer",
            ((-9.7, -6.8), "−6.8 to −9.7"),
            mean("domain", "p50", "best"),
        ),
        (*task, "P50 of eldr against domain", ((-6.9, -1.4), "−1.4 to −6.9"), mean("eldr", "p50", "domain")),
        (*task, "P99 of eldr against domain", ((-4.5, -1.6), "−1.6 to −4.5"), mean("eldr", "p99", "domain")),
        (*task, "experts of eldr against round-robin", (-22.0, "−22.0", "%", True), mean("eldr", "experts", _BASE)),
        *best[2:],
        (
            *language,
            "P50 of domain against round-robin",
            ((-3.0, 3.0), "within 3", "%", True),
            mean("domain", "p50", _BASE),
        ),
        (*language, "P99 of domain against round-robin", ((0.0, 6.1), "up to +6.1"), mean("domain", "p99", _BASE)),
        (*language, "P50 of eldr against domain", ((-9.1, -5.7), "−5.7 to −9.1"), mean("eldr", "p50", "domain")),
        (*language, "P99 of eldr against domain", ((-9.5, -7.0), "−7.0 to −9.5"), mean("eldr", "p99", "domain")),
    ]


def _band() -> list[tuple[Any, ...]]:
    return [
        ("band", workload, *asked)
        for workload in ("task", "language")
        for asked in (
            ("P50 at tau 0.1", ((-12.7, -5.2), "−5.2 to −12.7"), _at_60("eldr", "p50")),
            ("P99 at tau 0.1", ((-math.inf, 0.0), "no regression"), _at_60("eldr", "p99")),
            ("P99 at tau 0", ((0.0, 7.9), "worse on 4 of 6, up to +7.9"), _at_60(eldr_at(0.0), "p99")),
            ("P50 at tau 0.3, against 0.1", ((0.0, math.inf), "the gain erodes"), _at_60(eldr_at(0.3), "p50", "eldr")),
        )
    ]


def _clusters() -> list[tuple[Any, ...]]:
    vanilla = eldr_at(0.1, "vanilla")
    return [
        ("clusters", workload, *asked)
        for workload in ("task", "language")
        for asked in (
            ("P50, vanilla", ((-9.8, 0.0), "up to −9.8"), _at_60(vanilla, "p50")),
            ("P99, vanilla", ((0.0, 17.4), "up to +17.4"), _at_60(vanilla, "p99")),
            # balanced clusters with a band of 0.1 are the rule of the item `band`: the same runs, the same figure
            ("P50, balanced", ((-12.6, 0.0), "up to −12.6"), _at_60("eldr", "p50"), "band"),
            ("P99, balanced", ((-6.8, 0.0), "up to −6.8"), _at_60("eldr", "p99"), "band"),
            ("P99, vanilla against balanced", ((0.0, math.inf), "worse"), _at_60(vanilla, "p99", "eldr")),
        )
    ]


def _pool() -> Iterator[tuple[Any, ...]]:
    figures = {(pool, of): mean_over_rates("eldr", of, _BASE, pool) for pool in POOLS for of in ("p50", "p99")}
    for (pool, of), value in zip(figures, (-8.0, -2.5, -9.8, -0.8, -10.2, -1.1), strict=True):
        said = (value, f"{value:+.1f}".replace("-", "−"))
        yield "pool", "language", f"{of.upper()}, {pool} decoders", said, figures[pool, of]

    def grows(answer: Answer, rates: tuple[float, ...]) -> float | None:
        low, high = (figures[pool, "p50"](answer, rates) for pool in (POOLS[0], POOLS[-1]))
        return None if low is None or high is None else high - low

    yield "pool", "language", "P50 with 24 decoders less 8", ((-math.inf, 0.0), "−2.2", "points"), grows


def _beside() -> Iterator[tuple[Any, ...]]:
    """First token, prefix cache, and the other three models."""
    among = ((-math.inf, 0.0), "within the baselines' spread, lower near saturation", "ms")
    quantity = "median wait for the first step, outside of the balancers' spread"
    yield from (("first-token", workload, quantity, among, outside_spread) for workload in ("task", "language"))
    for (state, law), (of, value) in product(CACHE_LAWS.items(), (("p50", -13.0), ("p99", -5.0))):
        run = PlannedRun("decoders", WORKERS, CACHE_RATE, "eldr", law)
        quantity = f"{of.upper()} of eldr against round-robin, prefix cache {state}"
        yield "cache", "task", quantity, (value, f"about −{-value:g}"), changed(run, of)
    for law, ((workload, of), said) in product(OTHER_MODELS, _AGAINST_BEST.items()):
        quantity = f"{_MODELS_SAID[law]}: {of.upper()} of eldr against the best balancer"
        yield "models", workload, quantity, said, mean_over_rates("eldr", of, "best", law=law)
    for of, said in (("p50", ((-4.3, -2.7), "−2.7 to −4.3")), ("p99", ((-2.0, -0.6), "−0.6 to −2.0"))):
        figure = mean_over_rates("eldr", of, _BASE, LARGE_WORKERS, "qwen-235b")
        at_its_rates = partial(_at, figure, LARGE_RATES)
        yield "large", "language", f"{of.upper()} of eldr against round-robin", said, at_its_rates


def _at(figure: Figure, own: tuple[float, ...], answer: Answer, rates: tuple[float, ...]) -> float | None:
    return figure(answer, own)
