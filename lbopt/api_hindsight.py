"""`in_hindsight`, which the flat namespace has beside the functions of `lbopt.api`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lbopt.api import config_of, several
from lbopt.studies.hindsight import HindsightConfig, HindsightOutcome, run_hindsight
from lbopt.studies.hindsight.config import DEFAULT_POLICIES
from lbopt.studies.progress import Progress


def in_hindsight(
    trace: str | Path = "burstgpt-like",
    *,
    policies: Sequence[str] | None = None,
    workers: int = 8,
    slots: int = 72,
    requests: int | None = None,
    effort: int = 20,
    time_limit: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **more: Any,
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
    effort
        Exchanges of chains that the search tries for each step of a timetable, and, without a limit of time, seconds
        of the exact search of a small run (at most 100 requests and 4 slots a worker).
    time_limit
        Seconds of search for each timetable; None for no limit.
    seed
        Of the requests, the runs and the search.
    progress
        Shows progress; None shows nothing.
    **more
        Further fields of `Scenario` or `RequestSource` by name, such as ``arrivals="trace"`` or ``load=0.95``.

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
    words = {"workers": workers, "slots": slots, "requests": requests, "effort": effort, "time_limit": time_limit}
    return run_hindsight(config_of(HindsightConfig, more, trace=trace, policies=chosen, seed=seed, **words), progress)
