"""A prefill run in the world of messages: the same instances, passes and rules, and what a network and faults do.

`simulate_prefill` comes here where faults or messages are given. Without faults, and without latency on the way back, a
run is that of the compiled simulation (`tests/prefill/protocol/test_one_world.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.kernels.prefill import codes
from lbopt.prefill.protocol.bound import BoundOnArrival, Rule
from lbopt.prefill.protocol.faults import Devices, FaultPlan
from lbopt.prefill.protocol.scheduler import TripleCheck
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.world import Outcome, World
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.run import PrefillRun
from lbopt.prefill.setting import PrefillSetting

_IMMEDIATE: dict[int, Rule] = {
    codes.RANDOM: "random",
    codes.ROUND_ROBIN: "round-robin",
    codes.JSQ: "jsq",
    codes.JSQ_TOKENS: "jsq-tokens",
}
_TIMERS: dict[int, Literal["none", "spacing", "lattice"]] = {
    codes.POOLED: "none",
    codes.SPACING: "spacing",
    codes.TICK: "lattice",
}


@dataclass(frozen=True, slots=True)
class Messages:
    """How the scheduler and the instances talk.

    Parameters
    ----------
    latency_back
        s, from an instance to the scheduler; None = as there.
    watchdog
        Timeout of a batch in typical passes; of policies that hold requests back.
    polls
        s between polls; infinity = no polls.
    pace
        ``mean`` of the last passes, as the policy has it, or their ``median``, which no minority of outliers moves.
    last_token
        Whether the last first token of all that an instance holds makes it ready, though no end of a pass is heard.
    moments
        Whether what comes at one time is heard before the scheduler acts, and a batch that takes no time is in the
        pass that starts then (`lbopt.prefill.protocol.world`).
    """

    latency_back: float | None = None
    watchdog: float = 5.0
    polls: float = math.inf
    pace: Literal["mean", "median"] = "mean"
    last_token: bool = False
    moments: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class MessageRun(PrefillRun):
    """What a policy did, and what became of it on the way.

    Of a request that was sent more than once, ``dispatched`` and ``began`` are of the first time; ``finished`` is when
    its first token came to the scheduler; NaN and -1 also where it is stranded.

    Parameters
    ----------
    outcome
        Of the world of messages.
    faults
        What went wrong.
    """

    outcome: Outcome
    faults: FaultPlan

    @property
    def stranded(self) -> NDArray[np.int64]:
        """int64, requests that were neither served nor refused."""
        ended = {*self.outcome.delivered, *self.outcome.refused}
        return np.array([i for i in range(len(self.traffic)) if i not in ended], dtype=np.int64)

    @property
    def computed_twice(self) -> int:
        """Requests that were prefilled to the end more than once."""
        return sum(times > 1 for times in self.outcome.executions.values())

    @property
    def sent_to_dead(self) -> int:
        """Times that a request was sent to an instance that was down."""
        return len(self.outcome.sent_to_dead)


def protocol_setting(setting: PrefillSetting, messages: Messages) -> ProtocolSetting:
    """Return the scheduler's setting that does what `setting` says."""
    if setting.queue_limit is not None:
        raise InputError(
            f"queue_limit is {setting.queue_limit}; a scheduler does not see who has begun, expected None with messages"
        )
    if setting.topology:
        raise InputError("topology is given; with messages instances go by faults, expected crashes in the plan")
    policy = setting.dispatch
    held = not policy.immediate
    ahead = policy.code == codes.ANTICIPATING
    if ahead and policy.error:
        raise InputError(
            f"policy '{policy.name}' has an error of {policy.error}; expected 0: predictions by messages err anyway"
        )
    return ProtocolSetting(
        setting.num_instances,
        default_pass=setting.pass_time.base if policy.default_pass is None else policy.default_pass,
        latency=setting.latency,
        latency_back=messages.latency_back,
        window=policy.window if messages.pace == "mean" else max(3, policy.window),
        watchdog=messages.watchdog if held else math.inf,
        timer=_TIMERS.get(policy.code, "none"),
        idle_bypass=policy.idle_bypass,
        units=setting.units_per_instance,
        chunk=setting.chunk_tokens,
        requests_per_pass=setting.requests_per_pass,
        allocation=setting.allocation,
        target="free" if policy.by_freedom else "ring",
        ready="ended" if policy.while_left_over else "free",
        pace=messages.pace,
        interval=policy.interval,
        engine=setting.engine,
        announced=True,
        dispatch="ahead" if ahead else "ready",
        last_token=messages.last_token,
        margin=policy.margin,
        spacing=policy.spacing,
    )


