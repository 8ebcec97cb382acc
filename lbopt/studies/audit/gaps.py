"""How far single decisions of the log were from the best: the explanation, not the headline.

Placing the requests of one step best is not what saves time over a run; it says whether the rule is at fault, or the
requests. A sampled decision is the loads and free slots just before some requests started, and these requests. The best
placement of the same requests is found exactly.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lbopt.model import StepProblem
from lbopt.solvers import solve
from lbopt.studies.audit.reconstruction import Reconstruction
from lbopt.studies.progress import Progress, Silent


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStepGaps:
    """Sampled decisions; loads in tokens.

    Parameters
    ----------
    sampled, proved
        Decisions that were sampled, and those whose best placement is proved.
    best
        Decisions in which the log's own placement was as good as the best.
    logged, optimum
        Mean imbalance G max - sum after the decision, as logged and at best, over proved decisions.
    seconds
        Mean time that the best placement saves in the step after it.
    """

    sampled: int
    proved: int
    best: int
    logged: float
    optimum: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def one_step_gaps(
    found: Reconstruction,
    slots: int,
    count: int,
    time_limit: float,
    seed: int = 0,
    progress: Progress | None = None,
) -> OneStepGaps:
    """Sample decisions of the log, and solve them.

    Parameters
    ----------
    found
        The log's fleet.
    slots
        Slots of a worker.
    count
        Decisions.
    time_limit
        Seconds for each.
    seed
        Of the sample.
    progress
        Shows progress.
    """
    shown = progress or Silent()
    sample = _sample(found, count, seed)
    loads, running = _before(found, sample)
    shown.begin("decisions", len(sample))
    logged, optimum = [], []
    for column, boundary in enumerate(sample):
        mine = np.flatnonzero(found.attempts.first == boundary)
        sizes, placed = found.log.prompt[mine], found.log.worker[mine]
        free = np.maximum(slots - running[:, column], np.bincount(placed, minlength=running.shape[0]))
        problem = StepProblem.now(loads[:, column].tolist(), free.tolist(), sizes.tolist())
        result = solve(problem, time_limit=time_limit)
        after = loads[:, column] + np.bincount(placed, sizes, running.shape[0]).astype(np.int64)
        if result.status == "optimal" and result.objective is not None:
            logged.append(int(after.size * after.max() - after.sum()))
            optimum.append(int(result.objective))
        shown.advance()
    before, best = np.array(logged, dtype=np.float64), np.array(optimum, dtype=np.float64)
    saved = (before - best) / len(found.log.workers) * found.law.per_token
    return OneStepGaps(
        sampled=len(sample),
        proved=len(logged),
        best=int((before == best).sum()),
        logged=float(before.mean()) if logged else float("nan"),
        optimum=float(best.mean()) if logged else float("nan"),
        seconds=float(saved.mean()) if logged else float("nan"),
    )


def _sample(found: Reconstruction, count: int, seed: int) -> list[int]:
    """Return boundaries at which something starts, spread over the log."""
    starts = np.unique(found.attempts.first[found.attempts.last > found.attempts.first])
    starts = starts[starts > 0]
    if starts.size > count:
        starts = np.sort(np.random.default_rng(seed).choice(starts, count, replace=False))
    return [int(boundary) for boundary in starts]


def _before(found: Reconstruction, sample: list[int]) -> tuple[Any, Any]:
    """Return whole tokens and requests of each worker at these boundaries before anything starts, (G, S) each."""
    attempts, G = found.attempts, len(found.log.workers)
    loads, running = np.zeros((2, G, len(sample)), dtype=np.int64)
    at = np.array(sample, dtype=np.int64)
    for g in range(G):
        count, at_zero, slope = attempts.of_worker(g)
        mine = attempts.worker == g
        new = np.bincount(attempts.first[mine], minlength=attempts.times.size)[at]
        tokens = np.bincount(attempts.first[mine], attempts.prompt[mine], attempts.times.size)[at]
        clock = attempts.clock[at]
        loads[g] = np.maximum(np.round(at_zero[at] + slope[at] * clock - tokens), 0)
        running[g] = np.maximum(count[at] - new, 0)
    return loads, running
