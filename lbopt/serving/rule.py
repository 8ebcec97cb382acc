"""Any policy of lbopt on a live fleet: what a run keeps for a rule between decisions is kept here.

A simulation keeps for a compiled rule whose turn it is, the numbers that it draws, and the books of its front end; for
a rule that looks ahead, the forecasts of the running requests. A live rule keeps the same, so that on the same course
of events it decides as in the simulator. `decide` places what waits in a pool; `bind` binds one request on arrival.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.routing.codes import (
    BAND,
    BLOCK,
    BR_0_BYPASS,
    COUNTING_PROMPTS,
    DYNAMO,
    FIRST_BY_SCORE,
    IQR,
    KEEPING_BOOKS,
)
from lbopt.kernels.routing.state import PARAMETERS, Room, Shown, Waiting, parameters_of, turn_of
from lbopt.model import Trace
from lbopt.policies import ActiveRequests, CompiledPolicy, DecidingPolicy, Memory, Policy, foresight_of
from lbopt.policies.experts import FittedGuide
from lbopt.policies.relative_age import RelativeAge
from lbopt.policies.replay import Replay
from lbopt.predictors import Forecast, Forecaster, make_predictor
from lbopt.serving.state import BarrierGroup, FleetState, RequestTracker, Sight, WorkerMirror
from lbopt.serving.state.group import Forecasting

if TYPE_CHECKING:
    from lbopt.serving.locality import LocalityRule

Ints = NDArray[np.int64]

#: Requests that one table of forecasts has room for; then a new one begins, and forecasts are made anew.
_TABLE = 2**18


class LiveRule:
    """A policy with what it keeps between the decisions of one barrier group.

    Parameters
    ----------
    policy
        From `make_policy`, or anything with `name`, `admission` and `decide`.
    num_workers, slots
        Workers of the group at first, and slots of each.
    kv_capacity
        Tokens that a worker can hold; None where it is not known.
    training
        Requests that a predictor learns from.

    Raises
    ------
    InputError
        Where the policy needs what a live router has not.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        num_workers: int,
        slots: int,
        kv_capacity: int | None = None,
        training: Trace | None = None,
    ) -> None:
        refuse_offline(policy, training)
        self.policy = policy
        self.name = policy.name
        self.admission = policy.admission
        self.draws = isinstance(policy, CompiledPolicy) and policy.draws
        self._slots = slots
        self._kv_capacity = None if isinstance(policy, CompiledPolicy) else kv_capacity  # these look at their own
        self._turn = turn_of(0)
        self._turn_of = 0  # so many workers
        self.locality: LocalityRule | None = None
        self._forecasts = None if foresight_of(policy) is None else _Forecasts(policy, training)
        if isinstance(policy, CompiledPolicy):
            given = dict(policy.parameters)
            if policy.code >= FIRST_BY_SCORE:
                given |= {"front_ends": 1, "kv_capacity": kv_capacity or 0}
            self._parameters = parameters_of(**given)
            self._code = policy.code
            if policy.code == BAND:
                from lbopt.serving.locality import locality_of  # imports what no other rule needs

                self.locality = locality_of(policy, num_workers)
        if num_workers < 1:
            raise InputError("a barrier group has no worker; expected at least one")

    @property
    def is_immediate(self) -> bool:
        """Whether it binds a request when it arrives."""
        return self.admission == "immediate"

    @property
    def turn(self) -> int:
        """The worker at which rules stand that take workers in turn."""
        return int(self._turn.next_worker)

    @turn.setter
    def turn(self, worker: int) -> None:
        """Let such rules go on at this worker."""
        self._turn.next_worker, self._turn_of = worker, 0

    @property
    def forecasting(self) -> Forecasting | None:
        """Makes the forecasts that the rule asks for; None where it asks for none."""
        return None if self._forecasts is None else self._forecasts.forecast

    def tell_ended(self, tracker: RequestTracker) -> None:
        """Let a predictor that learns hear of a request that has finished."""
        if self._forecasts is not None:
            self._forecasts.tell_ended(tracker)

    def see(self, group: BarrierGroup, waiting: list[RequestTracker], at: float) -> Sight:
        """Return what the rule is shown of a group with the requests `waiting` to be decided."""
        return group.observe(
            waiting, at, open_only=self.is_immediate, forecasting=self.forecasting, kv_capacity=self._kv_capacity
        )

    def decide(self, sight: Sight) -> Ints:
        """Return the worker of each waiting request in pooled form, int64 (n,), -1 = keeps waiting.

        Raises
        ------
        InfeasibleDecisionError
            Where a policy in Python breaks a rule.
        """
        if isinstance(self.policy, CompiledPolicy):
            self._fit_turn(len(sight.workers))
            count = len(sight.waiting)
            sizes, waited = sight.ints("sizes", "waited")
            choice = np.zeros(count, dtype=np.int64) - 1
            load, free, running = sight.ints("loads", "free_slots", "running")
            room = Room(load, free, running, self._books(sight))
            # revealed that many steps before "step 0"
            waiting = Waiting(np.arange(count), sizes, -waited, self._uniforms(sight), 0)
            reach = self._decide(room, waiting, self._turn, choice)
            choice[reach:] = -1
            return choice
        assert isinstance(self.policy, DecidingPolicy)
        from lbopt.simulator.observer import (
            refuse_infeasible,  # with the simulator, which compiled rules do without
        )

        decision = np.asarray(self.policy.decide(sight.observation))
        refuse_infeasible(self.name, sight.observation, decision)
        return decision.astype(np.int64)

    def bind(self, sight: Sight) -> WorkerMirror | None:
        """Return the worker of the one request that `sight` shows, full or not; None holds it back.

        Raises
        ------
        InfeasibleDecisionError
            Where a policy in Python breaks a rule.
        """
        if self.locality is not None:
            worker = self.locality.choose(sight.workers, sight.waiting[0].signature)
        elif isinstance(self.policy, CompiledPolicy):
            worker = self._bound_by_kernel(sight)
        else:
            assert isinstance(self.policy, DecidingPolicy)
            from lbopt.simulator.observer import bound_worker

            worker = bound_worker(self.name, sight.observation, np.asarray(self.policy.decide(sight.observation)))
        return sight.workers[worker] if worker >= 0 else None

    def _bound_by_kernel(self, sight: Sight) -> int:
        from lbopt.kernels.routing import bypass, fifo, iqr

        self._fit_turn(len(sight.workers))
        load, running, queued, queued_tokens = sight.ints("loads", "running", "queued", "queued_tokens")
        shown = Shown(load, running, queued, queued_tokens, self._books(sight))
        if self._code == BR_0_BYPASS:
            return int(bypass.bind_bypassing(self._parameters, self._slots, sight.waiting[0].prompt, shown))
        if self._code == IQR:
            return int(iqr.bind_iqr(self._parameters, shown))
        none = np.zeros(0, dtype=np.int64)
        return int(fifo.bind(self._code, 0, self._parameters, shown, none, none, self._uniforms(sight), self._turn))

    @cached_property
    def _decide(self) -> Callable[..., int]:
        """The kernel of pooled rules with its first arguments; imported on use, when the process has chosen how."""
        from lbopt.kernels.routing.decide import decide

        is_compiled = hasattr(decide, "py_func")
        names = PARAMETERS.names or ()  # Python reads a field of a record ten times as slowly as an attribute
        plain = SimpleNamespace(**{name: int(getattr(self._parameters, name)) for name in names})
        return partial(decide, self._code, self._parameters if is_compiled else plain)

    def _fit_turn(self, num_workers: int) -> None:
        """Let the turn be that of a worker, where their number has changed."""
        if num_workers != self._turn_of:
            self._turn_of = num_workers
            self._turn.next_worker %= num_workers

    def _uniforms(self, sight: Sight) -> NDArray[np.float64]:
        return sight.draws if self.draws else np.zeros((0, 2))

    def _books(self, sight: Sight) -> Ints:
        """Return what is bound to each worker, int64 (G,): requests, prompt tokens, or prompts in blocks."""
        if self._code not in KEEPING_BOOKS:
            return np.zeros(0, dtype=np.int64)
        if self._code == DYNAMO:
            return np.array([worker.blocks_bound for worker in sight.workers], dtype=np.int64)
        if self._code in COUNTING_PROMPTS:
            return np.array([worker.prompts_bound for worker in sight.workers], dtype=np.int64)
        return np.array([worker.bound for worker in sight.workers], dtype=np.int64)


