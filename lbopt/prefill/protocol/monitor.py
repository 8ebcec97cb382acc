"""Watches a scheduler from outside, and says which promise it breaks.

It keeps books of its own from events and actions alone: which batches are live, where each request is, since when the
oldest wait. From the scheduler's state it takes the mean pass, the interval's due time and the claims to be checked.

Safety, at every event
    an instance gets no batch while one is live at it (a batch retires when its end of pass or an empty poll that knew
    of it is heard, when its deadline, fixed at dispatch, has passed and the watchdog rung, or with the instance);
    queued + in flight + done + refused = arrived, in tokens and by name; no request is delivered twice; U_flight >= 0.
No idle head
    the interval elapsed, a request waits, an instance is READY: a batch leaves.
Liveness
    no BUSY outlives its deadline. And with k the watchdog, P the largest mean pass so far (at most the longest pass
    that was measured, or the default), L the latency, as long as one and the same instance stays, requests that wait
    see a dispatch at least every
        gap = max(k P, P + L) with `spacing`,  k P + P + L with `tick`.
    Proof: a timeout is at most k P, and an interval at most (P + L) / 1. Whatever that instance was sent last, it is
    READY or SUSPECT k P later at the latest, and stays so until it is sent more. By then, or P + L after the last
    dispatch, the interval has elapsed; a lattice may need one more interval until its tick. With `patience` n every
    request therefore leaves or is refused within (n + 1) gap: each dispatch either takes it or leaves it behind.
"""

from __future__ import annotations

from lbopt.exceptions import LbOptError
from lbopt.prefill.protocol.messages import (
    Action,
    Arrival,
    Deliver,
    EndForward,
    Event,
    HealthCheck,
    IntervalTick,
    PollAnswer,
    Refuse,
    Send,
    Watchdog,
)
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import Phase, SchedulerState

#: s, of rounding in sums of times.
SLACK = 1e-9


class BrokenPromiseError(LbOptError):
    """The scheduler did what the protocol forbids."""


