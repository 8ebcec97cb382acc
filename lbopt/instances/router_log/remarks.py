"""Notes about a log that is read well, and that its reader should know before believing a number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.router_log.counts import read_counts
from lbopt.instances.router_log.guess import Chooser
from lbopt.instances.router_log.plan import Plan
from lbopt.instances.router_log.times import Times


def remarks(
    chooser: Chooser, plan: Plan, times: Times, kept: NDArray[np.bool_], prompt: NDArray[np.int64], workers: int
) -> list[str]:
    """Return sentences about waits, clocks, caches and models.

    Parameters
    ----------
    chooser
        The table and its columns.
    plan
        The columns of the times.
    times
        The times.
    kept
        bool (N,), rows that are in the log.
    prompt
        int64 (N,), tokens of prompts as written.
    workers
        How many there are.
    """
    notes = []
    if plan.arrival_is_start:
        notes.append("the log has no arrivals; the start of decoding stands for them, and waits cannot be judged")
    if plan.after_first_token:
        notes.append("decoding starts at the first token here, so that waits include prefill")
    if workers == 1:
        notes.append(
            "one worker served all requests; if it is a load balancer, name the column of the engines behind it"
        )
    if kept.sum() < len(chooser.table) / 2:
        notes.append(f"less than half of the rows are in the log: {int(kept.sum()):,} of {len(chooser.table):,}")
    stamps = np.concatenate([times.start[kept], times.finish[kept]])
    stamps = stamps[~np.isnan(stamps)]
    from_clocks = stamps.size > 10 and plan.end == "finish" and plan.begin in ("start", "first_token")
    if from_clocks and np.all(np.abs(stamps - np.rint(stamps)) < 1e-9):
        notes.append("times are whole seconds; shorter waits and steps cannot be judged")
    if cached := chooser.find("cached"):
        hits, _ = read_counts(chooser, cached)
        total = int(prompt[kept].sum())
        if np.any(hits[kept] > prompt[kept]):
            notes.append(
                f"column '{cached.name}' exceeds the prompt in some rows; prompts may be without cached tokens"
            )
        elif total:
            notes.append(f"{100 * int(hits[kept].sum()) / total:.0f} % of the prompt tokens were cached")
    if model := chooser.find("model"):
        count = len(set(chooser.texts(model)) - {""})
        if count > 1:
            notes.append(f"the log holds requests of {count:,} models; times of a token may differ between them")
    return notes
