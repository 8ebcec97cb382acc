"""The rule that wrote the log, named or recognised by its choices, and the check that it is judged to change nothing.

A request that starts alone at a boundary is one decision. A rule is recognised where nine of ten decisions are its own:
the next worker in turn, one of the workers with the fewest requests, or the one with the fewest tokens.

The check: that rule, run again on its own log, must not be judged faster or slower than the log. Where it is, the model
of this fleet is wrong by more than its intervals say, and so is what it says of any other rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbopt.policies import make_policy
from lbopt.studies.audit.happened import loads_before
from lbopt.studies.audit.law_from_log import Reconstruction
from lbopt.studies.audit.rules import RuleRun

#: Share of decisions that are a rule's own, and the fewest decisions.
_OWN, _FEWEST = 0.9, 50
#: Loads closer than this share are the same: the log tells them by interpolation.
_SAME_LOAD = 0.01


def recognised(found: Reconstruction) -> str | None:
    """Return the rule whose choices the log shows, or None."""
    attempts, worker = found.attempts, found.log.worker
    alone = np.flatnonzero((np.bincount(attempts.first)[attempts.first] == 1) & (attempts.last > attempts.first))
    if alone.size < _FEWEST or len(found.log.workers) < 2:
        return None
    order = worker[np.argsort(found.log.arrival, kind="stable")]
    loads, running = loads_before(found, [int(place) for place in attempts.first[alone]])
    chosen = worker[alone], np.arange(alone.size)
    shares = {
        "round-robin": float(np.mean(np.diff(order) % len(found.log.workers) == 1)),
        "jsq-load:admission=immediate": float(np.mean(loads[chosen] <= loads.min(axis=0) * (1 + _SAME_LOAD))),
        "jsq": float(np.mean(running[chosen] == running.min(axis=0))),
    }
    best = max(shares, key=lambda rule: shares[rule])
    return best if shares[best] >= _OWN else None


def spread_of_the_log(logged: str | None, runs: Sequence[RuleRun]) -> tuple[float, float]:
    """Return by how much runs of the rule that wrote the log differ; of an unknown one as of the most erratic rule.

    Parameters
    ----------
    runs
        Each rule's run.
    """
    own = [run.spread for run in runs if is_of(run, logged)] or [run.spread for run in runs] or [(0.0, 0.0)]
    return max(one[0] for one in own), max(one[1] for one in own)


def is_of(run: RuleRun, logged: str | None) -> bool:
    """Return whether a run is that of the rule that wrote the log."""
    return logged is not None and run.rule == make_policy(logged).name


def failed_check(logged: str | None, runs: Sequence[RuleRun]) -> str | None:
    """Return what is wrong where the rule that wrote the log is judged to change it."""
    for run in runs:
        if is_of(run, logged) and not run.change_interval[0] <= 0 <= run.change_interval[1]:
            low, high = (f"{100 * end:+.1f} %".replace("-", "\u2212") for end in run.change_interval)
            return (
                f"the rule that wrote the log, {run.rule}, run again on its own log, is judged to change the time per "
                f"token by {low} to {high}, and should change nothing: the model misses this fleet by more than its "
                "intervals say. Look for what the log does not show (prefill between steps, slow workers, times that "
                "are written late), or add accept_misfit=yes."
            )
    return None
