"""When a rule decides: the rules of a router's groups, and the rounds of the decode dispatcher.

The rules of a router's groups: made from text, compiled before the first request comes, and when they may decide.

A round on arrival places a request as soon as a slot is free. A round at the end of a step (`StepEnds`) sees all who
have come during the step and all slots that its last tokens have freed, and places them together: the order of events
of the simulator (the manual, *simulator*, "Steps and decisions"). Who comes during a step counts as revealed
at its end.

A group may decide where its step has advanced since its last round, where nothing is bound to it, or where no step has
ended for `longest` seconds: tokens of answers that do not stream show at their end alone.

The decode dispatcher: when a request waits and a slot is free, one round of the rule, and all are sent at once.

It sleeps until an event wakes it: a request joins the pool, a slot is freed, a worker joins. Events of one turn of the
event loop make one round. With `step_ends` a group decides once in a step instead, see there. A request that has waited
for the age bound is placed before all younger ones: the rule is shown the overdue ones alone, and where it holds one
back all the same, the lightest worker with a free slot gets it. So is one that a worker refused, on a worker that has
not, and so are all requests of a model whose round fails.

A rule in Python (`bf-io`, a file of the user's) decides in a thread, with a deadline; where it is late, or breaks, the
fall-back rule decides. What it decided on may have changed meanwhile: a placement that no longer fits is dropped, and
the next round sees that request again.

Source: BalanceRoute (arXiv 2605.06113), section 5, the decode dispatcher.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, make_policy
from lbopt.serving.process import call_when_settled, is_virtual
from lbopt.serving.router.fleet_file import GroupPlan
from lbopt.serving.router.job import Job
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.rule import LiveRule, warm_rule
from lbopt.serving.state import BarrierGroup, Dispatch, FleetState, Pool, RequestTracker, Sight, Stage, WorkerMirror
from lbopt.serving.state.group import chosen

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


_log = logging.getLogger(__name__)

#: Told of each decision: the sight, the worker of each position or -1, the rule, and the seconds of its stages.
Look = Callable[[Sight, NDArray[np.int64], str, "Stages"], None]


@dataclass(slots=True)
class Stages:
    """Seconds that the stages of one decision took."""

    observe: float
    decide: float
    send: float = 0.0


class Dispatcher:
    """Places what waits.

    Parameters
    ----------
    fleet
        The state.
    rules, fallbacks
        The rule of each group, and the one that decides where it cannot, by the name of the group.
    clock
        The time, s.
    options
        Of the operator: bounds of waiting and of deciding.
    look
        Told of each decision.
    step_ends
        Says when a group may decide, where decisions wait for the end of a step; None = they do not.
    """

    def __init__(
        self,
        fleet: FleetState,
        rules: dict[str, LiveRule],
        fallbacks: dict[str, LiveRule],
        clock: Callable[[], float],
        options: RouterOptions,
        *,
        look: Look | None = None,
        step_ends: StepEnds | None = None,
    ) -> None:
        self.fleet = fleet
        self.rules = rules
        self.fallbacks = fallbacks
        self.is_ready = False
        self.late_decisions = 0
        self.failed_decisions = 0
        self.rounds = 0
        self.failed_rounds = 0
        self.faults: dict[str, str] = {}  # by model, why its last round failed
        self._clock = clock
        self._options = options
        self._look = look
        self.step_ends = step_ends
        self._alarm: asyncio.TimerHandle | None = None
        self._scheduled = False
        self._thinking: dict[str, asyncio.Task[None]] = {}
        self._busy_thread: asyncio.Future[NDArray[np.int64]] | None = None

    def wake(self) -> None:
        """Have a round in this turn of the event loop, however many events ask for it."""
        if not self._scheduled and self.is_ready:
            self._scheduled = True
            if self.step_ends is None:
                asyncio.get_running_loop().call_soon(self._run)
            else:
                call_when_settled(self._run, self._options.settle_seconds)

    def _run(self) -> None:
        self._scheduled = False
        try:
            self.round()
        except Exception:
            _log.exception("a round of the dispatcher failed")

    def round(self) -> None:
        """Place what can be placed now."""
        self.rounds += 1
        for pool in self.fleet.pools.values():
            try:
                groups = [group for group in pool.groups if group.workers]
                if self.step_ends is not None:
                    groups = [group for group in groups if self.step_ends.may_decide(group)]
                if len(pool) and groups:
                    self._place_by_load([tracker for tracker in pool if _was_refused(tracker)], groups)
                    self._serve(pool, groups)
            except Exception as error:
                self._note_fault(pool, error)
        if self.step_ends is not None:
            self._set_alarm(self.step_ends.longest)

    def _set_alarm(self, seconds: float) -> None:
        """Have a round later although no step ends, where a request waits."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self.is_ready and any(len(pool) for pool in self.fleet.pools.values()):
            self._alarm = asyncio.get_running_loop().call_later(seconds, self.wake)

    def _serve(self, pool: Pool, groups: list[BarrierGroup]) -> None:
        if self.rules[groups[0].name].is_immediate:
            self._bind(pool, groups)
            return
        able = [group for group in groups if group.free_slots and group.name not in self._thinking]
        for group, share in _shares(_for_rule(pool), able):
            rule = self.rules[group.name]
            if not isinstance(rule.policy, CompiledPolicy):
                self._thinking[group.name] = asyncio.get_running_loop().create_task(self._think(group, rule, share))
                continue
            overdue = self._overdue(group, share)
            if overdue:
                self._decide(group, rule, overdue)
                self._place_by_load([tracker for tracker in overdue if tracker.stage is Stage.WAITING], [group])
            waiting = [tracker for tracker in share if tracker.stage is Stage.WAITING] if overdue else share
            if group.free_slots and waiting:
                self._decide(group, rule, waiting)

    def _overdue(self, group: BarrierGroup, share: list[RequestTracker]) -> list[RequestTracker]:
        """Return the requests that go first because of their age, as many as there are free slots."""
        bound, now = self._options.age_bound, self._clock()
        if not bound:
            return []
        return list(takewhile(lambda tracker: now - tracker.pooled_at >= bound, share[: group.free_slots]))

    def _place_by_load(self, trackers: list[RequestTracker], groups: list[BarrierGroup]) -> None:
        """Place requests without a rule: on the lightest worker that has room, of those that have not refused it."""
        for tracker in trackers:
            job = tracker.payload
            able = [worker for group in groups for worker in group.open_workers]
            if isinstance(job, Job):
                able = [worker for worker in able if worker not in job.tried] or able
            free = [w for w in able if w.free_slots or self.rules[w.group.name].is_immediate]
            if free:
                self._send([Dispatch(tracker, min(free, key=lambda worker: worker.virtual_load))])

    def _note_fault(self, pool: Pool, error: Exception) -> None:
        """Note that a round failed, and place its requests all the same: other models, and this one, go on."""
        self.failed_rounds += 1
        if pool.model not in self.faults or self.failed_rounds % 1000 == 0:
            _log.error("a round for model '%s' failed, requests are placed by load", pool.model, exc_info=error)
        self.faults[pool.model] = f"{type(error).__name__}: {error}"[:200]
        self._place_by_load(list(pool), pool.groups)

    def _decide(self, group: BarrierGroup, rule: LiveRule, waiting: list[RequestTracker]) -> None:
        begin = time.perf_counter()
        sight = rule.see(group, waiting, self._clock())
        seen = time.perf_counter()
        decision = rule.decide(sight)
        self._carry_out(sight, decision, rule, Stages(seen - begin, time.perf_counter() - seen))

    def _carry_out(self, sight: Sight, decision: NDArray[np.int64], rule: LiveRule, stages: Stages) -> None:
        begin = time.perf_counter()
        if self.faults and sight.waiting:
            self.faults.pop(sight.waiting[0].pool.model, None)
        self._send(_with_room(chosen(sight, decision)))
        stages.send = time.perf_counter() - begin
        if self._look is not None:
            self._look(sight, decision, rule.name, stages)

    def _send(self, dispatches: list[Dispatch]) -> None:
        now = self._clock()
        for tracker, worker in dispatches:
            if self.fleet.dispatched(tracker, worker, now) and isinstance(tracker.payload, Job):
                tracker.payload.place(worker)

    # -- rules that bind a request on arrival

    def _bind(self, pool: Pool, groups: list[BarrierGroup]) -> None:
        for tracker in _for_rule(pool):
            worker = self._bind_one(tracker, groups)
            if worker is None:
                return
            self._send([Dispatch(tracker, worker)])

    def _bind_one(self, tracker: RequestTracker, groups: list[BarrierGroup]) -> WorkerMirror | None:
        """Return the worker of the head of the pool, in the least crowded group that has one for it."""
        begin, now = time.perf_counter(), self._clock()
        self.faults.pop(tracker.pool.model, None)
        able = [group for group in groups if group.open_workers]
        if len(able) > 1:
            able.sort(key=lambda group: sum(w.bound for w in group.workers) / sum(w.slots for w in group.workers))
        for group in able:
            rule = self.rules[group.name]
            sight = rule.see(group, [tracker], now)
            seen = time.perf_counter()
            try:
                worker = rule.bind(sight)
            except Exception as error:
                self._note_failure(rule, error)
                rule = self.fallbacks[group.name]
                worker = rule.bind(sight) if rule.is_immediate else min(sight.workers, key=lambda w: w.virtual_load)
            if worker is not None:
                if self._look is not None:
                    stages = Stages(seen - begin, time.perf_counter() - seen)
                    self._look(sight, np.array([sight.workers.index(worker)]), rule.name, stages)
                return worker
        return None

    # -- rules that take their time

    async def _think(self, group: BarrierGroup, rule: LiveRule, share: list[RequestTracker]) -> None:
        """Make one decision of a rule in Python."""
        placed = 0
        try:
            share = [tracker for tracker in share if tracker.stage is Stage.WAITING]
            waiting = self._overdue(group, share) or share
            begin = time.perf_counter()
            sight = rule.see(group, waiting, self._clock())
            seen = time.perf_counter()
            decision, decider = None, rule
            if self._busy_thread is None or self._busy_thread.done():
                self._busy_thread = _in_thread(rule, sight)
                try:
                    decision = await asyncio.wait_for(asyncio.shield(self._busy_thread), self._options.decision_seconds)
                except TimeoutError:
                    self.late_decisions += 1
                    self._busy_thread.add_done_callback(_forget)
                except Exception as error:
                    self._note_failure(rule, error)
            else:
                self.late_decisions += 1
            if decision is None:
                decider = self.fallbacks[group.name]
                waiting = [tracker for tracker in waiting if tracker.stage is Stage.WAITING]
                sight = decider.see(group, waiting, self._clock())
                decision = decider.decide(sight)
            decision = _still_fitting(sight, decision)
            placed = int(np.count_nonzero(decision >= 0))
            self._carry_out(sight, decision, decider, Stages(seen - begin, time.perf_counter() - seen))
        except Exception as error:
            self._note_fault(group.pool, error)
        finally:
            del self._thinking[group.name]
            if placed:
                self.wake()  # with `step_ends` nothing is placed before the next step

    def _note_failure(self, rule: LiveRule, error: Exception) -> None:
        self.failed_decisions += 1
        if self.failed_decisions <= 10 or self.failed_decisions % 1000 == 0:
            _log.warning("rule '%s' failed, the fall-back rule decides: %s", rule.name, error)

    async def close(self) -> None:
        """End: no further round."""
        self.is_ready = False
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self._thinking.values()):
            task.cancel()


