"""What ELDR's evaluation reports, as numbers that the study computes too, each with the range that was printed.

Source: ELDR (arXiv 2607.00466), evaluation, figures and Table 2. Not asked: time to first token and the prefix cache
(prefill is simulated apart from decode), the 235B model (its reference is not named), and all that is in figures alone.
"""

from __future__ import annotations

import math

import numpy as np

from lbopt.studies.locality.claim import Answer, Claim, Figure, change
from lbopt.studies.locality.plan import BALANCERS, POOLS, RATE, WORKERS, PlannedRun, eldr_at
from lbopt.studies.verdict import around


def claims() -> list[Claim]:
    """Return everything that is asked, by item and workload."""
    return [*_signature_claims(), *_router_claims(), *_band_claims(), *_cluster_claims(), *_pool_claims()]


def _mean_over_rates(policy: str, of: str, base: str, workers: int = WORKERS) -> Figure:
    """Return the mean over rates of the change against a rule; "best" is the load balancer that is best at each."""

    def figure(answer: Answer, rates: tuple[float, ...]) -> float | None:
        found = []
        for rate in rates:
            run = PlannedRun("decoders", workers, rate, policy)
            bases = BALANCERS if base == "best" else (base,)
            changes = [change(answer, run, of, one) for one in bases]
            if None in changes:
                return None
            found.append(max(value for value in changes if value is not None))  # the best has the least of `of`
        return float(np.mean(found))

    return figure


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


def _signature_claims() -> list[Claim]:
    # the order of transforms is what generalists were put in for, at this height and swing (`lbopt.locality.gate`)
    counted = ("count", "count-idf", "sqrt-count")
    found = []
    for workload, low, high in (("task", 17, 21), ("language", 3, 10)):
        found += [
            Claim(
                *("signatures", workload, f"fewer experts in a batch of {B} of one domain", "%", low, high),
                *(f"{low} to {high}", _signature("fewer", str(B), scale=100), True),
            )
            for B in (32, 64, 128)
        ]
        found += [
            Claim(
                *("signatures", workload, "rho: transforms of counts above gate-prob", "", 0.035, math.inf),
                *("above 0.035", _rho_lead(counted, ("gate-prob",)), True),
            ),
            Claim(
                *("signatures", workload, "rho: count-idf above count", "", *around(0.015)),
                *("0.015, up to 0.089", _rho_lead(("count-idf",), ("count",)), True),
            ),
            Claim(
                *("signatures", workload, "rho: kept layers above all", "", 0.005, 0.032),
                *("0.005 to 0.032", _signature("mask_gain")),
            ),
            Claim(
                *("signatures", workload, "prefill and decode correlate by expert", "", 0.70, 0.92),
                *("0.70 to 0.92", _signature("alike"), True),
            ),
            Claim(
                *("signatures", workload, "P50 with count-idf against gate-prob", "%", -14, 0),
                *("−3 on average, up to −14", _at_60("eldr", "p50", eldr_at(0.1, transform="gate-prob"))),
            ),
        ]
    return found


