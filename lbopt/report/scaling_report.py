"""How a scaling study is shown: exponents, every cell, the improvement against its floor, and pictures."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from lbopt import numbers
from lbopt.report.figures import COLOURS, GREY, dress, marked_line, new_figure, panel_each
from lbopt.report.study_report import StudyReport
from lbopt.report.theory_tables import number
from lbopt.studies.scaling import Exponents, ScalingCell, ScalingOutcome
from lbopt.table import Column, Table, records, table_of
from lbopt.theory.laws.gap_bounds import CLEAR

_MOST_COLUMNS = 3
_LABEL = "imbalance per worker (tokens)"


def _ratio(value: float | None) -> str:
    return "∞" if value is None or math.isinf(value) else f"{value:,.3g}×"


def _tokens(value: float) -> str:
    return number(round(value, 1))


COLUMNS = (
    Column("policy", "the rule"),
    Column("G", "number of workers", of="fleet.G"),
    Column("B", "slots of a worker", of="fleet.B"),
    Column("p", "probability that a request ends in a step", of="fleet.p"),
    Column("s_max", "largest prompt, tokens", of="fleet.s_max"),
    Column("imbalance_tokens", "mean imbalance after admission", of="mean.mean"),
    Column("standard_error", "its standard error", of="mean.error"),
    Column("steps", "steps that it is averaged over", of="mean.trials"),
    Column("fcfs_exact_tokens", "FCFS's expected imbalance, computed", "FCFS", _tokens, "fleet.fcfs"),
    Column("levelled_law_tokens", "the law of the exact rule below the onset", of="fleet.levelled"),
    Column("least_left_tokens", "least mean imbalance of any rule, two sizes", of="fleet.left"),
    Column(
        "improvement",
        "FCFS's exact imbalance over the rule's; none where nothing is left",
        shown=_ratio,
        of=lambda _, cell: cell.improvement if math.isfinite(cell.improvement) else None,
    ),
    Column("floor", "least improvement of Theorem 2", shown=_ratio, of="fleet.floor"),
    Column("onset_slots", "B*", of="fleet.onset"),
    Column("admitted_prompt_tokens", "mean prompt of admitted", "admitted prompt", numbers.steps, "admitted_prompt"),
    Column("wait_mean_steps", "mean wait in the pool", of="wait_mean"),
    Column("wait_max_steps", "longest wait", "longest wait", numbers.whole, "wait_max"),
    Column("closed_share", "share of decisions that are proved or closed by the search", "closed", numbers.share),
)
_BY_NAME = {one.name: one for one in COLUMNS}

_CELLS = (
    *(_BY_NAME[name] for name in ("policy", "G", "B")),
    Column("imbalance", of=lambda _, cell: f"{_tokens(cell.mean.mean)} ± {_tokens(1.96 * cell.mean.error)}"),
    *(_BY_NAME[name] for name in ("fcfs_exact_tokens", "improvement", "admitted_prompt_tokens", "wait_max_steps")),
    _BY_NAME["closed_share"],
)

_AGAINST_FLOOR = (
    *(_BY_NAME[name] for name in ("policy", "G", "B")),
    Column("B / B*", shown="{:.2g}".format, of=lambda _, cell: cell.fleet.B / cell.fleet.onset),
    *(_BY_NAME[name] for name in ("improvement", "floor")),
    Column(
        "which is", of=lambda _, one: "claimed" if CLEAR * one.fleet.onset <= one.fleet.B else "not claimed", shown=str
    ),
    Column(
        "over the law",
        shown="{:.2f}".format,
        of=lambda _, cell: cell.mean.mean / (cell.fleet.left or cell.fleet.levelled),
    ),
)


def _exponent(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None:
        return numbers.UNKNOWN
    inside = f" ({interval[0]:.3f} … {interval[1]:.3f})" if interval else ""
    return f"{value:.3f}{inside}".replace("-", "−")


_NO_ENDS = (None, None)

EXPONENTS = (
    Column("policy", "the rule, or FCFS's exact law", of=lambda _, one: one[0]),
    Column("exponent_of_B", "β", of=lambda _, one: one[1].slots),
    Column("low", "end of its 95 % bootstrap interval", of=lambda _, one: (one[1].slots_interval or _NO_ENDS)[0]),
    Column("high", "end of its 95 % bootstrap interval", of=lambda _, one: (one[1].slots_interval or _NO_ENDS)[1]),
    Column("exponent_of_log_G", "γ", of=lambda _, one: one[1].workers),
    Column(
        "low_log_G", "end of its 95 % bootstrap interval", of=lambda _, one: (one[1].workers_interval or _NO_ENDS)[0]
    ),
    Column(
        "high_log_G", "end of its 95 % bootstrap interval", of=lambda _, one: (one[1].workers_interval or _NO_ENDS)[1]
    ),
    Column("worst_miss", "largest share by which a cell misses the fitted law", of=lambda _, one: one[1].worst),
)


def scaling_csv(outcome: ScalingOutcome) -> list[dict[str, object]]:
    """Return a row per cell, with full precision."""
    return records(COLUMNS, outcome, outcome.cells)


def exponents_csv(outcome: ScalingOutcome) -> list[dict[str, object]]:
    """Return a row per rule that has a law."""
    return records(EXPONENTS, outcome, [one for one in outcome.exponents().items() if one[1] is not None])


def scaling_tables(outcome: ScalingOutcome) -> list[Table]:
    """Return what a terminal shows."""
    config = outcome.config
    ends = f"p = {config.p:g}" if config.ends is None else f"p = {config.ends:g} / B"
    sizes = f"uniform on 1 … {config.s_max}" if config.sizes == "all" else f"1 or {config.s_max}, half of them each"
    cells = table_of(
        "Imbalance",
        f"Tokens, after admission; {ends}, prompts {sizes}, FCFS computed exactly. "
        "Waiting in steps. Closed: decisions that the exact search brought to its own bound.",
        _CELLS,
        outcome,
        outcome.cells,
    )
    law = "the least mean imbalance of any rule with two sizes, κ_B(G, d), which the exact rule reaches for many slots."
    if config.sizes == "all":
        law = (
            "the law G (G−1) (2−p) / (2 p² (s_max−1)), which does not depend on B and is derived for a pool that never "
            "lacks a size."
        )
    exact = table_of(
        "The exact rule against the floor of Theorem 2",
        f"The floor is claimed from {CLEAR} B* on. The last column is the imbalance over {law}",
        _AGAINST_FLOOR,
        outcome,
        [cell for cell in outcome.cells if cell.is_exact],
    )
    several = len({(cell.fleet.G, cell.fleet.B) for cell in outcome.cells}) > 1
    return [table for table in ([_exponent_table(outcome)] if several else []) + [cells, exact] if table.rows]


def _exponent_table(outcome: ScalingOutcome) -> Table:
    def line(found: Exponents | None) -> tuple[str, str, str]:
        if found is None:
            return "no law: a cell has no imbalance", "", ""
        shown = _exponent(found.slots, found.slots_interval), _exponent(found.workers, found.workers_interval)
        return *shown, numbers.share(found.worst)

    return Table(
        "Exponents",
        "Imbalance of a worker, fitted as c · B^β · (log G)^γ with 95 % bootstrap intervals; the miss is the largest "
        "of a cell. Theory's ½ and ½ are for many slots and workers: the exact law's own exponents stand beside.",
        ("policy", "β, of B", "γ, of log G", "largest miss"),
        [(policy, *line(found)) for policy, found in outcome.exponents().items()],
    )


def scaling_figures(outcome: ScalingOutcome) -> dict[str, Figure]:
    """Return the pictures by their names; those of the exact rule only where it took part."""
    found = {"imbalance": imbalance_figure(outcome)}
    for policy in dict.fromkeys(cell.policy for cell in outcome.cells if cell.is_exact):
        name = re.sub(r"[^\w.-]+", "-", policy)  # two variants of a rule have two pictures
        found[f"onset-{name}"] = onset_figure(outcome, policy)
        if outcome.config.sizes == "all":
            found[f"law-{name}"] = law_figure(outcome, policy)
        else:  # something is left for many slots, too, so that the ratio to FCFS shows the theorem's growth
            found[f"improvement-{name}"] = improvement_figure(outcome, policy)
    return found


def imbalance_figure(outcome: ScalingOutcome) -> Figure:
    """Return a panel per number of workers: imbalance per worker against slots, one line a rule, FCFS's exact law."""
    workers = [G for G in outcome.config.workers if any(cell.fleet.G == G for cell in outcome.cells)]
    columns = 2 if len(workers) == 4 else min(_MOST_COLUMNS, len(workers))
    size = 0.8 + 3.2 * columns, 0.9 + 2.9 * -(-len(workers) // columns)
    return panel_each(workers, lambda axes, G: draw_imbalance(outcome, axes, G), _LABEL, columns, size)


def draw_imbalance(outcome: ScalingOutcome, axes: Axes, G: int) -> None:
    """Draw the imbalance per worker of fleets of G workers against slots: a line for each rule, FCFS's exact law."""
    _dress(axes, "slots per worker, B")
    policies = outcome.config.policies
    names = [policy.partition(":")[0] for policy in policies]
    for index, (policy, name) in enumerate(zip(policies, names, strict=True)):
        places = {cell.fleet.B: (cell, G) for cell in outcome.of(policy) if cell.fleet.G == G}
        label = name if names.count(name) == 1 else policy  # another variant of the rule is in the picture
        _line(axes, places, label=label, **marked_line(index))
    known = {cell.fleet.B: cell.fleet.fcfs / G for cell in outcome.cells if cell.fleet.G == G}
    axes.plot(list(known), list(known.values()), color=GREY, linewidth=5, alpha=0.25, label="FCFS, exact law")
    axes.set_title(f"G = {G}", fontsize=10, loc="left")
    axes.xaxis.set_major_locator(FixedLocator(list(outcome.config.slots)))


def draw_largest_fleet(outcome: ScalingOutcome, axes: Axes) -> None:
    """Draw the imbalance per worker against slots, for the largest number of workers."""
    draw_imbalance(outcome, axes, max(cell.fleet.G for cell in outcome.cells))
    axes.set_ylabel(_LABEL)
    axes.legend(frameon=False, fontsize=9)


def onset_figure(outcome: ScalingOutcome, policy: str) -> Figure:
    """Return what `policy` leaves of FCFS's imbalance against B / B*, with the inverse of Theorem 2's floor."""
    figure, axes = new_figure(7.2, 4.4)
    _dress(axes, "slots per worker over the onset, B / B*")
    left = {id(cell): cell.mean.mean / cell.fleet.fcfs for cell in outcome.of(policy)}
    least = min((share for share in left.values() if share > 0), default=1e-3)
    for index, G in enumerate(outcome.config.workers):
        cells = [cell for cell in outcome.of(policy) if cell.fleet.G == G]
        style: dict[str, Any] = {"color": COLOURS[index % len(COLOURS)], "linewidth": 1.2}
        where = [cell.fleet.B / cell.fleet.onset for cell in cells]
        shares = [max(left[id(cell)], least / 3) for cell in cells]
        axes.plot(where, shares, marker="o", markersize=4, label=f"G = {G}" if cells else None, **style)
        nothing = [(x, y) for x, y, cell in zip(where, shares, cells, strict=True) if cell.mean.mean == 0]
        axes.plot([x for x, _ in nothing], [y for _, y in nothing], marker="v", linestyle="", markersize=7, **style)
        axes.plot(where, [1 / cell.fleet.floor for cell in cells], **style | {"linestyle": "--", "linewidth": 1})
    axes.axvline(1.0, color=GREY, linewidth=1)
    axes.annotate("B*", (1.0, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -12), textcoords="offset points")
    axes.set_ylabel("share of FCFS's imbalance that is left")
    axes.legend(frameon=False, fontsize=9, title="dashed: Theorem 2\n▼: nothing left", title_fontsize=8)
    return figure


def improvement_figure(outcome: ScalingOutcome, policy: str) -> Figure:
    """Return the improvement of `policy` on FCFS against sqrt(B log G), with the exact law of many slots."""
    figure, axes = new_figure(7.2, 4.4)
    _dress(axes, "√(B log G)")
    for index, G in enumerate(outcome.config.workers):
        cells = [cell for cell in outcome.of(policy) if cell.fleet.G == G and cell.mean.mean > 0]
        where = [math.sqrt(cell.fleet.B * math.log(G)) for cell in cells]
        gain = [cell.improvement for cell in cells]
        spread = [1.96 * cell.improvement * cell.mean.error / cell.mean.mean for cell in cells]
        axes.errorbar(where, gain, spread, label=f"G = {G}", **marked_line(index) | {"linestyle": ""})
        law = [cell.fleet.fcfs / cell.fleet.left for cell in cells]
        axes.plot(where, law, color=COLOURS[index % len(COLOURS)], linewidth=1)
    axes.set_ylabel("improvement on FCFS")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([step * 10**power for power in range(6) for step in (1, 2, 5)]))
        axis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend(frameon=False, fontsize=9, title="lines: the exact law", title_fontsize=8)
    return figure