def _shares(
    waiting: list[RequestTracker], groups: list[BarrierGroup]
) -> list[tuple[BarrierGroup, list[RequestTracker]]]:
    """Split who waits over groups: each to the one with fewest tokens a worker, first among those with a slot left."""
    if len(groups) < 2:
        return [(group, waiting) for group in groups if waiting]
    shares: dict[BarrierGroup, list[RequestTracker]] = {group: [] for group in groups}
    left = {group: group.free_slots for group in groups}
    size = {group: len(group.at_barrier) for group in groups}
    load = {group: sum(worker.virtual_load for worker in group.at_barrier) / size[group] for group in groups}
    for tracker in waiting:
        group = min(groups, key=lambda group: (left[group] <= 0, load[group], group.place))
        shares[group].append(tracker)
        left[group] -= tracker.sequences
        load[group] += tracker.prompt / size[group]
    return [(group, share) for group, share in shares.items() if share]


def _with_room(dispatches: list[Dispatch]) -> list[Dispatch]:
    """Return the dispatches for which there is room when each sequence takes a slot.

    A request that finds fewer than it needs goes to the lightest worker of the group that has them; where none has, it
    gets the next slots of its own.
    """
    if all(tracker.sequences == 1 for tracker, _ in dispatches):
        return dispatches
    workers = dispatches[0].worker.group.workers
    left = {worker: worker.free_slots for worker in workers}
    kept = []
    for tracker, worker in dispatches:
        if left[worker] < tracker.sequences:
            able = [other for other in workers if left[other] >= tracker.sequences]
            worker = min(able, key=lambda other: other.virtual_load, default=worker)
        if left[worker] > 0:
            left[worker] -= tracker.sequences
            kept.append(Dispatch(tracker, worker))
    return kept


