"""Why no assignment keeps the bounds: a set of points and centres that anybody can count.

Two reasons cover all cases (Hall's theorem with bounds, read off the cut that the last search for a path leaves; see
Ahuja, Magnanti and Orlin, Network Flows, 1993, section 6.7):

    places   these points may be at these centres alone, and the centres have fewer places than there are points
    points   these centres need more points by their lower bounds than there are points that may be at one of them
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lbopt.assignment.candidates import readable
from lbopt.assignment.cost_rows import in_blocks
from lbopt.exceptions import CertificateError, InputError
from lbopt.model.integers import IntArray

#: So many numbers of a set are named in a message.
_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Shortage:
    """A proof that no assignment keeps the bounds.

    Attributes
    ----------
    of
        "places" or "points", as above.
    points, centres
        int64, ascending: the two sets.
    available, needed
        Places of the centres and number of the points; or number of the points and sum of the lower bounds.
    """

    of: str
    points: IntArray
    centres: IntArray
    available: int
    needed: int

    def __str__(self) -> str:
        points, centres = _named("point", self.points), _named("centre", self.centres)
        if self.of == "points":
            may = f"{points} alone may be there" if self.points.size else "no point may be there"
            verb = "needs" if self.centres.size == 1 else "need"
            bounds = "its lower bound" if self.centres.size == 1 else "their lower bounds"
            return f"{centres} {verb} {self.needed} points by {bounds}, and {may}: {self._missing()} too few"
        if not self.centres.size:
            return f"{points} may be at no centre"
        return (
            f"{points} ({self.needed} in all) may be at {centres} alone, with {self.available} places in all: "
            f"{self._missing()} too few"
        )

    def _missing(self) -> int:
        return self.needed - self.available

    def check(self, costs: Any, capacity: Any, lower: Any = None) -> None:
        """Check the proof against costs and bounds, without any search.

        Parameters
        ----------
        costs
            As given to `balanced_assignment`.
        capacity, lower
            (K,) integers, or one for all.

        Raises
        ------
        CertificateError
            Naming the first thing that is wrong.
        """
        given = readable(costs)
        inside = np.zeros(given.shape[1], dtype=np.bool_)
        inside[self.centres] = True
        for begin, _, allowed in in_blocks(given):
            these = begin + np.arange(len(allowed))
            named = np.isin(these, self.points)
            if self.of == "places":
                away = allowed[:, ~inside].any(axis=1) & named
            else:
                away = allowed[:, inside].any(axis=1) & ~named
            if away.any():
                i = int(these[away.argmax()])
                where = "outside of" if self.of == "places" else "among"
                raise CertificateError(f"point {i} may be at a centre {where} those that the shortage names")
        bounds = capacity if self.of == "places" else lower
        each = np.broadcast_to(np.asarray(0 if bounds is None else bounds, dtype=np.int64), inside.shape)
        counted = sum(each[self.centres].tolist())
        short = counted < self.points.size if self.of == "places" else counted > self.points.size
        if not short:
            raise CertificateError(
                f"the shortage names {self.points.size} points, and its centres are bounded by {counted}: none is short"
            )


class NoAssignmentError(InputError):
    """No assignment keeps the bounds; `shortage` proves it."""

    def __init__(self, shortage: Shortage) -> None:
        super().__init__(
            f"no assignment keeps the bounds: {shortage}; allow more pairs, or change "
            f"{'capacity' if shortage.of == 'places' else 'lower'}"
        )
        self.shortage = shortage


def _named(noun: str, numbers: IntArray) -> str:
    some = [str(number) for number in numbers[:_NAMED].tolist()]
    if numbers.size > _NAMED:
        return f"{noun}s {', '.join(some)} and {numbers.size - _NAMED} more"
    if numbers.size == 1:
        return f"{noun} {some[0]}"
    return f"{noun}s {', '.join(some[:-1])} and {some[-1]}" if some else f"no {noun}"