def law_figure(outcome: ScalingOutcome, policy: str) -> Figure:
    """Return the imbalance of `policy` over the law of the regime below the onset, against where that law ends.

    That is at B over the slots from which a load's drift outweighs its forgetting.
    """
    figure, axes = new_figure(7.2, 4.4)
    _dress(axes, "B p² (s_max−1)² / (2−p)")
    for index, G in enumerate(outcome.config.workers):
        places = {
            cell.fleet.B * cell.fleet.p**2 * (cell.fleet.s_max - 1) ** 2 / (2 - cell.fleet.p): (
                cell,
                cell.fleet.levelled,
            )
            for cell in outcome.of(policy)
            if cell.fleet.G == G
        }
        _line(axes, places, label=f"G = {G}", **marked_line(index))
    axes.axhline(1.0, color=GREY, linewidth=1)
    axes.set_ylabel("imbalance over the law")
    axes.legend(frameon=False, fontsize=9)
    return figure


def _line(axes: Axes, places: Mapping[float, tuple[ScalingCell, float]], **style: Any) -> None:
    """Draw the imbalances above zero, each over a number, at their places, with intervals."""
    drawn = {place: (cell.mean, over) for place, (cell, over) in places.items() if cell.mean.mean > 0}
    means = [mean.mean / over for mean, over in drawn.values()]
    axes.errorbar(
        list(drawn), means, [1.96 * mean.error / over for mean, over in drawn.values()], linewidth=1.2, **style
    )


def _dress(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    dress(axes)
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())


REPORT = StudyReport(
    tables=scaling_tables,
    csv={"scaling": scaling_csv, "exponents": exponents_csv},
    figures=scaling_figures,
    draw=draw_largest_fleet,
)
