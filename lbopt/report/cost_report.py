"""How a cost study is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import floor, hypot, isnan, log10
from typing import TYPE_CHECKING, Any

from lbopt import numbers
from lbopt.report.contents import Made
from lbopt.report.study_report import StudyReport
from lbopt.studies.cost import LEVEL, NEXT_STEP, CostOutcome, DeviceCost, LoadPoint, PointCost
from lbopt.studies.cost.config import CHARGE_NAMES
from lbopt.studies.cost.device_law import AUDITED, CALIBRATED, PUBLISHED, SIMULATED
from lbopt.studies.cost.load_point import GIVEN
from lbopt.studies.cost.outcome import BILLED, PRICED, SAVED, Figure
from lbopt.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARE = numbers.share
_COLUMNS: tuple[tuple[str, str, numbers.Format], ...] = (
    ("step_milliseconds", "step (ms)", numbers.three),
    ("tokens_per_second", "tokens / s", numbers.three),
    ("wait_share", "waiting", numbers.fixed(1, 100, " %")),
    ("kilowatts", "kW", numbers.three),
    ("joules_per_token", "J / token", numbers.three),
    ("wait_energy_share", "energy of waiting", numbers.fixed(1, 100, " %")),
    ("grams_per_million", "g CO₂ / M tokens", numbers.three),
    ("dollars_per_million", "USD / M tokens", numbers.three),
)
_PERCENT = numbers.fixed(1, 100, " %")
#: What a heading calls a law; one that a user named is called as typed.
_LAWS = {
    CALIBRATED: "the calibrated law",
    PUBLISHED: "the published slope",
    SIMULATED: "the law of the simulation",
    AUDITED: "the audited law",
}


def _round(value: float | None) -> str:
    """Return two digits: 12,000 for 12,345, and nothing where it is not known."""
    if value is None or isnan(value):
        return ""
    if value == 0:
        return "0"
    value = float(f"{value:.1e}")
    digits = 1 - floor(log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def cost_tables(outcome: CostOutcome) -> list[Table]:
    """Return the load points, a table of costs per device, and one of savings; then the same of every what-if."""
    tables = [_points_table([cost.point for cost in outcome.devices[0].points])] if outcome.devices else []
    tables += [_device_table(device, outcome) for device in outcome.devices]
    if outcome.devices:
        tables.append(_saving_table(outcome.devices, "What it saves against"))
        tables.append(bill_table(outcome.devices, outcome))
        tables += [_sensitivity_table(device) for device in outcome.devices if device.sensitivities]
    if outcome.what_if:
        tables += [_what_if_table(outcome, device) for device in outcome.devices]
    return tables


def lead(outcome: CostOutcome) -> list[str]:
    """Return a sentence a device and law: what better placement saves, by one step and by perfect balance.

    Laws that disagree have a sentence each: a range over both would be what neither says.
    """
    lines = []
    for device in outcome.devices:
        today = device.points[0].point
        others = device.points[1:]
        if not others or not today.imbalance:
            continue
        text = f"{device.card.name}, {device.law}: perfect balance saves {_span(others, LEVEL, 'time_saved_share')} of "
        text += f"the time of {_named(today)}"
        best = _best_router(others)
        if best:
            text += f", {best} over its own run {_span(others, best, 'time_saved_share')}"
        if any(cost.point.label == NEXT_STEP for cost in others):
            text += f", the best next step alone {_span(others, NEXT_STEP, 'time_saved_share')}"
        dollars = _span(others, LEVEL, "dollars_saved_per_year")
        text += f"; perfect balance is worth {dollars} USD a year on {device.billed:,} devices" if dollars else ""
        lines.append(text + ".")
    return lines


def _named(point: LoadPoint) -> str:
    """Return what a sentence calls today's point: its router, or these loads where only numbers were given."""
    return "these loads" if point.label == GIVEN else point.label


def _best_router(costs: Sequence[PointCost]) -> str | None:
    """Return the router that saves most time over its run, if any saves some; single steps do not say which."""
    routers = [cost for cost in costs if cost.point.label not in (LEVEL, NEXT_STEP)]
    known = [cost for cost in routers if not isnan(cost.figures["time_saved_share"].high)]
    best = max(known, key=lambda cost: cost.figures["time_saved_share"].high, default=None)
    return best.point.label if best is not None and best.figures["time_saved_share"].high > 0 else None


def _span(costs: Sequence[PointCost], label: str, name: str) -> str:
    """Return the ends of a figure over all costs of that label, or nothing where it is not known."""
    ends = [
        end
        for cost in costs
        if cost.point.label == label
        for end in (cost.figures[name].low, cost.figures[name].high)
        if not isnan(end)
    ]
    if not ends:
        return ""
    form = _PERCENT if name.endswith("_share") else _round
    return f"{form(min(ends))} to {form(max(ends))}".replace(" % to", " to")


