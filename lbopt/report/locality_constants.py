"""The tables of verdicts under given step times, and over the ranges of the assumed constants."""

from __future__ import annotations

from lbopt.report.locality_sweeps import interval_said, shown
from lbopt.studies.locality import LocalityOutcome
from lbopt.studies.locality.constants import AtConstants
from lbopt.studies.locality.laws import OTHER_SECONDS, SECONDS_PER_REQUEST
from lbopt.table import Table

_RANGES = (
    f"Assumed are 6 ms of a step beside experts (other_seconds; plausible {1e3 * OTHER_SECONDS[0]:g} to "
    f"{1e3 * OTHER_SECONDS[1]:g}: weights of attention and output layer from below, experts as 36 % of a step from "
    f"above) and 50 µs a request ({1e6 * SECONDS_PER_REQUEST[0]:g} to {1e6 * SECONDS_PER_REQUEST[-1]:g}: its "
    "arithmetic from below, a batch size that barely moves a step from above)."
)


def constants_table(outcome: LocalityOutcome) -> Table:
    """Return a row a statement: with the assumed constants, where it is lowest and highest, and whether it holds."""
    rows = []
    for band in outcome.constant_bands():
        ordered = band.by_effect
        name = f"{band.question.workload}: {band.question.quantity}"
        rows.append(
            (
                name,
                f"{band.question.printed.text} %",
                f"{shown(band.points[0].judged.ours)} ({band.points[0].judged.verdict})",
                *(_at(point) for point in (ordered[0], ordered[-1])),
                band.said,
            )
        )
    return Table(
        "Verdicts over the assumed constants",
        f"{_RANGES} Every pair of them is simulated anew. {interval_said(outcome)}",
        ("quantity", "printed", "ours (verdict)", "lowest (at)", "highest (at)", "over both ranges"),
        rows,
    )


def laws_table(outcome: LocalityOutcome) -> Table:
    """Return a row a statement and step time that was given."""
    rows = [
        (
            f"{found.judged.question.workload}: {found.judged.question.quantity}",
            found.law,
            f"{found.judged.question.printed.text} %",
            shown(found.judged.ours),
            found.judged.verdict,
        )
        for found in outcome.at_laws()
    ]
    rates = ", ".join(f"{rate:g}" for rate in outcome.config.rates)
    return Table(
        "Verdicts under given step times",
        f"What a name leaves out is as assumed. {interval_said(outcome)} Mean over {rates} requests/s.",
        ("quantity", "step time", "printed", "ours", "verdict"),
        rows,
    )


def _at(point: AtConstants) -> str:
    return f"{shown(point.judged.ours)} ({point.said})"
