"""How a placement study is shown."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt import numbers
from lbopt.report.figures import line_style, new_figure
from lbopt.report.study_report import StudyReport
from lbopt.statistics import over_seeds
from lbopt.studies.placement import PlacedLayer, PlacementOutcome
from lbopt.table import Column, Table, records

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


#: placement.csv: a row for each layer and number of ranks; loads are in active experts.
COLUMNS = (
    Column("kind", "of layers"),
    Column("world", "which of the kind"),
    Column("cluster", "of the world"),
    Column("layer", "of the model"),
    Column("R", "number of ranks"),
    Column("mean_load", "of a rank"),
    Column("bound", "the greater of the two lower bounds of the largest load"),
    Column("greedy", "largest load of the greedy placement"),
    Column("exact", "largest load of the exact placement"),
    Column("proof", "what proves it least in rounded weights; none where nothing does"),
    Column("excess", "by how much it may be above the least largest load, at most"),
    Column("seconds", "until it was proved, all roundings together"),
    *(
        Column(f"{of}_{name}", f"active experts of the busiest rank in service, {said}, {name}")
        for of, said in (("busiest", "mean over steps"), ("on_average", "of the rank where the mean is largest"))
        for name in ("greedy", "exact", "one_layout")
    ),
    Column("gap", "share by which greedy's largest load exceeds the exact one's"),
)


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
    return records(COLUMNS, outcome, outcome.layers)


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


def gap_figure(outcome: PlacementOutcome) -> Figure:
    """Return the figure of `draw_placement_gaps`."""
    figure, axes = new_figure(7.2, 4.2)
    draw_placement_gaps(outcome, axes)
    return figure


def draw_placement_gaps(outcome: PlacementOutcome, axes: Axes) -> None:
    """Draw greedy's gaps in percent, sorted, against the share of layers that are no better; all kinds together."""
    for index, R in enumerate(outcome.config.ranks):
        gaps = sorted((100 * one.gap for one in outcome.layers if one.R == R), reverse=True)
        shares = [100 * (place + 1) / len(gaps) for place in range(len(gaps))]
        axes.step(gaps, shares, where="post", label=f"R = {R}", **line_style(index))
    axes.set_xlim(left=0)
    axes.set_ylim(0, 102)
    axes.set_xlabel("largest load of greedy above the exact one (%)")
    axes.set_ylabel("layers with this gap or more (%)")
    axes.legend(frameon=False)


REPORT = StudyReport(
    tables=placement_tables,
    csv={"placement": placement_csv},
    figures=lambda outcome: {"gaps": gap_figure(outcome)},
    draw=draw_placement_gaps,
    written="tables and picture",
)
