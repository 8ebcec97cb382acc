"""The rules of a router's groups: made from text, compiled before the first request comes, and when they may decide.

A round on arrival places a request as soon as a slot is free. A round at the end of a step (`StepEnds`) sees all who
have come during the step and all slots that its last tokens have freed, and places them together: the order of events
of the simulator (the manual, *simulator*, "Steps and decisions"). Who comes during a step counts as revealed
at its end.

A group may decide where its step has advanced since its last round, where nothing is bound to it, or where no step has
ended for `longest` seconds: tokens of answers that do not stream show at their end alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, make_policy
from lbopt.serving.router.fleet_file import GroupPlan
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.rule import LiveRule, warm_rule
from lbopt.serving.state import BarrierGroup

#: Workers of a group, and requests that wait, up to which Python takes a millisecond at most for each slot it fills:
#: `auto` 0.9 ms of 1,024 waiting on 16 workers, 5 ms for 16 slots (one core of a cloud machine).
_FEW_WORKERS, _FEW_WAITING = 16, 1024


def rule_for(spec: str, group: GroupPlan, training: Trace | None) -> LiveRule:
    """Return the rule that a text names, for a group; `training` are requests from which its predictor learns."""
    return LiveRule(
        make_policy(spec),
        num_workers=max(1, len(group.workers)),  # those of an advised group come later
        slots=group.slots,
        kv_capacity=group.kv_capacity,
        training=training,
    )


def fallback_for(spec: str, group: GroupPlan) -> LiveRule:
    """Return the rule that decides where another one cannot: a compiled one, which is always in time.

    Raises
    ------
    InputError
        Where it is none.
    """
    rule = rule_for(spec, group, None)
    if not isinstance(rule.policy, CompiledPolicy):
        raise InputError(f"fallback is '{spec}', which decides in Python; expected a compiled rule such as jsq-load")
    return rule


def needs_compiler(rules: Iterable[LiveRule], groups: Iterable[GroupPlan], options: RouterOptions) -> bool:
    """Return whether these rules should be compiled: on few workers Python is as quick, and Numba takes 100 MB.

    A rule that is no compiled one may need any kernel; `eldr` multiplies matrices; with `decide=step` many slots are
    filled at once.
    """
    return (
        any(not isinstance(rule.policy, CompiledPolicy) or rule.locality is not None for rule in rules)
        or any(len(group.workers) > _FEW_WORKERS for group in groups)
        or options.max_waiting > _FEW_WAITING
        or options.decide == "step"
    )


def warm(rule: LiveRule, plan: GroupPlan) -> None:
    """Compile what a rule calls on the fleet of a plan."""
    warm_rule(rule, max(1, len(plan.workers)), plan.slots)


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
