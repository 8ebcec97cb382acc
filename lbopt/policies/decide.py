"""One decision of any policy on one observation, outside a simulation, and how long it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.kernels.routing.codes import COUNTING_PROMPTS, KEEPING_BOOKS
from lbopt.kernels.routing.state import Room, Waiting, parameters_of, turn_of
from lbopt.policies.observation import Observation
from lbopt.policies.policy import CompiledPolicy, DecidingPolicy, LookingAhead, Policy
from lbopt.policies.relative_age import RelativeAge


def decide(policy: Policy, observation: Observation, *, seed: int = 0, round_robin_at: int = 0) -> NDArray[np.int64]:
    """Return the worker of each waiting request, or -1, as `policy` decides it in pooled form.

    Parameters
    ----------
    policy
        The rule.
    observation
        What it sees.
    seed
        Seed of rules that draw.
    round_robin_at
        Worker at which round-robin stands.
    """
    if isinstance(policy, CompiledPolicy):
        refuse_unknowing(policy)
        return _call_compiled(_compiled_arguments(policy, observation, seed, round_robin_at))
    assert isinstance(policy, DecidingPolicy)
    return np.asarray(policy.decide(observation))


def refuse_unknowing(policy: Policy) -> None:
    """Refuse a rule that goes by what is known of requests and not of a frozen state."""
    if isinstance(policy, RelativeAge):
        raise policy.not_in_a_run()
    if not isinstance(policy, CompiledPolicy):
        return
    if policy.guide is not None:
        raise InputError(
            f"policy '{policy.name}' goes by the experts that requests use, and a frozen state does not say which; "
            "simulate it, or leave it out"
        )
    if policy.code in COUNTING_PROMPTS:
        raise InputError(
            f"policy '{policy.name}' goes by the prompts of running requests, which a frozen state does not list; "
            "simulate it, or leave it out"
        )


def repeats_alike(policy: Policy) -> bool:
    """Return whether a decision can be repeated to be timed: by compiled rules, and by those that look ahead and do not
    solve.
    """
    return isinstance(policy, CompiledPolicy) or (isinstance(policy, LookingAhead) and not hasattr(policy, "ledger"))


def seconds_per_decision(policy: Policy, observation: Observation, *, repeats: int = 5) -> float:
    """Return the shortest wall time of `repeats` warm decisions."""
    best = np.inf
    for _ in range(repeats + 1):
        if isinstance(policy, CompiledPolicy):
            arguments = _compiled_arguments(policy, observation, 0, 0)
            begin = compile_time.clock()
            _call_compiled(arguments)
        else:
            begin = compile_time.clock()
            decide(policy, observation)
        best = min(best, compile_time.clock() - begin)
    return float(best)


def _compiled_arguments(
    policy: CompiledPolicy, observation: Observation, seed: int, round_robin_at: int
) -> tuple[Any, ...]:
    count = observation.sizes.size
    draws = np.random.default_rng(seed).random((count, 2)) if policy.draws else np.zeros((0, 2))
    room = Room(
        load=observation.loads.copy(),
        free=observation.free_slots.copy(),
        running=observation.running.copy(),
        own=observation.running.copy() if policy.code in KEEPING_BOOKS else np.zeros(0, dtype=np.int64),
    )
    waiting = Waiting(
        pool=np.arange(count),
        prompt=observation.sizes.copy(),
        reveal_step=-observation.waited,  # revealed that many steps before "step 0"
        uniforms=draws,
        step=0,
    )
    turn = turn_of(round_robin_at % observation.loads.size)
    return policy.code, parameters_of(**policy.parameters), room, waiting, turn, np.full(count, -1, dtype=np.int64)


def _call_compiled(arguments: tuple[Any, ...]) -> NDArray[np.int64]:
    from lbopt.kernels.routing.decide import decide as decide_compiled

    choice: NDArray[np.int64] = arguments[-1]
    reach = decide_compiled(*arguments)
    choice[reach:] = -1
    return choice
