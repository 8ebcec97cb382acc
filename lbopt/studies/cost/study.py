"""`run_cost`: every load point on every device, with the constants drawn between their ends."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.price import CHARGES, JOULES_PER_KWH, FleetConstants, StepPrice, price_step
from lbopt.studies.cost.config import CHARGE_NAMES, CostConfig
from lbopt.studies.cost.device_law import CALIBRATED, PUBLISHED, DeviceDraws, DrawnForm, sensitivities
from lbopt.studies.cost.load_point import LEVEL, LoadPoint
from lbopt.studies.cost.outcome import CostOutcome, DeviceCost, Figure, PointCost, WhatIf
from lbopt.studies.cost.what_if import Rerun, by_order_statistics
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Study

Values = NDArray[np.float64]

HOURS_PER_YEAR = 8760.0


def run_cost(
    points: Sequence[LoadPoint],
    config: CostConfig,
    progress: Progress | None = None,
    what_if: tuple[str, list[int]] | None = None,
    rerun: Rerun | None = None,
    simulated: str | None = None,
) -> CostOutcome:
    """Price `points`, and the same routers on other fleets; Ctrl-C keeps the fleets that are done.

    Parameters
    ----------
    points
        Load points; the first is today's, to which savings are taken.
    config, progress
        On what they are priced, and where progress is shown.
    what_if
        What `parse_change` read.
    rerun
        How to run the routers again; without it other numbers of workers follow from order statistics.
    simulated
        The step-time law that the loads were simulated with; they are priced by it too.
    """
    progress = progress or Silent()
    outcome = CostOutcome(config)
    outcome.devices, outcome.notes = cost_of_points(points, config, simulated)
    if what_if is None:
        return outcome
    name, values = what_if
    if rerun is None:
        outcome.notes.append("what-if: the same mean load, and imbalance / G in proportion to the normal law's maximum")
    elif rerun.scenario.arrivals == "trace" and rerun.scenario.load is None:
        outcome.notes.append(
            "what-if: requests come by the trace's own clock on every fleet, so a larger one has less to do a worker; "
            "for fleets that are as busy, simulate with --load"
        )
    progress.begin("other fleets", len(values) * (len(rerun.routers) * len(rerun.seeds) if rerun else 1))
    with outcome.clocked():
        for value in values:
            if rerun is None:
                moved = by_order_statistics(points[0], value)
                others = [moved, moved.balanced(LEVEL)]
                progress.advance()
            else:
                others = rerun.on(name, value, progress)
            devices, notes = cost_of_points(others, config, simulated)
            outcome.what_if.append(WhatIf(f"{name}={value}", devices))
            outcome.notes.extend(f"{name}={value}: {note}" for note in notes)
    return outcome


def cost_of_points(
    points: Sequence[LoadPoint], config: CostConfig, simulated: str | None = None
) -> tuple[list[DeviceCost], list[str]]:
    """Return what the points cost on every device, and notes; savings are against the first point.

    A draw is one set of constants for all points, so what a saving does not depend on cancels in it.

    Raises
    ------
    InputError
        A fleet that does not fit into its devices' memory.
    """
    costs, notes = [], []
    if simulated is not None and config.step_time is None:
        notes.append(f"the loads were simulated with the step time {simulated}: they are priced by it too")
    for name in config.devices:
        device = DeviceDraws.of(config, name, simulated)
        laws, refused = device.laws(points[0])
        notes += refused
        if PUBLISHED in laws and config.tokens_per_request > 1:
            notes.append(
                f"{name}: the published step is of one token a request; how much longer one of "
                f"{config.tokens_per_request} takes is not in it, so what it says is too cheap"
            )
        for law in laws:
            count = device.devices_per_worker(law, points[0])
            if law == CALIBRATED and config.calibrate is not None:
                before, after = device.shrinkage(points[0], count)
                notes.append(
                    f"{name}: with the rows of {config.calibrate} the 90 % interval of a step is {after:.2f} wide, "
                    f"high over low, and {before:.2f} without them"
                )
            shared = _normal(config, points[0])
            priced = [_price(device, point, device.form(law, point, count), count, shared) for point in points]
            fleet = points[0].num_workers * count
            billed = config.bill_devices or fleet
            costs.append(
                DeviceCost(
                    card=device.card,
                    law=law,
                    devices_per_worker=count,
                    points=[
                        _cost(point, mine, priced[0], billed / fleet, device.rental * fleet)
                        for point, mine in zip(points, priced, strict=True)
                    ],
                    billed=billed,
                    bound=device.parts_of_step(law, points[0], count),
                    sensitivities=sensitivities(device, points[0], count) if law == CALIBRATED else [],
                )
            )
    return costs, notes


def _normal(config: CostConfig, point: LoadPoint) -> Values:
    """Return D + 1 standard normals that are the point's own, the first of them 0."""
    rng = np.random.default_rng([config.seed, zlib.crc32(point.label.encode())])
    return np.concatenate([[0.0], rng.standard_normal(config.draws)])


