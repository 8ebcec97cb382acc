"""The step-time law from the log's own times: seconds of a step = fixed + per_token * load of the heaviest worker.

Two estimators, of which the second is used where it can be.

By requests. A request that runs o steps takes fixed * o + per_token * (sum of the heaviest load over its steps), and
both factors are known from the fleet's course. Weighted least squares over requests, weights 1 / o, since the noise of
o steps adds up. How many steps fall into an interval depends on the law itself, so it is fitted a few times.

By steps. Where the log's times are those of the boundaries of steps, every interval is an observation of its own:
neighbours no longer share their noise, and the law is known several times better. How many steps an interval has is not
guessed from its seconds alone, whose noise would then bias the law: a request of o tokens runs o steps, whatever they
took. So the steps between boundaries are those that are closest to what the law says, by the noise of steps, among
those that give every request its tokens: least squares on the boundaries' places, one sparse system, and nearly whole
numbers even where a step's time varies by half. A router's own count of steps, where there is one, is one more
observation of a stretch, which tells a stall from many steps. Times that were written with a delay of their own do not
show boundaries; then the requests have to do.

Intervals of the parameters are from a block bootstrap over time, since the noise of a fleet is not independent from
one step to the next. Blocks also show the bias that comes from loads that follow earlier noise: it is taken off, and
the interval is the basic one (Davison and Hinkley, *Bootstrap Methods and their Application*, 1997, 2.1 and 5.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

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
#: Noise of a step from which intervals need not be whole: their places among each other are then not known that well.
_MUCH_NOISE = 0.1
#: Steps by which a request's tokens may differ from the steps it ran in: where times show boundaries, and elsewhere.
_EXACT, _DELAYED = 0.05, 0.5
#: Steps by which a router's count between two decisions may be off.
_COUNTED = 2.0
#: Assumed noise of a step; what is near the law matters only where requests leave a choice.
_SPREAD = 0.3
_ROUNDS = 3
_DRAWS, _KEPT = 1000, 200
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
    noise
        Standard deviation of a step's time as a share of what the law says, from intervals between events.
    condition
        Condition number of the fit, columns of norm 1: how many times more noise moves the worst combination of the
        two constants than the best. 1 is ideal; with tens and more the log shows a mean step, not two parts.
    drawn
        Draws of (fixed, per_token) from the bootstrap: laws that the log does not tell apart.
    """

    fixed: float
    per_token: float
    fixed_interval: tuple[float, float]
    per_token_interval: tuple[float, float]
    by: str
    off_whole: float
    observations: int
    stalled: float
    noise: float = 0.0
    condition: float = 1.0
    drawn: tuple[tuple[float, float], ...] = ()

    @property
    def is_sure_of_slope(self) -> bool:
        """Whether the load matters at all, at the confidence of the interval."""
        return self.per_token_interval[0] > 0

    @property
    def is_identified(self) -> bool:
        """Whether the log tells the fixed part from the slope: within a third of the slope, at 95 %."""
        low, high = self.per_token_interval
        return high - low <= self.per_token * 2 / 3

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
        steps = steps_of(course, fixed, per_token, output, usable)
    off = _off_whole(course, steps)
    by, stalled, noise = "requests", 0.0, _noise(course, steps, fixed, per_token)
    if course.scatter < SCATTER and (off < WHOLE or noise > _MUCH_NOISE):
        by = "steps"
        for _ in range(_ROUNDS):
            design, took, weight, when = _by_steps(course, steps, fixed, per_token)
            fixed, per_token = _solve(*_normal(design, took, weight))
            steps = steps_of(course, fixed, per_token, output, usable)
        expected = design @ np.array([fixed, per_token])
        miss = np.log(np.maximum(took, 1e-12) / np.maximum(expected, 1e-12)) * np.sqrt(design[:, 0])
        least = _STALL * float(took.sum() / design[:, 0].sum())
        kept = (np.abs(miss - np.median(miss)) <= _OUTLYING * _deviation(miss)) | (
            np.abs(took - expected) <= least * np.sqrt(design[:, 0])
        )
        stalled = float(took[~kept & (miss > 0)].sum() / max(took.sum(), 1e-12))
        design, took, weight, when = design[kept], took[kept], weight[kept], when[kept]
        noise = _noise(course, steps, fixed, per_token)
    (fixed, per_token), drawn = _bootstrap(design, took, weight, when, seed)
    ends = np.quantile(drawn, (0.025, 0.975), axis=0)
    weighed = design * np.sqrt(weight)[:, None]
    return LawFromLog(
        fixed=fixed,
        per_token=per_token,
        fixed_interval=(ends[0, 0], ends[1, 0]),
        per_token_interval=(ends[0, 1], ends[1, 1]),
        by=by,
        off_whole=off,
        observations=int(took.size),
        stalled=stalled,
        noise=noise,
        condition=float(np.linalg.cond(weighed / np.maximum(np.linalg.norm(weighed, axis=0), 1e-12))),
        drawn=tuple((float(a), float(b)) for a, b in drawn[:: _DRAWS // _KEPT]),
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


def steps_of(
    course: Course, fixed: float, per_token: float, output: NDArray[np.int64], usable: NDArray[np.bool_]
) -> Floats:
    """Return the steps in each interval, (J,): near what a law says, and as many over a request as it has tokens.

    Parameters
    ----------
    output
        (N,), steps of each attempt.
    usable
        (N,), attempts that ran to their end.
    """
    seconds = fixed + per_token * course.heaviest
    steps = np.where(course.is_busy & (seconds > 0), course.seconds / np.where(seconds > 0, seconds, 1.0), 0.0)
    miss = course.over_requests(steps) - output
    rows = np.flatnonzero(usable & (course.last > course.first) & (output > 0))
    if rows.size < 2:
        return steps
    miss = miss[rows] / np.sqrt(output[rows])
    rows = rows[np.abs(miss - np.median(miss)) <= _OUTLYING * _deviation(miss) + 1e-9]  # others paused
    exact = _EXACT if course.scatter < SCATTER else _DELAYED
    J = steps.size
    variance = np.where(course.is_busy, np.maximum(_SPREAD**2 * steps, 1e-4), 1e-6)
    since, until, counted = course.counted[:, course.counted[2] >= 0]  # a router that began anew counts from zero
    begin = np.concatenate([np.arange(J), course.first[rows], since.astype(np.int64)])
    end = np.concatenate([np.arange(1, J + 1), course.last[rows], until.astype(np.int64)])
    weight = np.concatenate([1 / variance, np.full(rows.size, exact**-2), np.full(counted.size, _COUNTED**-2)])
    right = weight * np.concatenate([steps, output[rows], counted])
    places = np.concatenate([begin, end, begin, end]), np.concatenate([begin, end, end, begin])
    system = coo_matrix((np.concatenate([weight, weight, -weight, -weight]), places), shape=(J + 1, J + 1)).tocsc()
    moment = np.bincount(end, right, J + 1) - np.bincount(begin, right, J + 1)
    solved = splu(system[1:, 1:], permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(moment[1:])
    return np.maximum(np.diff(np.concatenate([np.zeros(1), solved])), 0.0)


def _by_requests(
    course: Course, steps: Floats, output: NDArray[np.int64], usable: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, Floats]:
    counted = course.over_requests(steps)
    took = course.over_requests(course.seconds)
    rows = usable & (output > 0) & (took > 0) & (counted > 0)
    loads = course.over_requests(steps * course.heaviest)[rows] / counted[rows] * output[rows]
    when = course.begin[course.first[rows]]
    return np.column_stack([output[rows], loads]), took[rows], 1.0 / output[rows], when


def _by_steps(course: Course, steps: Floats, fixed: float, per_token: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return intervals as observations; noise is a share of a step's time, so heavy steps weigh less."""
    rows = course.is_busy & (course.seconds > 0)
    whole, load = np.maximum(np.round(steps[rows]), 1.0), course.heaviest[rows]
    seconds = np.maximum(fixed + per_token * load, 1e-12)
    relative = seconds / max(float(seconds.mean()), 1e-12)
    return np.column_stack([whole, whole * load]), course.seconds[rows], 1 / (whole * relative**2), course.begin[rows]


def _noise(course: Course, steps: Floats, fixed: float, per_token: float) -> float:
    rows = course.is_busy & (steps > 0.5)
    expected = np.maximum(fixed + per_token * course.heaviest[rows], 1e-12) * steps[rows]
    return float(np.sqrt(np.mean((course.seconds[rows] / expected - 1) ** 2 * steps[rows]))) if rows.any() else 0.0


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


def _bootstrap(
    design: Floats, took: Floats, weight: Floats, when: Floats, seed: int
) -> tuple[tuple[float, float], Floats]:
    """Return (fixed, per_token) without the bias that blocks of time show, and draws around it, (draws, 2).

    In draws a slope may be negative: where all are, the log does not show what its times follow.
    """
    blocks, drawn = drawn_blocks(when, _DRAWS, seed)
    parts = [_normal(design[rows], took[rows], weight[rows]) for rows in blocks]
    grams, rights = np.array([gram for gram, _ in parts]), np.array([right for _, right in parts])
    found = np.array(
        [
            _solve(gram, right, plain=True)
            for gram, right in zip(np.tensordot(drawn, grams, 1), np.tensordot(drawn, rights, 1), strict=True)
        ]
    )
    gram, right = _normal(design, took, weight)
    per_step = design[:, 1] @ weight / (design[:, 0] @ weight)
    mean_step = took @ weight / (design[:, 0] @ weight)
    plain = np.array(_solve(gram, right, plain=True))
    slope = 2 * plain[1] - float(np.median(found[:, 1]))
    slope = min(max(slope, 0.0), float(mean_step) / max(float(per_step), 1e-12))
    return (max(0.0, float(mean_step - slope * per_step)), float(slope)), 2 * plain - found


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
        steps = steps_of(course, law.fixed, law.per_token, log.output, log.is_finished)
        if turn < _TURNS:
            attempts = attempts.by_steps(steps)
            course = course_of(attempts, scale)
    return Reconstruction(log, attempts, course, law, steps, scale)
