"""An assignment with the prices that prove it, and the check of that proof, which uses NumPy integers alone.

Proof. Let x be any assignment within the bounds, n_k its counts, m_k those of the one given, pi the prices. As every
point of the one given is at its cheapest centre under the prices, sum c[i, x(i)] + sum_k n_k pi_k is no less than its
cost + sum_k m_k pi_k. And sum_k (n_k - m_k) pi_k <= 0: a positive price is charged only where m_k is the capacity,
a negative one only where it is the lower bound. Forbidden pairs change nothing: x uses none of them, so that "cheapest"
need only hold among the centres that are allowed to the point.

Where no assignment keeps the bounds, a set of points and centres shows why, and can be counted. Two reasons cover all
cases (Hall's theorem with bounds, read off the cut that the last search for a path leaves; see Ahuja, Magnanti and
Orlin, Network Flows, 1993, section 6.7):

    places   these points may be at these centres alone, and the centres have fewer places than there are points
    points   these centres need more points by their lower bounds than there are points that may be at one of them
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.costs import in_blocks, readable
from lbopt.exceptions import CertificateError, InputError
from lbopt.model.integers import IntArray

#: Prices and costs beyond this would not be safe to add.
_LARGEST = 1 << 61


@dataclass(frozen=True, slots=True, eq=False)
class BalancedAssignment:
    """Points at centres at least total cost. All arrays are read-only.

    Attributes
    ----------
    labels
        (N,) int64, the centre of each point.
    cost
        Total in the unit of the costs; infinite where it is beyond float64.
    prices
        (K,) float64, in the same unit: what one point more would save at a full centre (negative: what one point fewer
        would save at one that is held at its lower bound). Not unique as a rule.
    scaled_cost, scaled_prices
        The same in exact integers, in units of 2**-exponent.
    exponent
        Of the scale of the costs (`scale_costs`); None where they were integers.
    capacity, lower
        (K,) int64, the bounds that were asked for.
    """

    labels: IntArray
    cost: float
    prices: NDArray[np.float64]
    scaled_cost: int
    scaled_prices: IntArray
    exponent: int | None
    capacity: IntArray
    lower: IntArray

    @property
    def counts(self) -> IntArray:
        """(K,) points at each centre."""
        return np.bincount(self.labels, minlength=self.capacity.size).astype(np.int64)

    @property
    def rounding(self) -> float:
        """By how much, at most, the real total of these labels exceeds the least one; 0 for integer costs."""
        return 0.0 if self.exponent is None else math.ldexp(self.labels.size, -self.exponent)

    def check(self, costs: Any) -> None:
        """Check against the costs that labels, prices and total prove each other, in exact integers.

        Parameters
        ----------
        costs
            As given to `balanced_assignment`: a matrix, a masked or sparse one, candidates or blocks.

        Raises
        ------
        CertificateError
            Naming the first thing that is wrong.
        """
        given = readable(costs)
        points, centres = self.labels.size, self.capacity.size
        if given.shape != (points, centres):
            raise CertificateError(
                f"the assignment is of {points} points and {centres} centres; costs are {given.shape}"
            )
        if points and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < centres:
            raise CertificateError(
                f"labels must be 0..{centres - 1}; they are {self.labels.min()}..{self.labels.max()}"
            )
        self._check_prices()
        total = 0
        for start, values, allowed in in_blocks(given):
            if self.exponent is None and values.dtype.kind not in "biu":
                raise CertificateError(f"the assignment is of integer costs; these are {values.dtype}")
            total += self._check_rows(start, values, allowed)
        if total != self.scaled_cost:
            raise CertificateError(f"the labels cost {total}; the assignment says {self.scaled_cost}")

    def _check_prices(self) -> None:
        for k, (count, price) in enumerate(zip(self.counts.tolist(), self.scaled_prices.tolist(), strict=True)):
            low, high = int(self.lower[k]), int(self.capacity[k])
            if not low <= count <= high:
                raise CertificateError(f"centre {k} holds {count} points; its bounds are {low} and {high}")
            if abs(price) > _LARGEST:
                raise CertificateError(f"the price of centre {k} is {price}; expected at most 2**61 in size")
            if price > 0 and count < high:
                raise CertificateError(f"centre {k} holds {count} of {high} points and yet has the price {price} > 0")
            if price < 0 and count > low:
                raise CertificateError(
                    f"centre {k} holds {count} points, at least {low}, and yet has the price {price} < 0"
                )

    def _check_rows(self, start: int, given: NDArray[Any], allowed: NDArray[np.bool_]) -> int:
        """Check that each of these points is at its cheapest centre of those allowed, and return what they cost."""
        scaled = given if self.exponent is None else np.rint(np.ldexp(given.astype(np.float64), self.exponent))
        if not ((scaled >= -_LARGEST) & (scaled <= _LARGEST)).all():  # NaN is neither
            raise CertificateError(
                f"a cost of points {start}..{start + len(given) - 1} is beyond the scale 2**{self.exponent}"
            )
        integers = scaled.astype(np.int64)
        here = self.labels[start : start + len(given), None]
        outside = ~np.take_along_axis(allowed, here, 1)[:, 0]
        if outside.any():
            i = int(outside.argmax())
            raise CertificateError(f"point {start + i} is at centre {here[i, 0]}, which is forbidden to it")
        priced = np.where(allowed, integers + self.scaled_prices, np.iinfo(np.int64).max)
        gap = np.take_along_axis(priced, here, 1)[:, 0] - priced.min(axis=1)
        if gap.any():
            i = int(np.flatnonzero(gap)[0])
            raise CertificateError(
                f"point {start + i} is at centre {here[i, 0]}; under the prices centre {priced[i].argmin()} "
                f"is cheaper by {gap[i]}"
            )
        return int(np.take_along_axis(integers, here, 1).sum(dtype=object))


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
