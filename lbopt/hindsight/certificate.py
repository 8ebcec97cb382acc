"""What a lower bound on the sum of barriers follows from: disjoint windows of steps, each with a bound of its own.

The sum of the barriers over a run is at least the sum of its least values over disjoint windows of steps, each taken by
itself. So a certificate is a list of windows that do not overlap, with a bound for each and the kind of reason:

- ``steps``: the bounds of the single steps of the window (`lbopt.hindsight.bounds`), added up;
- ``covers``: of all placements of the requests that run in the window, cut off at its ends, none is below the bound;
- ``surplus``: with the prices given for these requests, no set that one worker can run costs less than the bound asks
  for (`lbopt.hindsight.search_surplus` has the inequality).

A certificate names no search. `lbopt.hindsight.check` recomputes all kinds by itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.hindsight.timetable import Timetable

KINDS = ("steps", "covers", "surplus")


@dataclass(frozen=True, slots=True)
class WindowBound:
    """A bound on the barriers of the steps from `first` to before `last`, taken by themselves.

    Parameters
    ----------
    first, last
        First step, and the step after the last one.
    bound
        Sum of barriers, in tokens.
    kind
        One of `KINDS`.
    cuts
        For ``surplus``: the steps, counted from `first`, at which time is cut, ascending, both ends included.
    prices
        For ``surplus``: the price of each request that runs in the window, in the order of the timetable. Its unit is a
        token divided by twice the least common multiple of the numbers of workers that can be above a floor.
    """

    first: int
    last: int
    bound: int
    kind: str
    cuts: tuple[int, ...] = ()
    prices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundCertificate:
    """Windows whose bounds add up to a lower bound for a timetable, which `timetable` is the digest of."""

    timetable: str
    windows: tuple[WindowBound, ...]

    @property
    def bound(self) -> int:
        """Return the sum of the windows' bounds."""
        return sum(window.bound for window in self.windows)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON can hold it."""
        windows = [
            [w.first, w.last, w.bound, w.kind, *([list(w.cuts), list(w.prices)] if w.kind == "surplus" else [])]
            for w in self.windows
        ]
        return {"timetable": self.timetable, "windows": windows}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BoundCertificate:
        """Return the certificate that `to_dict` gave; `lbopt.hindsight.check` says whether its values are true, or any.

        Raises
        ------
        CertificateError
            Where this is no timetable with rows of windows.
        """
        try:
            windows = tuple(WindowBound(*row[:4], *map(tuple, row[4:])) for row in data["windows"])
            return cls(data["timetable"], windows)
        except (KeyError, TypeError) as error:
            raise CertificateError(
                "a certificate of a run holds 'timetable' and rows of first step, step after the last, bound and kind "
                f"in 'windows'; found {type(error).__name__}: {error}"
            ) from None


def digest(timetable: Timetable) -> str:
    """Return SHA-256 over the fleet and the rows of a timetable, in hex digits."""
    rows = [timetable.start.tolist(), timetable.prompt.tolist(), timetable.output.tolist()]
    text = repr((timetable.num_workers, timetable.slots_per_worker, rows))
    return hashlib.sha256(text.encode()).hexdigest()


def clip(timetable: Timetable, first: int, last: int) -> Timetable:
    """Return the part of a run between two steps: the requests that run there, cut off at its ends.

    Parameters
    ----------
    timetable
        The run.
    first, last
        First step of the part, and the step after its last one.
    """
    runs = (timetable.start < last) & (timetable.end > first)
    start = timetable.start[runs].clip(min=first)
    grown = timetable.prompt[runs] + start - timetable.start[runs]
    output = timetable.end[runs].clip(max=last) - start
    return Timetable(timetable.num_workers, timetable.slots_per_worker, start - first, grown, output)