def _for_rule(pool: Pool) -> list[RequestTracker]:
    """Return who waits for the rule to decide: not those that a worker refused, which go by load."""
    return [tracker for tracker in pool if not _was_refused(tracker)]


def _was_refused(tracker: RequestTracker) -> bool:
    """Return whether a request has come back from a worker that did not take it."""
    return isinstance(tracker.payload, Job) and bool(tracker.payload.tried)


def _still_fitting(sight: Sight, decision: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the decision without what no longer fits: who has gone, and who has no slot there any more."""
    left = [worker.free_slots for worker in sight.workers]
    kept = np.full(len(sight.waiting), -1, dtype=np.int64)
    for position, worker in enumerate(decision.tolist()):
        if worker >= 0 and left[worker] > 0 and sight.waiting[position].stage is Stage.WAITING:
            left[worker] -= 1  # one of several sequences gets its room by `_with_room`
            kept[position] = worker
    return kept


def _in_thread(rule: LiveRule, sight: Sight) -> asyncio.Future[NDArray[np.int64]]:
    """Let a rule decide in a thread of its own, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    if is_virtual(loop):  # its time stands still until the rule has decided
        thread: asyncio.Future[NDArray[np.int64]] = loop.run_in_executor(None, rule.decide, sight)
        return thread
    answer: asyncio.Future[NDArray[np.int64]] = loop.create_future()

    def tell(settle: Callable[[Any], None], what: Any) -> None:
        if not answer.done():
            settle(what)

    def work() -> None:
        told: tuple[Callable[[Any], None], Any]
        try:
            told = answer.set_result, rule.decide(sight)
        except BaseException as error:
            told = answer.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, *told)

    threading.Thread(target=work, name=f"rule {rule.name}", daemon=True).start()
    return answer


def _forget(answer: asyncio.Future[NDArray[np.int64]]) -> None:
    """Take note of what a late rule raised, so that asyncio does not complain that it was never looked at."""
    if not answer.cancelled():
        answer.exception()
