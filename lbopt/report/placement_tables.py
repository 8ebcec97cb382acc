"""The tables of a placement study: greedy against exact, what either is worth in service, and every layer as CSV."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from statistics import median
from typing import Any

from lbopt import numbers
from lbopt.statistics import over_seeds
from lbopt.studies.placement import PlacedLayer, PlacementOutcome
from lbopt.table import Table

_EXPERTS, _BUSY, _PERCENT = numbers.fixed(4), numbers.fixed(3), numbers.fixed(3, 100, " %")

#: What proves an optimum, as a person reads it.
PROOFS = {
    "mean": "mean load",
    "heaviest": "heaviest expert",
    "elementary-bound": "elementary bound",
    "certificate": "certificate",
    "exhaustion": "exhaustion",
    "within": "nearness to a bound",
    "none": "open",
}


def placement_tables(outcome: PlacementOutcome) -> list[Table]:
    """Return what a terminal shows."""
    if not outcome.layers:
        return []
    tables = [_gap_table(outcome)]
    if any(one.in_service for one in outcome.layers):
        tables.append(_service_table(outcome))
    return tables


def placement_csv(outcome: PlacementOutcome) -> list[dict[str, Any]]:
    """Return a row per layer and number of ranks, with full precision."""
    names = [one.name for one in fields(PlacedLayer)]
    return [{**{name: getattr(one, name) for name in names}, "gap": one.gap} for one in outcome.layers]


def _gap_table(outcome: PlacementOutcome) -> Table:
    rows = []
    for R, kind, layers in outcome.groups():
        gaps = [one.gap for one in layers]
        experts = [one.greedy - one.exact for one in layers]
        by = Counter(one.proof for one in layers)
        rows.append(
            (
                f"{R}",
                kind,
                f"{len(layers)}",
                f"{sum(one.proved for one in layers)}",
                ", ".join(f"{PROOFS[name]} {by[name]}" for name in PROOFS if by[name]),
                numbers.with_interval(over_seeds(gaps), _PERCENT),
                _PERCENT(median(gaps)),
                _PERCENT(max(gaps)),
                numbers.with_interval(over_seeds(experts), _EXPERTS),
                _EXPERTS(max(experts)),
                f"{max(one.excess for one in layers):.1e}",
                numbers.milliseconds(median([one.seconds for one in layers])),
                numbers.milliseconds(max(one.seconds for one in layers)),
            )
        )
    return Table(
        "Greedy against exact",
        "Gap of greedy's largest load over the exact one's; loads in experts that are active on average (random "
        "weights: in their unit), ± 95 % over layers. Proved: no placement is lower by more than "
        f"{outcome.config.resolution:g}; by how much one may be at most is the excess.",
        (
            *("R", "layers of", "layers", "proved", "by", "gap", "median", "max", "in experts", "max"),
            *("excess at most", "ms to proof", "max"),
        ),
        rows,
    )


def _service_table(outcome: PlacementOutcome) -> Table:
    rows = []
    for R, kind, layers in outcome.groups():
        met = [one for one in layers if one.in_service]
        if not met or (kind == "all" and len({one.kind for one in met}) == 1):
            continue
        exact = [_of(one, "busiest_exact") - _of(one, "busiest_greedy") for one in met]
        alone = [_of(one, "busiest_greedy") - _of(one, "busiest_one_layout") for one in met]
        share = [_of(one, "busiest_greedy") / _of(one, "busiest_one_layout") - 1 for one in met]
        rows.append(
            (
                f"{R}",
                kind,
                f"{len(met)}",
                *(_mean(met, f"busiest_{name}") for name in ("one_layout", "greedy", "exact")),
                numbers.with_interval(over_seeds(alone), _BUSY, signed=True),
                numbers.with_interval(over_seeds(share), numbers.share, signed=True),
                numbers.with_interval(over_seeds(exact), _BUSY, signed=True),
                *(_mean(met, f"on_average_{name}") for name in ("one_layout", "greedy", "exact")),
            )
        )
    return Table(
        "Active experts of the busiest rank",
        f"Mean over {outcome.config.draws} steps of batches of {outcome.config.batch} requests that were not fitted: "
        "one greedy layout for all clusters, greedy and exact for each cluster; paired differences ± 95 % over layers. "
        "On average: the mean of the rank where it is largest, which is less.",
        (
            *("R", "layers of", "layers", "one layout", "greedy", "exact", "greedy − one layout", "same, share"),
            *("exact − greedy", "on average: one layout", "greedy", "exact"),
        ),
        rows,
    )


def _of(layer: PlacedLayer, name: str) -> float:
    value: float = getattr(layer, name)
    return value


def _mean(layers: list[PlacedLayer], name: str) -> str:
    return _BUSY(sum(_of(one, name) for one in layers) / len(layers))
