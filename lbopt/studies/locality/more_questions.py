"""What ELDR's evaluation prints beside its main tables: first token, prefix cache, and the other three models.

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
"""

from __future__ import annotations

import math
from functools import partial

from lbopt.studies.locality.plan import (
    BALANCERS,
    CACHE_LAWS,
    CACHE_RATE,
    LARGE_RATES,
    LARGE_WORKERS,
    OTHER_MODELS,
    WORKERS,
    PlannedRun,
)
from lbopt.studies.locality.question import SOURCE, Answer, Question, change, mean_over_rates
from lbopt.studies.printed import printed_number, printed_range, within

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