def cost_csv(outcome: CostOutcome) -> list[dict[str, Any]]:
    """Return a row per fleet, device and load point, every figure with its ends."""
    rows = []
    for change, devices in [("", outcome.devices), *((w.change, w.devices) for w in outcome.what_if)]:
        for device in devices:
            for cost in device.points:
                point = cost.point
                row: dict[str, Any] = {
                    "what_if": change,
                    "device": device.card.name,
                    "law": device.law,
                    "devices_per_worker": device.devices_per_worker,
                    "router": point.label,
                    "workers": point.num_workers,
                    "slots": point.slots_per_worker,
                    "max_load_tokens": point.max_load,
                    "mean_load_tokens": point.mean_load,
                    "imbalance_tokens": point.imbalance,
                    "running_per_worker": point.running,
                    "longest_wait_steps": point.longest_wait,
                }
                for name in (*PRICED, *SAVED, *BILLED):
                    figure = cost.figures[name]
                    row |= {
                        f"{name}_{part}" if part != "median" else name: value for part, value in asdict(figure).items()
                    }
                for short, charge in CHARGE_NAMES.items():
                    row[f"joules_per_token_{short}"] = cost.joules_by_charge[charge].median
                rows.append(row)
    return rows


def sensitivities_csv(outcome: CostOutcome) -> list[dict[str, Any]]:
    """Return a row per device and group of constants: USD a million tokens with the group at its low and high end."""
    return [{"device": device.card.name, **asdict(one)} for device in outcome.devices for one in device.sensitivities]


def _points_table(points: Sequence[LoadPoint]) -> Table:
    first = points[0]
    return Table(
        title=f"Loads: {first.num_workers} workers",
        caption="Imbalance is G · max − sum, means over steps; ± one standard error. A router that starts the largest "
        "requests late looks balanced: the longest wait stands beside it.",
        headers=("router", "heaviest (tokens)", "mean", "imbalance", "running", "longest wait (steps)"),
        rows=[
            (
                point.label,
                numbers.tokens(point.max_load)
                + (f" ± {numbers.tokens(error)}" if (error := hypot(point.max_load_error, point.shared_error)) else ""),
                numbers.tokens(point.mean_load),
                numbers.tokens(point.imbalance),
                numbers.fixed(1)(point.running),
                numbers.whole(point.longest_wait),
            )
            for point in points
        ],
    )


def _device_table(device: DeviceCost, outcome: CostOutcome) -> Table:
    config, G = outcome.config, device.points[0].point.num_workers
    columns = [c for c in _COLUMNS if c[0] != "grams_per_million" or config.carbon is not None]
    parts = ", ".join(f"{kind} {_PERCENT(share)}" for kind, share in device.bound.items() if share > 0)
    interval = "; the step-time law as it stands" if config.step_time and device.law != AUDITED else ""
    law = _LAWS.get(device.law, device.law)
    return Table(
        title=f"{device.card.title}: {G} workers × {device.devices_per_worker} = "
        f"{G * device.devices_per_worker} devices (each a {device.card.part}), {config.model} by {law}",
        caption=f"Nominal values; in brackets, where 90 % of {config.draws:,} draws of the constants lie{interval}."
        + (" A step is the time per output token (TPOT)." if config.tokens_per_request == 1 else "")
        + (f" Of a step of {_named(device.points[0].point)}: {parts}." if parts else "")
        + (
            " The constants were measured on the machine."
            if device.card.origin == "measurement"
            else " The card is from documents; what engines make of it was learnt from published measurements."
            if device.law == CALIBRATED
            else " The step was found in the fleet's own log."
            if device.law == AUDITED
            else " The constants are from documents, not measured here."
        ),
        headers=("router", *(header for _, header, _ in columns)),
        rows=[
            (cost.point.label, *(_with_ends(cost.figures[name], form) for name, _, form in columns))
            for cost in device.points
        ],
    )


def _saving_table(devices: Sequence[DeviceCost], title: str) -> Table:
    rows = [
        (
            f"{device.card.name}, {device.law}: {cost.point.label}",
            _with_ends(cost.figures["time_saved_share"], _PERCENT),
            *(_with_ends(cost.energy_saved_by_charge[charge], _PERCENT) for charge in CHARGE_NAMES.values()),
        )
        for device in devices
        for cost in device.points[1:]
    ]
    return Table(
        title=f"{title} {_named(devices[0].points[0].point)}",
        caption="Time for the same tokens, and money with it. Energy: the same work takes less time, and what is saved "
        "is the waiting, at the power at which it is waited: between idle power (wait-idle) and that of a busy device "
        "(wait-busy); wait-spins is what is measured in between. A minus sign is a router with more imbalance, or with "
        "less work in a step.",
        headers=("device, law: router", "time", *(f"energy, {short}" for short in CHARGE_NAMES)),
        rows=rows,
    )


