"""The rule that wrote the log, named or recognised by its choices, and the check that it is judged to change nothing.

A request that starts alone at a boundary is one decision. A rule is recognised where nine of ten decisions are its own:
the next worker in turn, one of the workers with the fewest requests, or the one with the fewest tokens.

The check: that rule, run again on its own log, must not be judged faster or slower than the log. Where it is, the model
of this fleet is wrong by more than its intervals say, and so is what it says of any other rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lbopt.model import Eligibility
from lbopt.policies import make_policy
from lbopt.studies.audit.happened import loads_before
from lbopt.studies.audit.law_from_log import Reconstruction
from lbopt.studies.audit.rules import RuleRun

#: Share of decisions that are a rule's own, and the fewest decisions.
_OWN, _FEWEST = 0.9, 50
#: Loads closer than this share are the same: the log tells them by interpolation.
_SAME_LOAD = 0.01


def recognised(found: Reconstruction, served: Eligibility | None = None) -> str | None:
    """Return the rule whose choices the log shows, or None.

    Parameters
    ----------
    served
        Which workers serve each request: a rule chooses among these, and takes the turns of each kind by itself.
    """
    attempts, worker = found.attempts, found.log.worker
    if served is None:
        served = Eligibility(kind=worker * 0, allowed=np.ones((1, len(found.log.workers)), dtype=np.bool_))
    chooses = served.allowed.sum(axis=1)[served.kind] > 1
    by_itself = (np.bincount(attempts.first)[attempts.first] == 1) & (attempts.last > attempts.first)
    alone = np.flatnonzero(by_itself & chooses)
    if alone.size < _FEWEST or len(found.log.workers) < 2:
        return None
    loads, running = loads_before(found, [int(place) for place in attempts.first[alone]])
    chosen, allowed = (worker[alone], np.arange(alone.size)), served.allowed[served.kind[alone]].T
    lightest, fewest = (np.where(allowed, seen, 2**62).min(axis=0) for seen in (loads, running))
    shares = {
        "round-robin": _in_turn(worker[(order := np.argsort(found.log.arrival, kind="stable"))], served, order),
        "jsq-load:admission=immediate": float(np.mean(loads[chosen] <= lightest * (1 + _SAME_LOAD))),
        "jsq": float(np.mean(running[chosen] == fewest)),
    }
    best = max(shares, key=lambda rule: shares[rule])
    return best if shares[best] >= _OWN else None


def _in_turn(worker: NDArray[np.int64], served: Eligibility, order: NDArray[np.int64]) -> float:
    """Return the share of requests that the next worker got of those that serve their kind, where these are several.

    Parameters
    ----------
    worker
        Of each request, in order of arrival.
    order
        The requests' numbers in that order.
    """
    right, kind = [], served.kind[order]
    for k, allowed in enumerate(served.allowed):
        if allowed.sum() > 1:
            place = (np.cumsum(allowed) - 1)[worker[kind == k]]
            right.append(np.diff(place) % allowed.sum() == 1)
    return float(np.mean(np.concatenate(right)))


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