def _router_claims() -> list[Claim]:
    rows: list[tuple[str, str, float, float, str, Figure]] = [
        (
            "task",
            "P50 of eldr against the best balancer",
            -13.9,
            -7.0,
            "−7.0 to −13.9",
            _mean_over_rates("eldr", "p50", "best"),
        ),
        (
            "task",
            "P99 of eldr against the best balancer",
            -6.0,
            -3.4,
            "−3.4 to −6.0",
            _mean_over_rates("eldr", "p99", "best"),
        ),
        (
            "task",
            "P50 of domain against the best balancer",
            -9.7,
            -6.8,
            "−6.8 to −9.7",
            _mean_over_rates("domain", "p50", "best"),
        ),
        ("task", "P50 of eldr against domain", -6.9, -1.4, "−1.4 to −6.9", _mean_over_rates("eldr", "p50", "domain")),
        ("task", "P99 of eldr against domain", -4.5, -1.6, "−1.6 to −4.5", _mean_over_rates("eldr", "p99", "domain")),
        (
            *("task", "experts of eldr against round-robin", *around(-22.0), "−22.0"),
            _mean_over_rates("eldr", "experts", "round-robin"),
        ),
        (
            *("language", "P50 of eldr against the best balancer", -10.0, -5.9, "−5.9 to −10.0"),
            _mean_over_rates("eldr", "p50", "best"),
        ),
        (
            *("language", "P99 of eldr against the best balancer", -6.2, 1.5, "−6.2 to +1.5"),
            _mean_over_rates("eldr", "p99", "best"),
        ),
        (
            *("language", "P50 of domain against round-robin", -3.0, 3.0, "within 3"),
            _mean_over_rates("domain", "p50", "round-robin"),
        ),
        (
            *("language", "P99 of domain against round-robin", 0.0, 6.1, "up to +6.1"),
            _mean_over_rates("domain", "p99", "round-robin"),
        ),
        (
            "language",
            "P50 of eldr against domain",
            -9.1,
            -5.7,
            "−5.7 to −9.1",
            _mean_over_rates("eldr", "p50", "domain"),
        ),
        (
            "language",
            "P99 of eldr against domain",
            -9.5,
            -7.0,
            "−7.0 to −9.5",
            _mean_over_rates("eldr", "p99", "domain"),
        ),
    ]
    # topics and requests of the workloads spread as far as it takes to come near these two (`lbopt.locality.workload`)
    aimed_at = {("task", "experts of eldr against round-robin"), ("language", "P50 of domain against round-robin")}
    return [
        Claim("routers", workload, text, "%", low, high, printed, figure, (workload, text) in aimed_at)
        for workload, text, low, high, printed, figure in rows
    ]


def _band_claims() -> list[Claim]:
    found = []
    for workload in ("task", "language"):
        found += [
            Claim(
                *("band", workload, "P50 at tau 0.1", "%", -12.7, -5.2, "−5.2 to −12.7"),
                _at_60("eldr", "p50"),
            ),
            Claim(
                *("band", workload, "P99 at tau 0.1", "%", -math.inf, 0.0, "no regression"),
                _at_60("eldr", "p99"),
            ),
            Claim(
                *("band", workload, "P99 at tau 0", "%", 0.0, 7.9, "worse on 4 of 6, up to +7.9"),
                _at_60(eldr_at(0.0), "p99"),
            ),
            Claim(
                *("band", workload, "P50 at tau 0.3, against 0.1", "%", 0.0, math.inf, "the gain erodes"),
                _at_60(eldr_at(0.3), "p50", "eldr"),
            ),
        ]
    return found


def _cluster_claims() -> list[Claim]:
    vanilla = eldr_at(0.1, "vanilla")
    found = []
    for workload in ("task", "language"):
        found += [
            Claim(
                *("clusters", workload, "P50, vanilla", "%", -9.8, 0.0, "up to −9.8"),
                _at_60(vanilla, "p50"),
            ),
            Claim(
                *("clusters", workload, "P99, vanilla", "%", 0.0, 17.4, "up to +17.4"),
                _at_60(vanilla, "p99"),
            ),
            Claim(
                *("clusters", workload, "P50, balanced", "%", -12.6, 0.0, "up to −12.6"),
                _at_60("eldr", "p50"),
            ),
            Claim(
                *("clusters", workload, "P99, balanced", "%", -6.8, 0.0, "up to −6.8"),
                _at_60("eldr", "p99"),
            ),
            Claim(
                *("clusters", workload, "P99, vanilla against balanced", "%", 0.0, math.inf, "worse"),
                _at_60(vanilla, "p99", "eldr"),
            ),
        ]
    return found


def _pool_claims() -> list[Claim]:
    printed = {8: (-8.0, -2.5), 16: (-9.8, -0.8), 24: (-10.2, -1.1)}
    found = []
    for pool in POOLS:
        for of, value in zip(("p50", "p99"), printed[pool], strict=True):
            text = f"{value:+.1f}".replace("-", "−")
            found.append(
                Claim(
                    *("pool", "language", f"{of.upper()}, {pool} decoders", "%", *around(value), text),
                    _mean_over_rates("eldr", of, "round-robin", pool),
                )
            )

    def grows(answer: Answer, rates: tuple[float, ...]) -> float | None:
        ends = [_mean_over_rates("eldr", "p50", "round-robin", pool)(answer, rates) for pool in (POOLS[0], POOLS[-1])]
        return None if ends[0] is None or ends[1] is None else ends[1] - ends[0]

    found.append(Claim("pool", "language", "P50 with 24 decoders less 8", "points", -math.inf, 0.0, "−2.2", grows))
    return found
