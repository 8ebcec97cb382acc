"""Picture: the performance profile, share of instances closed within a time, one line a solver."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lbopt.report.figures import line_style
from lbopt.studies.race import RaceOutcome
from lbopt.studies.race.outcome import ALL_GROUPS
from lbopt.studies.race.profile import Times, curve, times_of

#: Room left of the quickest run, as a factor.
_MARGIN = 0.6


def draw_profile(outcome: RaceOutcome, axes: Axes, group: str = ALL_GROUPS) -> None:
    """Draw full lines for proved optima, dashed ones for optima that a solver claims; the limit is dotted.

    The time axis is that of the whole race, whatever the group, so that panels can be compared.
    """
    limit = outcome.config.time_limit
    everything = times_of([r for r in outcome.records if r.status != "missing"])
    finite = np.append(everything[np.isfinite(everything)], limit)
    left, right = _MARGIN * float(finite.min()), float(finite.max())
    for index, solver in enumerate(outcome.config.solvers):
        records = [r for r in outcome.of(solver, group) if r.status != "missing"]
        style = line_style(index)
        proved, closed = times_of(records, claims=False), times_of(records)
        if np.isfinite(proved).any() or not np.isfinite(closed).any():
            _steps(axes, proved, left, right, label=f"{solver}, proved", linewidth=1.8, **style)
        if not np.array_equal(proved, closed):
            dashed = style | {"linestyle": "--"}
            _steps(axes, closed, left, right, label=f"{solver}, claims too", linewidth=1.6, **dashed)
    axes.axvline(limit, color="#57606a", linestyle=":", linewidth=1)
    axes.annotate(
        f"limit {limit:g} s",
        (limit, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8,
        color="#57606a",
    )
    axes.set_xscale("log")
    axes.set_xlim(left, 1.3 * right)
    axes.set_ylim(-0.02, 1.04)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def _steps(axes: Axes, times: Times, left: float, right: float, **style: object) -> None:
    seconds, shares = curve(times)
    last = float(shares[-1]) if shares.size else 0.0
    axes.step(
        np.concatenate([[left], seconds, [right]]),
        np.concatenate([[0.0], shares, [last]]),
        where="post",
        **style,  # type: ignore[arg-type]
    )
