"""The rules of a router's groups: made from text, and compiled before the first request comes."""

from __future__ import annotations

from collections.abc import Iterable

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, make_policy
from lbopt.serving.router.fleet_file import GroupPlan
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.rule import LiveRule, warm_rule

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