def bill_table(devices: Sequence[DeviceCost], outcome: CostOutcome) -> Table:
    """Return what today's tokens cost with every router, in round numbers."""
    columns = [
        ("dollars_per_million", "USD / M tokens"),
        ("dollars_per_month", "USD / month"),
        ("dollars_per_year", "USD / year"),
        ("dollars_saved_per_year", "saved / year"),
        ("megawatt_hours_per_year", "MWh / year"),
        *([] if outcome.config.carbon is None else [("tonnes_per_year", "t CO₂ / year")]),
    ]
    rows = [
        (
            f"{device.card.name}, {device.law}: {cost.point.label}",
            f"{device.billed:,}",
            *(_with_ends(cost.figures[name], _round) for name, _ in columns),
        )
        for device in devices
        for cost in device.points
    ]
    return Table(
        title=f"The bill of the tokens of {_named(devices[0].points[0].point)}",
        caption="In round numbers: two digits. Every row buys the same tokens; a router with less waiting needs the "
        "devices for less of the month. A month is a twelfth of 8,760 hours.",
        headers=("device, law: router", "devices", *(header for _, header in columns)),
        rows=rows,
    )


def _sensitivity_table(device: DeviceCost) -> Table:
    nominal = device.points[0].figures["dollars_per_million"].nominal
    return Table(
        title=f"What the price on {device.card.name} hangs on",
        caption=f"USD a million tokens of {_named(device.points[0].point)}, {numbers.three(nominal)} by the nominal "
        "values, with one group of constants at its 5 and at its 95 % end.",
        headers=("constants", "low", "high", "high / low"),
        rows=[
            (one.constant, numbers.three(one.low), numbers.three(one.high), numbers.fixed(2)(one.high / one.low))
            for one in device.sensitivities
            if one.low > 0
        ],
    )


def _what_if_table(outcome: CostOutcome, device: DeviceCost) -> Table:
    """Return all fleets on one device under one law; a law that does not speak of a fleet is left out of it."""
    fleets = [("as given", outcome.devices), *((w.change, w.devices) for w in outcome.what_if)]
    same = [
        (change, found)
        for change, devices in fleets
        for found in devices
        if (found.card.name, found.law) == (device.card.name, device.law)
    ]
    rows = [
        (
            f"{change}, {cost.point.label}",
            numbers.tokens(cost.point.imbalance),
            numbers.whole(cost.point.num_workers * found.devices_per_worker),
            _with_ends(cost.figures["step_milliseconds"], numbers.three),
            _with_ends(cost.figures["tokens_per_second"], numbers.three),
            _with_ends(cost.figures["wait_share"], _PERCENT),
            _with_ends(cost.figures["dollars_per_million"], numbers.three),
            _with_ends(cost.figures["time_saved_share"], _PERCENT),
        )
        for change, found in same
        for cost in found.points
    ]
    return Table(
        title=f"What if: {device.card.name}, {device.law}",
        caption="Time saved is against the first router of the same fleet.",
        headers=(
            "fleet, router",
            "imbalance (tokens)",
            "devices",
            "step (ms)",
            "tokens / s",
            "waiting",
            "USD / M tokens",
            "time saved",
        ),
        rows=rows,
    )


def _with_ends(figure: Figure, form: numbers.Format) -> str:
    text, low, high = (form(value) for value in (figure.nominal, figure.low, figure.high))
    return text if text == low == high else f"{text} ({low} … {high})".replace(" % …", " …")


def cost_files(outcome: CostOutcome, made: Made) -> dict[str, Any]:
    """Return the pictures and the page."""
    from lbopt.report.cost_page import cost_pictures, render_cost_page  # pictures are drawn for a folder alone

    pictures = cost_pictures(outcome)
    files = {name: data for picture in pictures for name, data in picture.files.items()}
    return {**files, "report.html": render_cost_page(outcome, pictures, made.how, made.command)}


def draw_cost(outcome: CostOutcome, axes: Axes) -> None:
    """Draw throughput against imbalance."""
    from lbopt.report.cost_page import draw_cost_figure

    draw_cost_figure(outcome, axes)


REPORT = StudyReport(
    tables=cost_tables,
    csv={"cost": cost_csv, "sensitivities": sensitivities_csv},
    others=cost_files,
    draw=draw_cost,
    heading=lambda outcome: [outcome.source],
    lead=lead,
    written="bill",
    page="report.html",
)
