"""Decisions at the ends of steps: a round for a barrier group takes place once in a step, as in the simulator.

A round on arrival places a request as soon as a slot is free. A round at the end of a step sees all who have come
during the step and all slots that its last tokens have freed, and places them together: the order of events of the
simulator (the manual, *simulator*, "Steps and decisions"). Who comes during a step counts as revealed at its end.

A group may decide where its step has advanced since its last round, where nothing is bound to it, or where no step has
ended for `longest` seconds: tokens of answers that do not stream show at their end alone.
"""

from __future__ import annotations

from collections.abc import Callable

from lbopt.serving.state import BarrierGroup


class StepEnds:
    """When each group of a fleet may decide.

    Parameters
    ----------
    clock
        The time, s.
    longest
        Seconds for which the end of a step is waited for.
    """

    def __init__(self, clock: Callable[[], float], longest: float) -> None:
        self._clock = clock
        self.longest = longest
        self._steps: dict[BarrierGroup, int] = {}
        self._since: dict[BarrierGroup, float] = {}
        self._tickets: dict[BarrierGroup, int] = {}

    def may_decide(self, group: BarrierGroup) -> bool:
        """Return whether a step of the group has ended; then requests are revealed, and the next step is awaited."""
        now = self._clock()
        is_idle = not any(worker.bound for worker in group.workers)
        has_waited = now - self._since.setdefault(group, now) >= self.longest
        if self._steps.get(group) == group.step and not is_idle and not has_waited:
            return False
        self._steps[group], self._since[group] = group.step, now
        self._tickets[group] = group.pool.reveal(group, self._tickets.get(group, -1))
        return True
