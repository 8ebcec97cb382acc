"""One worker that is slower or faster than the others: found by what its tokens must count to explain the times.

The heaviest worker sets the pace. If worker g needs f times as long for a token, requests' times follow the largest of
the loads with its own counted f-fold. Each worker is tried with a few factors; the best is kept if it leaves far less
scatter than equal speeds, and its factor is then refined. A fast worker seldom is the heaviest: its factor is rough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from lbopt.studies.audit.course import Floats, course_of
from lbopt.studies.audit.happened import logged_tpot
from lbopt.studies.audit.law_from_log import weighted_residual
from lbopt.studies.audit.reconstruction import Reconstruction, reconstruct

#: Counting a worker's tokens for more or less explains the times so much better.
_EXPLAINS = 0.67
_SLOWER, _FASTER = (1.1, 1.2, 1.3, 1.4, 1.5), (0.9, 0.8, 0.67, 0.5)
#: Fleets up to this size are searched for a fast one too.
_FEW_WORKERS = 32
#: Fleets larger than this are not searched.
_MOST_WORKERS = 128
#: The factor is looked for between these shares of the last guess.
_AROUND, _PRECISION, _TURNS = (0.8, 1.25), 0.002, 4


@dataclass(frozen=True, slots=True)
class OddWorker:
    """A worker of another speed.

    Parameters
    ----------
    worker
        Its number.
    factor
        What its tokens count.
    left
        Share of the scatter of equal speeds that is left.
    """

    worker: int
    factor: float
    left: float

    def scale(self, workers: int) -> Floats:
        """Return what a token counts on each of so many workers."""
        scale = np.ones(workers)
        scale[self.worker] = self.factor
        return scale


def odd_worker(found: Reconstruction) -> OddWorker | None:
    """Return the worker whose speed differs from that of all others, if there is one; its factor is a first guess."""
    G = len(found.log.workers)
    if not 2 <= G <= _MOST_WORKERS:
        return None
    same = _left_by(found, 0, 1.0)
    best = OddWorker(-1, 1.0, 1.0)
    for g in range(G):
        for speeds in (_SLOWER, _FASTER if G <= _FEW_WORKERS else ()):
            for k, factor in enumerate(speeds):
                left = _left_by(found, g, factor) / same
                if left < best.left:
                    best = OddWorker(g, factor, left)
                elif k > 0:
                    break
    return best if best.left < _EXPLAINS else None


def counting(found: Reconstruction, odd: OddWorker, seed: int) -> tuple[Reconstruction, OddWorker]:
    """Return the log's fleet with the tokens of the odd worker counted as often as it needs, and that factor.

    Steps in an interval, the law and the factor depend on each other, so they are found by turns.

    Parameters
    ----------
    found
        The fleet with equal speeds.
    odd
        The worker, and a first guess of its factor.
    seed
        Of the bootstrap behind the law's intervals.
    """
    same = _left_by(found, odd.worker, 1.0)
    for _ in range(_TURNS):
        found = reconstruct(found.log, seed, odd.scale(len(found.log.workers)))
        low, high = (odd.factor * share for share in _AROUND)
        left = partial(_left_by, found, odd.worker)
        best = minimize_scalar(left, bounds=(low, high), method="bounded", options={"xatol": _PRECISION})
        odd = OddWorker(odd.worker, float(best.x), float(best.fun) / same)
    return reconstruct(found.log, seed, odd.scale(len(found.log.workers))), odd


def _left_by(found: Reconstruction, g: int, factor: float) -> float:
    """Return what the best law leaves of requests' times where worker `g` needs `factor` times as long for a token."""
    log = found.log
    rows = np.isfinite(logged_tpot(found))
    took, output = (log.finish - log.start)[rows], log.output[rows].astype(np.float64)
    course = course_of(found.attempts, OddWorker(g, factor, 1.0).scale(len(log.workers)))
    counted = np.maximum(course.over_requests(found.steps), 1e-12)
    load = (course.over_requests(found.steps * course.heaviest) / counted)[rows]
    return weighted_residual(np.column_stack([output, output * load]), took, 1 / output)
