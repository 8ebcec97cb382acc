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
from lbopt.instances.readers.values import RowFault, field_of, seconds

logger = logging.getLogger(__name__)


class Arrivals:
    """Times that come row by row, NaN where a row tells none.

    Parameters
    ----------
    name, unit, latest
        Column of the times, the unit that errors name, and the largest number.
    """

    def __init__(self, name: str, unit: str, latest: float) -> None:
        self.times = array("d")
        self.later = 0
        self._name, self._unit, self._latest = name, unit, latest
        self._begun: set[str] = set()
        self._missing: tuple[int, str] | None = None
        self._untimed = array("q")

    def add(self, place: int, record: Any) -> None:
        """Take the time of a record; one without it counts as a later turn, or as a row that tells none."""
        stamp = record.get(self._name)
        if stamp is not None:
            time = seconds(self._name, stamp, unit=self._unit, latest=self._latest)
        delay = record.get("delay", record.get("delay_ms"))
        if delay is not None:
            delay = seconds("delay", delay, unit="ms")
        session = record.get("session_id")
        begun = session is not None and str(session) in self._begun
        if session is not None:
            self._begun.add(str(session))
        if record.get("wait_for") or delay or (stamp is None and (delay is not None or begun)):
            self.later += 1
        elif stamp is None:
            self._untimed.append(len(self.times))
            if self._missing is None:
                self._missing = place, _what_is_missing(record, self._name)
        self.times.append(np.nan if stamp is None else time)

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
        return np.array(self.times, dtype=np.float64), untimed


def _what_is_missing(record: Any, name: str) -> str:
    try:
        field_of(record, name)
    except RowFault as fault:
        return str(fault)
    return f"{name} is null"
