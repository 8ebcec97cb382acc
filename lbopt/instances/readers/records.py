"""A row of a file, and what one reader found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.readers.formats import Columns
from lbopt.instances.readers.values import is_blank, tokens
from lbopt.model.trace import RequestPrefixes

#: A row: the number of its line or its place in a list, and its fields, by name or in the order of the header, or what
#: is wrong with it.
Record = tuple[int, Any]

#: How the place of a row is called.
LINE = "line {}"

#: A note about a file whose last line may lack its end.
OPEN_END = (
    "the last line has no end: if the file was cut off, its last number is short or lost; fetch it again, or end it"
)

#: What stands for the unit of date-times.
DATES = "date-time"


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
    unit
        Of the times as they stand in the file: s, ms, us or ns; empty where there are none, or date-times.
    later
        Requests that come after an answer, so that the file has no times.
    left_out
        Why other rows are not here, and how many.
    notes
        Sentences about what of the file was not read, or may be wrong.
    """

    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    arrival: NDArray[np.float64] | None
    malformed: int = 0
    prefixes: RequestPrefixes | None = None
    unit: str = ""
    later: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def lengths(names: Columns, request: Any, answer: Any) -> tuple[int, int]:
    """Return the tokens of the prompt and of the output; a blank output is one of 0 tokens."""
    return tokens(names.prompt, request), 0 if is_blank(answer) else tokens(names.output, answer)
