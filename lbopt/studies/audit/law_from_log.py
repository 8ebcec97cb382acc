"""The step-time law from the log's own times: seconds of a step = fixed + per_token * load of the heaviest worker.

Two estimators, of which the second is used where it can be.

By requests. A request that runs o steps takes fixed * o + per_token * (sum of the heaviest load over its steps), and
both factors are known from the fleet's course. Weighted least squares over requests, weights 1 / o, since the noise of
o steps adds up. How many steps fall into an interval depends on the law itself, so it is fitted a few times.

By steps. Where the log's times are those of the boundaries of steps, the number of steps between two events is a whole
number, found by rounding, and every interval is an observation of its own: neighbours no longer share their noise, and
the law is known several times better. Times that were written with a delay of their own do not show whole numbers of
steps; then the requests have to do.

Intervals of the parameters are from a block bootstrap over time, since the noise of a fleet is not independent from
one step to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.router_log import RouterLog
from lbopt.studies.audit.course import Attempts, Course, Floats, course_of

BLOCKS = 40


def drawn_blocks(
    when: NDArray[np.float64], draws: int, seed: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.float64]]:
    """Return the rows of each block, and how often each draw has each block, float64 (draws, blocks).

    Parameters
    ----------
    when
        (n,), times; blocks are of equally many neighbours in time, at most `BLOCKS` of them.
    """
    order = np.argsort(when, kind="stable")
    blocks = [rows for rows in np.array_split(order, BLOCKS) if rows.size]
    count = len(blocks)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), draws)
    return blocks, drawn.astype(np.float64)


#: Share of a step by which intervals may miss a whole number in the mean; a quarter is what random times give.
WHOLE = 0.13
#: Scatter of times around their boundary, steps, beyond which a log does not show the boundaries.
SCATTER = 0.02
#: Intervals of more steps than this are too long to be rounded.
_MOST_STEPS = 8.0
_ROUNDS = 6
_DRAWS = 1000
#: Observations this many median deviations off are stalls, not noise.
_OUTLYING = 6.0
#: ... where they are off by at least this share of a step.
_STALL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LawFromLog:
    """A fitted law.

    Parameters
    ----------
    fixed, per_token
        Seconds of a step, and seconds for each token on the heaviest worker.
    fixed_interval, per_token_interval
        95 %, block bootstrap over time.
    by
        "steps" or "requests", what was fitted.
    off_whole
        Mean distance of the intervals from a whole number of steps, in steps; 0.25 for times that show no steps.
    observations
        Intervals or requests that were fitted.
    stalled
        Share of the busy time in intervals that took far longer than the law says; 0 where requests were fitted.
    spread
        Coefficient of variation of the heaviest load over steps: what tells the slope from the fixed part.
    """

    fixed: float
    per_token: float
    fixed_interval: tuple[float, float]
    per_token_interval: tuple[float, float]
    by: str
    off_whole: float
    observations: int
    stalled: float
    spread: float

    @property
    def is_sure_of_slope(self) -> bool:
        """Whether the load matters at all, at the confidence of the interval."""
        return self.per_token_interval[0] > 0

    def seconds(self, heaviest: Floats) -> Floats:
        """Return the seconds of steps with these heaviest loads."""
        return self.fixed + self.per_token * heaviest


def fit_law(
    course: Course, steps: Floats, output: NDArray[np.int64], usable: NDArray[np.bool_], seed: int = 0
) -> LawFromLog:
    """Fit the law to a fleet's course.

    Parameters
    ----------
    steps
        (J,), a guess of the steps in each interval.
    output
        (N,), steps of each attempt.
    usable
        (N,), attempts that ran to their end.
    """
    design, took, weight, when = np.zeros((0, 2)), np.zeros(0), np.zeros(0), np.zeros(0)
    fixed = per_token = 0.0
    for _ in range(_ROUNDS):
        design, took, weight, when = _by_requests(course, steps, output, usable)
        fixed, per_token = _solve(*_normal(design, took, weight))
        steps = steps_of(course, fixed, per_token)
    off = _off_whole(course, steps)
    by, stalled = "requests", 0.0
    if off < WHOLE and course.scatter < SCATTER:
        by = "steps"
        for _ in range(_ROUNDS):
            design, took, weight, when = _by_steps(course, steps)
            fixed, per_token = _solve(*_normal(design, took, weight))
            steps = steps_of(course, fixed, per_token)
        miss = (took - design @ np.array([fixed, per_token])) * np.sqrt(weight)
        least = _STALL * float(took.sum() / design[:, 0].sum())
        kept = np.abs(miss - np.median(miss)) <= max(_OUTLYING * _deviation(miss), least)
        stalled = float(took[~kept & (miss > 0)].sum() / max(took.sum(), 1e-12))
        design, took, weight, when = design[kept], took[kept], weight[kept], when[kept]
        fixed, per_token = _solve(*_normal(design, took, weight))
    ends = _bootstrap(design, took, weight, when, seed)
    per_step = design[:, 1] / np.maximum(design[:, 0], 1e-12)
    return LawFromLog(
        fixed=fixed,
        per_token=per_token,
        fixed_interval=(ends[0, 0], ends[1, 0]),
        per_token_interval=(ends[0, 1], ends[1, 1]),
        by=by,
        off_whole=off,
        observations=int(took.size),
        stalled=stalled,
        spread=float(per_step.std() / max(per_step.mean(), 1e-12)),
    )


def weighted_residual(design: Floats, took: Floats, weight: Floats) -> float:
    """Return the weighted sum of squares that the best law leaves.

    Parameters
    ----------
    design
        (n, 2), steps and the sum of loads over them.
    took, weight
        (n,), seconds, and the weight of each observation.
    """
    miss = took - design @ np.array(_solve(*_normal(design, took, weight)))
    return float(weight @ miss**2)


def steps_of(course: Course, fixed: float, per_token: float) -> Floats:
    """Return the steps that a law puts into each interval, (J,)."""
    seconds = fixed + per_token * course.heaviest
    return np.where(course.is_busy & (seconds > 0), course.seconds / np.where(seconds > 0, seconds, 1.0), 0.0)


def _by_requests(
    course: Course, steps: Floats, output: NDArray[np.int64], usable: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, Floats]:
    counted = course.over_requests(steps)
    took = course.over_requests(course.seconds)
    rows = usable & (output > 0) & (took > 0) & (counted > 0)
    loads = course.over_requests(steps * course.heaviest)[rows] / counted[rows] * output[rows]
    when = course.begin[course.first[rows]]
    return np.column_stack([output[rows], loads]), took[rows], 1.0 / output[rows], when


def _by_steps(course: Course, steps: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    rows = course.is_busy & (steps < _MOST_STEPS)
    whole = np.maximum(np.round(steps[rows]), 1.0)
    return (
        np.column_stack([whole, whole * course.heaviest[rows]]),
        course.seconds[rows],
        1.0 / whole,
        course.begin[rows],
    )


def _off_whole(course: Course, steps: Floats) -> float:
    rows = course.is_busy & (steps > 0.5) & (steps < 4.5)
    if np.count_nonzero(rows) < 30:
        return 0.5
    return float(np.abs(steps[rows] - np.round(steps[rows])).mean())


def _normal(design: Floats, took: Floats, weight: Floats) -> tuple[Floats, Floats]:
    scaled = design * weight[:, None]
    return scaled.T @ design, scaled.T @ took


def _solve(gram: Floats, right: Floats, *, plain: bool = False) -> tuple[float, float]:
    """Solve for fixed and per_token; unless `plain`, a negative one is set to zero, as no engine has it."""
    (aa, ab), (_, bb) = gram
    ay, by = right
    determinant = aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb:
        fixed, slope = (bb * ay - ab * by) / determinant, (aa * by - ab * ay) / determinant
        if plain or (fixed >= 0 and slope >= 0):
            return float(fixed), float(slope)
        if fixed < 0 and bb > 0:
            return 0.0, float(by / bb)
    return float(ay / aa), 0.0


def _deviation(values: Floats) -> float:
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def _bootstrap(design: Floats, took: Floats, weight: Floats, when: Floats, seed: int) -> Floats:
    """Return the 2.5 % and 97.5 % quantiles of (fixed, per_token) when blocks of time are drawn, (2, 2).

    Here a slope may be negative: where all draws are, the log does not show what its times follow.
    """
    blocks, drawn = drawn_blocks(when, _DRAWS, seed)
    parts = [_normal(design[rows], took[rows], weight[rows]) for rows in blocks]
    grams, rights = np.array([gram for gram, _ in parts]), np.array([right for _, right in parts])
    found = [
        _solve(gram, right, plain=True)
        for gram, right in zip(np.tensordot(drawn, grams, 1), np.tensordot(drawn, rights, 1), strict=True)
    ]
    return np.asarray(np.quantile(np.array(found), (0.025, 0.975), axis=0))


#: Turns after the first guess; the second changes the law by less than 0.1 %.
_TURNS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """What a log says of its fleet.

    Parameters
    ----------
    log
        The log.
    attempts, course
        What ran when, and what workers held.
    law
        Seconds of a step.
    steps
        (J,), steps in each interval of the course.
    scale
        (G,), what a token counts on each worker; None = the same on all.
    """

    log: RouterLog
    attempts: Attempts
    course: Course
    law: LawFromLog
    steps: Floats
    scale: Floats | None = None

    @property
    def mean_step_seconds(self) -> float:
        """Mean time of a step by the law, seconds."""
        seconds = self.law.seconds(self.course.heaviest)
        return float(seconds @ self.steps) / max(float(self.steps.sum()), 1e-12)


def reconstruct(log: RouterLog, seed: int = 0, scale: Floats | None = None) -> Reconstruction:
    """Return the fleet's course and law.

    Parameters
    ----------
    log
        A log with at least some requests that ran to their end.
    scale
        (G,), what a token counts on each worker; None = the same on all.
    """
    attempts = Attempts(log)
    course = course_of(attempts, scale)
    steps = course.seconds * course.rate
    for turn in range(_TURNS + 1):
        law = fit_law(course, steps, log.output, log.is_finished, seed)
        steps = steps_of(course, law.fixed, law.per_token)
        if turn < _TURNS:
            attempts = attempts.by_steps(steps)
            course = course_of(attempts, scale)
    return Reconstruction(log, attempts, course, law, steps, scale)
