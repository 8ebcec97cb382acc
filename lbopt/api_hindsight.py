"""`in_hindsight`, which the flat namespace has beside the functions of `lbopt.api`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lbopt.api import config_of, several
from lbopt.studies.hindsight import HindsightConfig, HindsightOutcome, run_hindsight
from lbopt.studies.hindsight.study import DEFAULT_POLICIES
from lbopt.studies.progress import Progress


def in_hindsight(
    trace: str | Path = "burstgpt-like",
    *,
    policies: Sequence[str] | None = None,
    workers: int = 8,
    slots: int = 72,
    requests: int | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> HindsightOutcome:
    """Say how far rules were from what was possible with all lengths known.

    Parameters
    ----------
    trace
        A trace file, the name of a fetched public trace, or a seeded family.
    policies
        Rules to judge, as `make_policy` reads them; None takes the default ones.
    workers, slots
        Workers, and slots of each.
    requests
        Number of requests; None takes all of a file, or 10,000 of a family.
    progress
        Shows progress; None shows nothing.
    **fields
        Further fields of `HindsightConfig`, `Scenario` or `RequestSource` by name, such as ``arrivals="trace"``:
        ``effort`` is the exchanges of chains that the search tries for each step of a timetable (20), and, without a
        limit of time, seconds of the exact search of a small run (at most 100 requests and 4 slots a worker);
        ``time_limit`` the seconds of search for each timetable; ``seed`` that of the requests, the runs and the search.

    Raises
    ------
    InputError
        If a name or value is unknown.

    Examples
    --------
    >>> import lbopt
    >>> outcome = lbopt.in_hindsight(policies=["jsq", "auto"], requests=200, workers=3, slots=4, effort=2)
    >>> [one.rule for one in outcome.rules]
    ['jsq', 'auto']
    >>> all(1 - 1e-9 <= one.ratio.low <= one.ratio.high for one in outcome.rules)
    True
    """
    chosen = several("policies", DEFAULT_POLICIES if policies is None else policies)
    words = {"trace": trace, "policies": chosen, "workers": workers, "slots": slots, "requests": requests}
    return run_hindsight(config_of(HindsightConfig, fields, **words), progress)
