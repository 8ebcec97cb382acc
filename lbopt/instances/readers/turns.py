"""Rows without a time of arrival: later turns of a conversation, which come after an answer, or lengths alone.

In multi-turn traces of AIPerf and Dynamo (Mooncake's form with ``session_id``) the first turn of a session has
``timestamp`` and a later one ``delay``, the milliseconds from the answer before it to its own arrival. A row of
Dynamo's agentic form waits for the requests in ``wait_for``. When such a request comes depends on the fleet, so that a
file with one of them has no times. Sources: ``MooncakeTrace`` in aiperf/dataset/loader/models.py
(github.com/ai-dynamo/aiperf); ``MooncakeRow`` and ``Trace::from_mooncake`` in lib/mocker/src/loadgen/trace.rs
(github.com/ai-dynamo/dynamo).
"""

from __future__ import annotations

import logging
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import listed, shown
from lbopt.instances.readers.values import BAD, DateColumn, RowFault, relative_seconds, seconds

#: Fields of a row that may be a later turn.
_OF_TURNS = {"session_id", "delay", "delay_ms", "wait_for"}

logger = logging.getLogger(__name__)


class Arrivals:
    """Times that come row by row, NaN where a row tells none.

    Parameters
    ----------
    name, unit, latest
        Column of the times, the unit that errors name, and the largest number.
    turns
        Whether a row may be a later turn.
    """

    def __init__(self, name: str, unit: str, latest: float, *, turns: bool) -> None:
        self.times = array("d")
        self.later = 0
        self.dates: DateColumn | None = None
        self._name, self._unit, self._latest, self._turns = name, unit, latest, turns
        self._begun: set[str] = set()
        self._missing: tuple[int, str] | None = None
        self._untimed = array("q")

    def add(self, place: int, record: Any) -> None:
        """Take the time of a record; one without it counts as a later turn, or as a row that tells none."""
        stamp = record.get(self._name)
        if self.dates is None and not isinstance(stamp, str | None):
            time = seconds(self._name, stamp, unit=self._unit, latest=self._latest)
        else:
            time = np.nan if stamp is None else self._time(place, stamp)
        told = self._turns and (stamp is None or not _OF_TURNS.isdisjoint(record))
        if told and self._is_later(record, timed=stamp is not None):
            self.later += 1
        elif stamp is None:
            self._untimed.append(len(self.times))
            if self._missing is None:
                name = self._name
                self._missing = (
                    place,
                    f"{name} is null" if name in record else f"no field {name!r}; it has {listed(record)}",
                )
        self.times.append(time)

    def _time(self, place: int, stamp: Any) -> float:
        """Return a number; of a date-time 0, its text is kept. The first time says which of them the file has."""
        if self.dates is None and (len(self.times) > len(self._untimed) + self.later or not _is_date(stamp)):
            return seconds(self._name, stamp, unit=self._unit, latest=self._latest)
        if not _is_date(stamp):
            raise RowFault(f"{self._name} is {shown(stamp)}; expected a date-time, as in the rows before")
        if self.dates is None:
            self.dates = DateColumn()
        self.dates.add(place, stamp.strip())
        return 0.0

    def _is_later(self, record: Any, *, timed: bool) -> bool:
        delay = record.get("delay", record.get("delay_ms"))
        if delay is not None:
            delay = seconds("delay", delay, unit="ms")
        session = record.get("session_id")
        begun = session is not None and str(session) in self._begun
        if session is not None:
            self._begun.add(str(session))
        return bool(record.get("wait_for") or delay or (not timed and (delay is not None or begun)))

    def settled(self, where: str, source: str, *, skip_malformed: bool) -> tuple[NDArray[np.float64] | None, Any]:
        """Return the times, or None where turns come after an answer; and the places of rows to leave out.

        Raises
        ------
        InputError
            Where a row tells no time; it names the first.
        """
        untimed = np.array(self._untimed, dtype=np.int64)
        if self.later:
            of = f" of {len(self._begun):,} sessions" if self._begun else ""
            logger.warning(
                "%s: %d of %d requests%s come after an answer, at times that depend on the fleet; read without times, "
                "for --arrivals closed",
                *(source, self.later, len(self.times), of),
            )
            return None, untimed[:0]
        if self._missing is not None and not skip_malformed:
            place, what = self._missing
            raise InputError(
                f"{source}, {where.format(place)}: {what}; read all without times (--format lengths, for --arrivals "
                "closed), or leave such rows out (--skip-malformed)"
            )
        times = np.array(self.times, dtype=np.float64)
        if self.dates is not None:
            found, timed = self.dates.nanoseconds(), np.flatnonzero(~np.isnan(times))
            if self.dates.first_bad is not None and not skip_malformed:
                place, text = self.dates.first_bad
                raise InputError(
                    f"{source}, {where.format(place)}: {self._name} is {shown(text)}, which is no date-time"
                )
            good = found != BAD
            times[timed[good]] = relative_seconds(found[good])
            untimed = np.concatenate([untimed, timed[~good]])
        return times, untimed


def _is_date(stamp: Any) -> bool:
    return isinstance(stamp, str) and ":" in stamp
