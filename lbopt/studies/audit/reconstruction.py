"""From a log to the fleet's course and its law: each is needed for the other, so they are found by turns."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.instances.router_log import RouterLog
from lbopt.studies.audit.course import Attempts, Course, Floats, course_of
from lbopt.studies.audit.law_from_log import LawFromLog, fit_law, steps_of

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
    seed
        Of the bootstrap behind the law's intervals.
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
