"""What the step-time law alone says of the dilution table: no run is needed to check a table against its own law.

If whoever is where does not depend on the overhead b, a column is (x + b) / (y + b) - 1, and its entry at b = 0 fixes
y = x / (1 + gain(0)). One number, the x of JSQ, is left for both columns and six entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbopt.hardware.published import published_table

TABLE = "ep-barrier-overhead"
COLUMNS = {"JSQ-Load": "jsq_load_gain_percent", "Fast-Phi": "fast_phi_gain_percent"}


def diluted(at_zero: float, x: float, overhead: float) -> float:
    """Return the gain in % at an overhead from that without, where JSQ's heaviest load is x times the mean."""
    y = x / (1 + at_zero / 100)
    return 100 * ((x + overhead) / (y + overhead) - 1)


def implied_barrier(overheads: Sequence[float], columns: Sequence[Sequence[float]]) -> float:
    """Return the x that fits all columns best, by least squares; entry 0 of each is the gain without overhead."""
    from scipy.optimize import minimize_scalar

    def misses(x: float) -> float:
        found = [
            diluted(column[0], x, b) - gain
            for column in columns
            for b, gain in zip(overheads[1:], column[1:], strict=True)
        ]
        return float(np.square(found).sum())

    return float(minimize_scalar(misses, bounds=(1.0, 10.0), method="bounded", options={"xatol": 1e-9}).x)


def published_barrier() -> float:
    """Return the x that the published table implies."""
    table = published_table(TABLE)
    overheads = table.numbers("overhead").tolist()
    return implied_barrier(overheads, [table.numbers(column).tolist() for column in COLUMNS.values()])
