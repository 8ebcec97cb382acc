"""The sweeps of a locality study as tables: band width, routers by rate, decode workers, clusters, signatures.

Round-robin stands as it was measured, every other rule as its change against round-robin in the same world: worlds
differ by far more than rules do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbopt import numbers
from lbopt.locality import TRANSFORMS
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.locality import POOLS, RATE, ROUTERS, WIDTHS, WORKERS, LocalityOutcome, PlannedRun, eldr_at
from lbopt.studies.locality.cell import BATCHES, WIDTHS_OF_BANDS
from lbopt.studies.locality.questions import mean_over_rates, signature
from lbopt.table import Table

BASE = "round-robin"
#: Quantities of a run: name in an answer, header, and how round-robin's own value is shown.
QUANTITIES = {
    "p50": ("P50", numbers.fixed(2, 1e3, " ms")),
    "p99": ("P99", numbers.fixed(2, 1e3, " ms")),
    "experts": ("experts", numbers.fixed(1)),
    "busiest_over_mean": ("busiest / mean", numbers.fixed(2)),
}
_BUSIEST_OF = "busiest_over_mean"
#: Item whose runs are of each kind of fleet.
FLEET_OF_ITEM = {"band": "decoders", "barrier": "barrier"}

_percent, _rho = numbers.fixed(1), numbers.fixed(3)
_PAIRED = "Round-robin as measured, all others as change against it in %, paired in the same world."
#: Said once, under the first table.
_WHAT = (
    "P50 and P99: quantiles over requests of the time per output token. Experts: different experts of a layer in use, "
    "mean over steps."
)
_BUSIEST = "Busiest / mean: of the requests of a decoder, averaged over time."
#: The barrier's is another measure.
_BUSIEST_OF_BARRIER = "Busiest / mean with the barrier: of the tokens of a worker, in every step."
#: What eldr with the widest band still is.
_WIDEST = "With tau = 1 eldr is jsq that breaks its ties by the nearest centroid."


def sweep_tables(outcome: LocalityOutcome) -> list[Table]:
    """Return a table for each chosen item and workload that some world has ended of."""
    items = outcome.config.items
    drawn = [_band_table] if fleets_of(outcome) else []
    own = {"routers": _router_table, "pool": _pool_table, "clusters": _cluster_table}
    drawn += [table for item, table in own.items() if item in items]
    found = [table(outcome, workload) for workload in workloads_of(outcome) for table in drawn]
    if found:
        said = [found[0].caption, _WHAT, *([_BUSIEST] if {"band", "routers", "clusters"} & set(items) else [])]
        found[0] = replace(found[0], caption=" ".join(said))
    return found + ([_signature_table(outcome)] if "signatures" in items and outcome.answers else [])


def workloads_of(outcome: LocalityOutcome) -> list[str]:
    """Return the workloads that some world has ended of, in their order."""
    return [workload for workload in outcome.config.workloads if outcome.answers.get(workload)]


def fleets_of(outcome: LocalityOutcome) -> list[str]:
    """Return the fleets that the band was swept on."""
    return [fleet for item, fleet in FLEET_OF_ITEM.items() if item in outcome.config.items]


def over_rates(outcome: LocalityOutcome, workload: str, workers: int, policy: str, of: str) -> MeanOverSeeds | None:
    """Return the change against round-robin in %, the mean over rates in each world, over worlds."""
    return outcome.over(workload, mean_over_rates(policy, of, BASE, workers))


def interval_said(outcome: LocalityOutcome) -> str:
    """Return what ± is here, or that there is none."""
    ended = sorted({len(answers) for answers in outcome.answers.values()})
    if ended[-1] < 2:
        return "One world: no interval."
    worlds = str(ended[0]) if len(ended) == 1 else f"{ended[0]} to {ended[-1]}"
    return f"± is half of a 95 % interval over {worlds} worlds."


def _measured(outcome: LocalityOutcome, workload: str, run: PlannedRun, of: str) -> str:
    """Return a quantity of round-robin as it is, and of any other rule as its change; the busiest always as it is."""
    if run.policy == BASE or of == _BUSIEST_OF:
        value = outcome.mean(workload, run, of)
        return numbers.UNKNOWN if value is None else QUANTITIES[of][1](value.mean)
    return shown(outcome.change(workload, run, of))


def shown(value: MeanOverSeeds | None, form: numbers.Format = _percent, *, signed: bool = True) -> str:
    """Return a mean with its interval, or a dash where nothing is known."""
    return numbers.with_interval(value, form, signed=signed)


def _of_run(outcome: LocalityOutcome, workload: str, run: PlannedRun) -> tuple[str, ...]:
    return tuple(_measured(outcome, workload, run, of) for of in QUANTITIES)


def _band_table(outcome: LocalityOutcome, workload: str) -> Table:
    fleets = fleets_of(outcome)
    rules = [(BASE, BASE), ("jsq", "jsq"), *((f"eldr, tau = {width:g}", eldr_at(width)) for width in WIDTHS)]
    rows = []
    for name, policy in rules:
        runs = (PlannedRun(fleet, WORKERS, RATE, policy) for fleet in fleets)
        rows.append((name, *(cell for run in runs for cell in _of_run(outcome, workload, run))))
    headers = [header for header, _ in QUANTITIES.values()]
    caption = [_PAIRED, interval_said(outcome), _WIDEST, *([_BUSIEST_OF_BARRIER] if "barrier" in fleets else [])]
    return Table(
        f"{workload}: width of the band, {WORKERS} workers, {RATE:g} requests/s",
        " ".join(caption),
        ("rule", *(f"{fleet}: {headers[0]}" if i == 0 else headers[i] for fleet in fleets for i in range(4))),
        rows,
    )


def _router_table(outcome: LocalityOutcome, workload: str) -> Table:
    rates, rows = outcome.config.rates, []
    for of, (header, _) in QUANTITIES.items():
        for policy in ROUTERS:
            cells = [_measured(outcome, workload, PlannedRun("decoders", WORKERS, rate, policy), of) for rate in rates]
            mean = (
                "" if policy == BASE or of == _BUSIEST_OF else shown(over_rates(outcome, workload, WORKERS, policy, of))
            )
            rows.append((f"{header}, {policy}", *cells, mean))
    return Table(
        f"{workload}: routers by rate (requests/s), {WORKERS} decoders",
        f"{_PAIRED} {interval_said(outcome)}",
        ("quantity, rule", *(f"{rate:g}" for rate in rates), "mean of rates"),
        rows,
    )


def _pool_table(outcome: LocalityOutcome, workload: str) -> Table:
    printed = {
        judged.question.quantity: judged.question.printed.text
        for judged in outcome.judged()
        if (judged.question.item, judged.question.workload) == ("pool", workload)
    }
    rows = []
    for pool in POOLS:
        runs = [PlannedRun("decoders", pool, rate, BASE) for rate in outcome.config.rates]
        means = [value.mean for run in runs if (value := outcome.mean(workload, run, "running"))]
        cells = [str(pool), numbers.fixed(1)(float(np.mean(means)) if means else None)]
        for of, (header, _) in list(QUANTITIES.items())[:3]:
            cells.append(shown(over_rates(outcome, workload, pool, "eldr", of)))
            if of != "experts":
                cells.append(printed.get(f"{header}, {pool} decoders", numbers.UNKNOWN))
        rows.append(tuple(cells))
    return Table(
        f"{workload}: eldr by number of decode workers, mean over rates",
        f"Change against round-robin in %, paired in the same world. {interval_said(outcome)} "
        "Running: requests in a step of a worker under round-robin.",
        ("workers", "running", "P50", "printed", "P99", "printed", "experts"),
        rows,
    )


def _cluster_table(outcome: LocalityOutcome, workload: str) -> Table:
    rules = [("round-robin", BASE)]
    rules += [
        (f"{kind}, tau = {width:g}", eldr_at(width, kind)) for width in (0.0, 0.1) for kind in ("balanced", "vanilla")
    ]
    return Table(
        f"{workload}: clusters of equal size and plain K-means, {WORKERS} decoders, {RATE:g} requests/s",
        f"{_PAIRED} {interval_said(outcome)}",
        ("clusters", *(header for header, _ in QUANTITIES.values())),
        [(name, *_of_run(outcome, workload, PlannedRun("decoders", WORKERS, RATE, policy))) for name, policy in rules],
    )


def _signature_table(outcome: LocalityOutcome) -> Table:
    workloads = workloads_of(outcome)
    lines: list[tuple[str, tuple[str, ...], numbers.Format]] = [
        (f"rho, {name}", ("rho", name), _rho) for name in TRANSFORMS
    ]
    lines += [
        ("layers kept", ("kept",), numbers.fixed(1)),
        ("rho, kept layers less all", ("mask_gain",), _rho),
        ("correlation of prefill and decode, by expert", ("alike",), _rho),
    ]
    lines += [
        (f"fewer experts in a batch of {batch} of one domain (%)", ("fewer", str(batch)), numbers.fixed(1, 100))
        for batch in BATCHES
    ]
    lines += [
        (f"workers in a band of {width:g}", ("bands", f"{width:g}"), numbers.fixed(1)) for width in WIDTHS_OF_BANDS
    ]
    found = {name: [outcome.over(workload, signature(*path)) for workload in workloads] for name, path, _ in lines}
    return Table(
        "Signatures",
        "rho: rank correlation over pairs of requests of distances of signatures and of decode activation. "
        f"Layers kept: of {outcome.config.layers}. Workers in a band: of {WORKERS}, median over requests. "
        f"{interval_said(outcome)}",
        ("quantity", *workloads),
        [
            (name, *(shown(value, form, signed=False) for value in found[name]))
            for name, _, form in lines
            if any(found[name])
        ],
    )
