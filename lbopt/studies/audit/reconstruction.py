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
    """

    log: RouterLog
    attempts: Attempts
    course: Course
    law: LawFromLog
    steps: Floats

    @property
    def mean_step_seconds(self) -> float:
        """Mean time of a step by the law, seconds."""
        seconds = self.law.seconds(self.course.heaviest)
        return float(seconds @ self.steps) / max(float(self.steps.sum()), 1e-12)


def reconstruct(log: RouterLog, seed: int = 0) -> Reconstruction:
    """Return the fleet's course and law.

    Parameters
    ----------
    log
        A log with at least some requests that ran to their end.
    seed
        Of the bootstrap behind the law's intervals.
    """
    attempts = Attempts(log)
    course = course_of(attempts)
    steps = course.seconds * course.rate
    for turn in range(_TURNS + 1):
        law = fit_law(course, steps, log.output, log.is_finished, seed)
        steps = steps_of(course, law.fixed, law.per_token)
        if turn < _TURNS:
            attempts = attempts.by_steps(steps)
            course = course_of(attempts)
    return Reconstruction(log, attempts, course, law, steps)
