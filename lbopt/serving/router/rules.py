"""The rules of a router's groups: made from text, and compiled before the first request comes."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, make_policy
from lbopt.serving.router.fleet_file import GroupPlan
from lbopt.serving.rule import LiveRule
from lbopt.serving.state import FleetState


def rule_for(spec: str, group: GroupPlan, training: Trace | None) -> LiveRule:
    """Return the rule that a text names, for a group; `training` are requests from which its predictor learns."""
    return LiveRule(
        make_policy(spec),
        num_workers=len(group.workers),
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


def warm(rule: LiveRule, plan: GroupPlan) -> None:
    """Let a rule decide on a small fleet of the same kind, which compiles what it calls; its turn stays."""
    fleet = FleetState()
    group = fleet.add_group("warm", "warm")
    for address in plan.workers[:8]:
        fleet.worker_up("warm", address.name, plan.slots)
    for size in (300, 20, 700):
        fleet.prefilled(fleet.arrived("warm", size, 0.0), 0.0)
    turn = rule.turn
    waiting = list(group.pool)
    if rule.is_immediate:
        rule.bind(rule.see(group, waiting[:1], 0.0))
    else:
        fleet.dispatched(waiting[0], group.workers[0], 0.0)
        rule.decide(rule.see(group, waiting[1:], 0.0))
    rule.turn = turn
