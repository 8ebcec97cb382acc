"""Where the seconds of a step go: by term, and by what binds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.step_time.roofline_terms import RooflineTerms

#: What can bind a step.
KINDS = ("memory", "compute", "collective", "overhead")


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """Seconds of steps in parts.

    Parameters
    ----------
    terms
        float64 (...) of each of attention, weights, experts, reductions, exchange and overhead; they sum to the step.
        Where a term is a worker's own, it is that of the worker for whom all wait (the first of several).
    by_kind
        float64 (...) of each of `KINDS`; they sum to the step as well. Attention, weights and experts are memory where
        reading takes longer than computing, else compute.
    """

    terms: dict[str, NDArray[np.float64]]
    by_kind: dict[str, NDArray[np.float64]]

    @property
    def seconds(self) -> NDArray[np.float64]:
        """float64 (...), the whole step."""
        total: NDArray[np.float64] = np.sum(list(self.terms.values()), axis=0)
        return total

    @property
    def kind(self) -> NDArray[np.str_]:
        """str (...), the kind with the largest share of the step."""
        largest = np.argmax(np.stack([self.by_kind[kind] for kind in KINDS]), axis=0)
        names: NDArray[np.str_] = np.array(KINDS)[largest]
        return names


def break_down(terms: RooflineTerms, loads: NDArray[Any], running: NDArray[np.int64]) -> Breakdown:
    """Take steps apart; `loads` and `running` are (..., G)."""
    form = terms.form()
    own = form.per_token * loads + form.of_running[running]
    pacemaker = own.argmax(axis=-1)[..., None]
    load = np.take_along_axis(loads, pacemaker, axis=-1)[..., 0]
    requests = np.take_along_axis(running, pacemaker, axis=-1)[..., 0]
    met = running.sum(axis=-1) if terms.together else requests
    read_and_computed = {
        "attention": tuple(part * load for part in terms.attention),
        "weights": tuple(part[requests] for part in terms.weights),
        "experts": tuple(part[met] for part in terms.experts),
    }
    sent = {
        "reductions": terms.reductions[requests],
        "exchange": terms.exchange[met] if terms.together else np.zeros(load.shape),
    }
    overhead = np.full(load.shape, terms.overhead)
    by_kind = {kind: np.zeros(load.shape) for kind in KINDS}
    parts: dict[str, NDArray[np.float64]] = {}
    for name, (reading, computing) in read_and_computed.items():
        parts[name] = np.maximum(reading, computing)
        by_kind["memory"] += np.where(reading >= computing, reading, 0.0)
        by_kind["compute"] += np.where(reading >= computing, 0.0, computing)
    by_kind["collective"] += sent["reductions"] + sent["exchange"]
    by_kind["overhead"] += overhead
    return Breakdown(parts | sent | {"overhead": overhead}, by_kind)


def kinds_of(names: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return the places of kinds in `KINDS`."""
    order = np.argsort(KINDS)
    places: NDArray[np.int64] = order[np.searchsorted(np.array(KINDS)[order], names)]
    return places
