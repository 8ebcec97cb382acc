"""How many workers a rule needs to serve the log's requests as fast as the log did: what a gain is worth in GPUs.

Time per token is not GPU time. A faster rule is worth money where the same requests are served by fewer workers, no
slower and without longer waits. So the rule is run with fewer and fewer of them, by bisection.
"""

from __future__ import annotations

import math

from lbopt.studies.audit.course import Floats
from lbopt.studies.audit.law_from_log import LawFromLog
from lbopt.studies.audit.rules import Requests, RuleRun, run_rule, setting_of

#: Runs of each size; fewer than for a table, since sizes differ by more than chance.
_TIMES = 3


def fewest_workers(
    rule: str,
    requests: Requests,
    law: LawFromLog,
    fleet: tuple[int, int],
    logged: tuple[RuleRun, Floats, Floats],
    *,
    step: float,
    more_slots: bool,
    seed: int = 0,
) -> int:
    """Return the fewest workers, at least half of them, with which a rule is no slower than the log.

    Parameters
    ----------
    rule
        As `make_policy` reads it.
    requests, law
        The log's.
    fleet
        Workers and slots.
    logged
        The log's own run, and of each request seconds per token and the wait, seconds, (M,) each.
    step
        By so much a wait may grow, seconds.
    more_slots
        Whether fewer workers may have more slots each, because the log does not say how many there are.
    seed
        Of the runs.
    """
    workers, slots = fleet
    before, *each = logged

    def is_enough(count: int) -> bool:
        room = math.ceil(slots * workers / count) if more_slots else slots
        setting = setting_of(count, room, law.fixed, law.per_token)
        run = run_rule(rule, requests, setting, (each[0], each[1]), seed, _TIMES)
        return (
            run.tpot_mean <= before.tpot_mean
            and run.wait_mean <= before.wait_mean + step
            and run.wait_p99 <= before.wait_p99 + step
        )

    enough, short = workers, math.ceil(workers / 2) - 1
    while enough - short > 1:
        middle = (enough + short) // 2
        if middle > 0 and is_enough(middle):
            enough = middle
        else:
            short = middle
    return enough