def run_messages(
    requests: PrefillRequests, setting: PrefillSetting, seed: int, faults: FaultPlan, messages: Messages
) -> MessageRun:
    """Run `requests` through the world of messages.

    Parameters
    ----------
    requests, setting, seed
        As of `simulate_prefill`.
    """
    begin = compile_time.clock()
    _check(requests)
    world = world_of(requests, setting, seed, faults, messages)
    outcome = world.run(0.0, most_events=1000 * (len(requests) + 1000))
    columns, passes = _columns(world, requests, outcome), _passes(world)
    return MessageRun(
        requests, setting, seed, columns, passes, compile_time.clock() - begin, outcome=outcome, faults=faults
    )


def world_of(
    requests: PrefillRequests, setting: PrefillSetting, seed: int, faults: FaultPlan, messages: Messages
) -> World:
    """Return the world, ready to run.

    Parameters
    ----------
    requests, setting, seed, faults, messages
        As of `run_messages`.
    """
    protocol, policy = protocol_setting(setting, messages), setting.dispatch
    scheduler: TripleCheck | BoundOnArrival
    if policy.immediate:
        draws = np.random.default_rng([seed, 1]).random(len(requests))
        scheduler = BoundOnArrival(protocol, _IMMEDIATE[policy.code], draws.tolist())
    else:
        scheduler = TripleCheck(protocol)
    return World(
        scheduler,
        list(zip(requests.arrival.tolist(), requests.length.tolist(), strict=True)),
        faults,
        seed,
        poll_period=math.inf if policy.immediate else messages.polls,
        devices=Devices(
            setting.chunk_tokens,
            setting.requests_per_pass,
            setting.units_per_instance,
            setting.pass_time,
            setting.engine,
            tuple(setting.initial_phases(seed).tolist()),
        ),
        moments=messages.moments,
    )


def _check(requests: PrefillRequests) -> None:
    if requests.hits is not None:
        raise InputError("prompts have cached tokens; with messages nothing is cached, expected hits=None")


def _columns(world: World, requests: PrefillRequests, outcome: Outcome) -> dict[str, NDArray[Any]]:
    log = world.log
    finished = np.full(len(requests), np.nan)
    finished[list(outcome.delivered)] = outcome.delivered_at
    served = np.isfinite(finished)
    return {
        "arrival": requests.arrival,
        "dispatched": np.where(served, log.dispatched, np.nan),
        "began": np.where(served, log.began, np.nan),
        "finished": finished,
        "instance": np.where(served, log.instance, -1),
        "unit": np.where(served, log.unit, -1),
        "passes": log.passes,
        "deferred": log.deferred,
    }


def _passes(world: World) -> dict[str, NDArray[Any]]:
    rows = world.log.rows
    return {
        "instance": np.array([g for _, _, g, _ in rows], dtype=np.int64),
        "start": np.array([start for start, _, _, _ in rows], dtype=np.float64),
        "end": np.array([end for _, end, _, _ in rows], dtype=np.float64),
        "tokens": np.array([load.total for *_, load in rows], dtype=np.int64),
        "fullest": np.array([load.fullest for *_, load in rows], dtype=np.int64),
        "longest": np.array([load.longest for *_, load in rows], dtype=np.int64),
        "requests": np.array([load.requests for *_, load in rows], dtype=np.int64),
        "of_unit": np.array([load.of_unit for *_, load in rows], dtype=np.int64).reshape(
            len(rows), world.devices.units
        ),
    }