class _Forecasts:
    """The forecasts of running requests for one rule; numbers of requests grow without end, tables do not."""

    def __init__(self, policy: Policy, training: Trace | None) -> None:
        wanted = foresight_of(policy)
        assert wanted is not None
        self._wanted = wanted
        one = np.ones(1, dtype=np.int64)
        none = Trace(prompt=one, output=one)
        self._predictor = make_predictor(wanted.predictor, requests=none, training=training, horizon=wanted.horizon)
        self._base = 0
        self._forecaster = Forecaster(wanted, self._predictor, _TABLE)
        self._ended: list[tuple[int, int]] = []

    def tell_ended(self, tracker: RequestTracker) -> None:
        if self._forecaster.learns:
            self._ended.append((tracker.prompt, tracker.generated))

    def forecast(self, active: ActiveRequests, waiting: Ints, sizes: Ints) -> Forecast:
        """Return the forecast of the running requests and of those that wait, int64 (n,) numbers and prompt tokens."""
        newest = max((int(numbers.max()) for numbers in (active.requests, waiting) if numbers.size), default=0)
        oldest = min((int(numbers.min()) for numbers in (active.requests, waiting) if numbers.size), default=newest)
        if newest - self._base >= _TABLE or oldest < self._base:
            self._base = oldest if newest - oldest < _TABLE else newest - _TABLE + 1
            self._forecaster = Forecaster(self._wanted, self._predictor, _TABLE)
        if self._ended:
            told = np.array(self._ended, dtype=np.int64)
            self._forecaster.tell(told[:, 0].copy(), told[:, 1].copy())
            self._ended.clear()
        return self._forecaster.forecast(
            np.maximum(active.requests - self._base, 0),
            active.prompt,
            active.generated,
            np.maximum(waiting - self._base, 0),
            sizes,
        )