def _price(
    device: DeviceDraws, point: LoadPoint, form: DrawnForm, devices: int, shared: Values
) -> dict[str, StepPrice]:
    """Return the point's prices under every charge of waiting, the configured one first."""
    config = device.config
    step = form.step(point, _normal(config, point), shared)
    idle, peak = device.watts
    fleet = FleetConstants(
        seconds=step.seconds,
        waited_seconds=step.waited_seconds,
        tokens=point.num_workers * point.running * device.accepted,
        devices=point.num_workers * devices,
        idle_watts=idle,
        peak_watts=peak,
        dollars_per_hour=device.rental,
        spin=device.spin,
    )
    carbon = math.nan if config.carbon is None else config.carbon
    chosen = CHARGE_NAMES[config.charge]
    return {
        charge: price_step(fleet, charge, carbon, config.overhead)
        for charge in (chosen, *(c for c in CHARGES if c != chosen))
    }


def _cost(
    point: LoadPoint, mine: dict[str, StepPrice], today: dict[str, StepPrice], scale: float, dollars_per_hour: Values
) -> PointCost:
    """Return the figures of a point; `scale` is of the bill's devices over the fleet's."""
    charge = next(iter(mine))
    own, before = mine[charge], today[charge]
    figures = {f.name: Figure.of(getattr(own, f.name)) for f in fields(own) if f.name != "step_seconds"}
    figures["step_milliseconds"] = Figure.of(own.step_seconds * 1e3)
    figures |= {
        "time_saved_share": Figure.of(1 - before.tokens_per_second / own.tokens_per_second),
        "throughput_gain_share": Figure.of(own.tokens_per_second / before.tokens_per_second - 1),
        "energy_saved_share": Figure.of(1 - own.joules_per_token / before.joules_per_token),
        "dollars_saved": Figure.of(before.dollars_per_million - own.dollars_per_million),
    }
    with np.errstate(invalid="ignore"):  # of nothing, at a rental of 0, no share is saved: NaN
        figures["dollars_saved_share"] = Figure.of(1 - own.dollars_per_million / before.dollars_per_million)
    hours = scale * HOURS_PER_YEAR * before.tokens_per_second / own.tokens_per_second  # for the tokens of today
    tonnes = hours * own.kilowatts * (own.grams_per_million * JOULES_PER_KWH / own.joules_per_token / 1e6) / 1e6
    figures |= {
        "dollars_per_month": Figure.of(dollars_per_hour * hours / 12),
        "dollars_per_year": Figure.of(dollars_per_hour * hours),
        "dollars_saved_per_year": Figure.of(dollars_per_hour * (scale * HOURS_PER_YEAR - hours)),
        "megawatt_hours_per_year": Figure.of(own.kilowatts * hours / 1e3),
        "tonnes_per_year": Figure.of(tonnes),
    }
    return PointCost(
        point=point,
        figures=figures,
        joules_by_charge={name: Figure.of(price.joules_per_token) for name, price in mine.items()},
        energy_saved_by_charge={
            name: Figure.of(1 - price.joules_per_token / today[name].joules_per_token) for name, price in mine.items()
        },
    )


def _facts(outcome: CostOutcome) -> dict[str, Any]:
    return {"source": outcome.source, "cards": {one.card.name: one.card.to_dict() for one in outcome.devices}}


STUDY = Study(name="cost", config=CostConfig, run=run_cost, facts=_facts, account=("interrupted", "notes"), timings=())
