"""What no rule can pass: the least seconds in which a fleet can do a whole trace, to compare whole runs with.

A request of prompt s and output o shows a barrier the sizes s, s + 1, ..., s + o - 1, on whichever worker it runs. So
the token-steps of a whole run, W = sum over requests of (s o + o (o - 1) / 2), do not depend on the rule, and as the
heaviest worker is never below the mean, all steps together take at least

    fixed K + per_token W / G,    K = the larger of ceil(sum of o / (G B)) and the longest output.

What requests cost by their number counts with the cheapest share of a request that the law knows. Where workers differ
in speed, the G of the own parts is the number of workers of speed one that do as much; pre-emption only adds work. Time
in which nothing runs is not counted.
Source: the identity is that of BF-IO's proof of Theorem 1 summed over a run; the bound is lbopt's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.model import Trace
from lbopt.simulator.setting import SimulationSetting


def least_seconds(trace: Trace, setting: SimulationSetting) -> float | None:
    """Return the least seconds that the steps of a whole run over `trace` take, whatever the rule; None with drafts.

    Parameters
    ----------
    trace
        The requests.
    setting
        Fleet and step-time law.
    """
    form = setting.form_for(trace)
    detail = setting.detail
    if detail is not None and detail.draft:
        return None  # how many steps a request takes is a matter of chance
    G, slots = setting.fleet.num_workers, setting.num_slots
    equals = G + sum(1 / factor - 1 for _, factor in (() if detail is None else detail.slow))
    prompt, output = (np.array(lengths, dtype=object) for lengths in (trace.prompt, trace.output))  # sums beyond int64
    work = int((prompt * output + output * (output - 1) // 2).sum())
    tokens = int(output.sum())
    steps = max(-(-tokens // slots), int(output.max()))
    together = _least_of_count(form.of_active, steps, tokens)
    of_each = _least_of_count(form.of_running, steps, tokens / equals)
    alone = form.per_token * (work / equals) + of_each
    return form.fixed * steps + alone + form.per_mean_token * (work / G) + together


def _least_of_count(table: NDArray[np.float64], steps: int, requests: float) -> float:
    """Return the least that steps cost by the number of requests: `requests` in all, over at least `steps` steps."""
    if table.size < 2:
        return 0.0
    share = float((table[1:] / np.arange(1, table.size)).min())
    return max(steps * float(table[1:].min()), requests * share)
