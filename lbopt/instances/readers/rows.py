"""From the rows that a reader found to a checked trace, with an account of what was left out and what was moved."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model.request_prefixes import RequestPrefixes
from lbopt.model.trace import Trace

NO_OUTPUT = "no output tokens"
MALFORMED = "malformed"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """What one reader found, in file order.

    Parameters
    ----------
    prompt, output
        int64, (N,): tokens; outputs of 0 are still here.
    arrival
        float64, (N,): seconds, in file order; None where the source has no times.
    malformed
        Rows that were skipped because they cannot be used.
    prefixes
        Blocks of the prompts; None where the source does not tell them for every row.
    """

    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    arrival: NDArray[np.float64] | None
    malformed: int = 0
    prefixes: RequestPrefixes | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A trace together with how it was read.

    Parameters
    ----------
    trace
        The requests; `trace.left_out` says which rows of the file are not here.
    format
        The format that the file was read as.
    reordered
        Rows that stood in the file after a later one, and were moved to their place in time.
    """

    trace: Trace
    format: str
    reordered: int = 0


def assemble(rows: Rows, *, source: str, name: str, format: str) -> Reading:
    """Leave out requests without output, put the others in time order, and say so.

    Parameters
    ----------
    rows
        What was read.
    source
        Name of the file in error messages.
    name, format
        Name of the trace, and the format that was read.
    """
    left_out = {}
    if rows.malformed:
        left_out[MALFORMED] = rows.malformed
    kept = rows.output > 0
    if not kept.all():
        left_out[NO_OUTPUT] = int(kept.size - np.count_nonzero(kept))
    if not kept.any():
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "no rows below the header"
        raise InputError(f"{source} holds no request that runs a decode step ({reasons}); expected at least one")
    for reason, count in left_out.items():
        logger.warning("%s: %d rows left out (%s)", source, count, reason)

    prompt, output, arrival, prefixes = rows.prompt, rows.output, rows.arrival, rows.prefixes
    if NO_OUTPUT in left_out:
        prompt, output, arrival = prompt[kept], output[kept], None if arrival is None else arrival[kept]
        prefixes = None if prefixes is None else prefixes.of_requests(kept)
    reordered = 0
    if arrival is not None:
        reordered = int(np.count_nonzero(arrival < np.maximum.accumulate(arrival)))
        if reordered:
            order = np.argsort(arrival, kind="stable")
            prompt, output, arrival = prompt[order], output[order], arrival[order]
            prefixes = None if prefixes is None else prefixes.of_requests(order)
            logger.warning("%s: %d rows were out of time order; sorted by arrival", source, reordered)
    for column in (prompt, output):
        column.flags.writeable = False  # the trace keeps them as they are
    trace = Trace(prompt=prompt, output=output, arrival=arrival, name=name, left_out=left_out, prefixes=prefixes)
    return Reading(trace=trace, format=format, reordered=reordered)