def warm_rule(rule: LiveRule, num_workers: int, slots: int) -> None:
    """Let a rule decide on a small fleet of the same kind, which compiles what it calls; its turn stays."""
    fleet = FleetState()
    group = fleet.add_group("warm", "warm")
    for g in range(min(num_workers, 8)):
        fleet.worker_up("warm", str(g), slots)
    for size in (300, 20, 700):
        fleet.prefilled(fleet.arrived("warm", size, 0.0), 0.0)
    turn = rule.turn
    if rule.locality is not None:
        rule.locality.warm()
    waiting = list(group.pool)
    if rule.is_immediate:
        rule.bind(rule.see(group, waiting[:1], 0.0))
    else:
        fleet.dispatched(waiting[0], group.workers[0], 0.0)
        sight = rule.see(group, waiting[1:], 0.0)
        rule.decide(sight)
        if sight.fields["memory"] is not None:  # and where memory decides: 50 blocks, of which 700 tokens need 45
            full = np.full(len(sight.workers), 50, dtype=np.int64)
            scarce = sight.fields | {"memory": Memory(BLOCK, full, full // 10)}
            rule.decide(Sight(scarce, sight.workers, sight.waiting))
    rule.turn = turn


def refuse_offline(policy: Policy, training: Trace | None) -> None:
    """Refuse a policy that needs what a live router has not."""
    if isinstance(policy, RelativeAge):
        raise policy.not_in_a_run()
    if isinstance(policy, Replay):
        raise InputError(f"policy '{policy.name}' follows a log of past requests; a live router needs a rule")
    if isinstance(policy, CompiledPolicy) and isinstance(policy.guide, FittedGuide) and policy.guide.table is None:
        raise InputError(
            f"policy '{policy.name}' fits a table to requests that tell their experts, and a live router has none; fit "
            "one with `lbopt fit` and name it: eldr:table=FILE"
        )
    is_table = isinstance(policy, CompiledPolicy) and isinstance(policy.guide, FittedGuide)
    if isinstance(policy, CompiledPolicy) and not is_table and (policy.guide is not None or policy.code == BAND):
        raise InputError(
            f"policy '{policy.name}' goes by labels of requests, which no engine tells a router; take eldr with a "
            "table, or a rule that goes by tokens or requests"
        )
    wanted = foresight_of(policy)
    if wanted is not None and wanted.predictor.partition(":")[0] == "oracle":
        raise InputError(f"policy '{policy.name}' asks the oracle, who knows a trace; name another predictor")
    if wanted is not None and training is None:
        raise InputError(
            f"policy '{policy.name}' forecasts how long requests run and has none to learn from; name past requests "
            "with --train-on TRACE"
        )