class Monitor:
    """Follows one run, event by event.

    Parameters
    ----------
    setting
        The scheduler's.
    """

    def __init__(self, setting: ProtocolSetting) -> None:
        self.setting = setting
        self.tokens: dict[int, int] = {}
        self.where: dict[int, str | tuple[int, int]] = {}
        self.waits_since: dict[int, float] = {}
        self.requeued: dict[int, int] = {}
        self.live: dict[int, tuple[int, float]] = {}
        self.joined: dict[int, float] = dict.fromkeys(range(setting.num_instances), 0.0)
        self.largest_mean = setting.default_pass
        self.last_cycle = 0.0

    @property
    def gap(self) -> float:
        """Most seconds between dispatches while a request waits and one instance stays; see the module."""
        watchdog, interval = self.setting.timeout(self.largest_mean), self.largest_mean + self.setting.latency
        return max(watchdog, interval) if self.setting.timer == "spacing" else watchdog + interval

    def after(self, before: SchedulerState, event: Event, state: SchedulerState, actions: tuple[Action, ...]) -> None:
        """Take one step of the scheduler; raises BrokenPromiseError.

        Parameters
        ----------
        before, state
            State of the scheduler before and after the event.
        event
            The event.
        actions
            What the scheduler did.
        """
        self._check_waiting(event.time)
        self.largest_mean = max(self.largest_mean, state.pace.mean_pass)
        self._enter(event)
        for action in actions:
            match action:
                case Send():
                    self._sent(action, event.time, state.pace.mean_pass)
                case Deliver():
                    self._move(action.request, "done", isinstance(self.where.get(action.request), tuple))
                case Refuse():
                    self._move(action.request, "refused", self.where.get(action.request) == "queued")
        self._check_books(state)
        self._check_instances(state)
        self._check_head(before, event, state, actions)

    def _enter(self, event: Event) -> None:
        match event:
            case Arrival():
                self.tokens[event.request] = event.tokens
                self._queue(event.request, event.time)
            case HealthCheck() if not event.healthy and event.instance in self.joined:
                del self.joined[event.instance]
                self.live.pop(event.instance, None)
                for request, place in self.where.items():
                    if isinstance(place, tuple) and place[0] == event.instance:
                        self._queue(request, event.time)
                        self.requeued[request] = self.requeued.get(request, 0) + 1
            case HealthCheck() if event.healthy:
                self.joined.setdefault(event.instance, event.time)
            case EndForward() | PollAnswer() | Watchdog() if event.instance in self.live:
                seq, deadline = self.live[event.instance]
                match event:
                    case EndForward():
                        retired = event.seq == seq
                    case PollAnswer():
                        retired = event.seq == seq and event.depth == 0
                    case Watchdog():
                        retired = event.time >= deadline
                if retired:
                    del self.live[event.instance]

    def _queue(self, request: int, time: float) -> None:
        if "queued" not in self.where.values():
            self.last_cycle = max(self.last_cycle, time)
        self.where[request] = "queued"
        self.waits_since[request] = time

    def _sent(self, action: Send, time: float, mean_pass: float) -> None:
        g = action.instance
        if g not in self.joined:
            raise BrokenPromiseError(f"at {time:g} s batch {action.seq} goes to instance {g}, which is removed")
        if g in self.live:
            raise BrokenPromiseError(
                f"at {time:g} s instance {g} gets batch {action.seq} while {self.live[g][0]} is live"
            )
        self.live[g] = action.seq, time + self.setting.timeout(mean_pass)
        self.last_cycle = time
        for request in action.requests:
            if self.where.get(request) != "queued":
                raise BrokenPromiseError(
                    f"at {time:g} s request {request} is sent, but it is {self.where.get(request)}"
                )
            self.where[request] = g, action.seq

    def _move(self, request: int, place: str, allowed: bool) -> None:
        if not allowed:
            raise BrokenPromiseError(f"request {request} becomes {place}, but it is {self.where.get(request)}")
        self.where[request] = place

    def _check_waiting(self, now: float) -> None:
        waiting = [request for request, place in self.where.items() if place == "queued"]
        if not waiting or not self.joined:
            return
        stays_since = min(self.joined.values())
        idle = now - max(self.last_cycle, stays_since)
        if idle > self.gap + SLACK:
            raise BrokenPromiseError(f"no dispatch for {idle:g} s at {now:g} s, bound {self.gap:g} s; {waiting} wait")
        if self.setting.patience is None and self.setting.batch_tokens is not None:
            return
        # A batch without a limit takes all waiting requests.
        cycles = 1 if self.setting.batch_tokens is None else (self.setting.patience or 0) + 1
        for request in waiting:
            waited = now - max(self.waits_since[request], stays_since)
            if waited > cycles * self.gap + SLACK:
                raise BrokenPromiseError(f"request {request} waits for {waited:g} s, bound {cycles * self.gap:g} s")

    def _check_books(self, state: SchedulerState) -> None:
        ledger = state.ledger
        claimed = {r: entry.holder or entry.place for r, entry in ledger.entries.items()}
        if claimed != self.where:
            wrong = {r: (claimed.get(r), place) for r, place in self.where.items() if claimed.get(r) != place}
            raise BrokenPromiseError(f"the ledger says {wrong} (first), what was heard and done says second")
        if sorted(ledger.queue) != sorted(r for r, place in self.where.items() if place == "queued"):
            raise BrokenPromiseError(f"the queue {ledger.queue} is not who waits")
        if sum(ledger.tokens().values()) != sum(self.tokens.values()):
            raise BrokenPromiseError(f"{ledger.tokens()} tokens do not add up to {sum(self.tokens.values())} arrived")

    def _check_instances(self, state: SchedulerState) -> None:
        for g, at in enumerate(state.instances):
            if at.in_flight < 0 or at.backlog < 0:
                raise BrokenPromiseError(f"instance {g} has {at.in_flight} tokens in flight and {at.backlog} left")
            if (at.phase is Phase.REMOVED) == (g in self.joined):
                raise BrokenPromiseError(f"instance {g} is {at.phase.value}, the health checks say otherwise")
            if at.phase is Phase.BUSY:
                if g not in self.live or self.live[g][0] != at.seq:
                    raise BrokenPromiseError(f"instance {g} waits for batch {at.seq}, which has retired")
                if state.now > self.live[g][1] + SLACK:
                    raise BrokenPromiseError(f"instance {g} is busy after its deadline {self.live[g][1]:g} s")

    def _check_head(
        self, before: SchedulerState, event: Event, state: SchedulerState, actions: tuple[Action, ...]
    ) -> None:
        elapsed = state.now >= state.due
        if self.setting.timer == "tick":
            elapsed = isinstance(event, IntervalTick) and event.time >= before.due
        ready = [g for g, at in enumerate(state.instances) if at.phase is Phase.READY]
        if elapsed and ready and state.ledger.queue and not any(isinstance(action, Send) for action in actions):
            raise BrokenPromiseError(
                f"the interval has elapsed, {state.ledger.queue} wait, {ready} are ready, none is sent"
            )
