"""A router's log is of certain requests in their order; over any others its rows would be somebody else's.

A log by steps would soon contradict the run, in words that lead nowhere; one by seconds would be followed to the end.
"""

from __future__ import annotations

from collections.abc import Iterable

from lbopt.exceptions import InputError
from lbopt.policies import Policy
from lbopt.policies.replay import Replay
from lbopt.studies.requests import RequestSource


def refuse_logs_of_other_requests(source: RequestSource, policies: Iterable[Policy], *, num_seeds: int = 1) -> None:
    """Refuse to replay a log where the requests that are run are not those of the file in their order."""
    for log in (policy.name for policy in policies if isinstance(policy, Replay)):
        if source.is_family:
            if num_seeds > 1:
                raise InputError(f"'{log}' is a log of the requests of one seed of '{source.trace}'; use --seeds 1")
        elif not source.in_order(num_seeds=num_seeds):
            raise InputError(
                f"'{log}' is a log of the requests of '{source.trace}' in their order, and here they are drawn with "
                "replacement; use --seeds 1 and --draw order"
            )
