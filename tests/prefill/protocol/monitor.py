"""Watches a scheduler from outside, and says which promise it breaks.

It keeps books of its own from events and actions alone: which batches are live, where each request is, since when the
oldest wait, what the timers are set to. From the scheduler's state it takes the typical pass, the interval's due time
and the claims to be checked; the rest of what it claims is checked in `claims`.

Safety, at every event
    an instance gets no batch while one is live at it (a batch retires when its end of pass or an empty poll that knew
    of it is heard, or with `last_token` the last first token of all that the instance has; when its deadline, fixed at
    dispatch, has passed and the watchdog rung, with the instance, or when the instance names a newer epoch); queued +
    in flight + done + refused = arrived, in tokens and by name; no request is delivered twice; U_flight >= 0.
Requests come back into the queue
    at once, if their instance is removed or names a newer epoch, or a batch is named as missing, or was acknowledged
    and is not known any more; by a timer not sooner than a watchdog's time after they were sent; for no other reason.
No idle head
    the interval elapsed, a request waits, an instance is READY: a batch leaves.
No prompt to a suspect while another lives
    a SUSPECT gets a batch only if no other instance is READY, or BUSY with a batch that it got as READY.
No holder without a timer
    whoever is BUSY, SUSPECT or has requests that are not done has a timer, set to no later than what is due first.
Liveness
    no BUSY outlives its deadline. And with k the watchdog, P the largest typical pass so far (never above the setting's
    `longest_pass`), L the latency, e how late a timer may be, as long as one and the same instance stays, requests that
    wait see a dispatch at least every
        gap = max(k P, P + L) + e with `spacing`,  k P + P + L + e with `tick`.
    Proof: a timeout is at most k P, and an interval at most (P + L) / 1. Whatever the instances were sent last, all of
    them are READY or SUSPECT k P after the last dispatch at the latest, and stay so until one is sent more. By then, or
    P + L after the last dispatch, the interval has elapsed, and one of them is served: a READY one, or, as then none
    lives, a SUSPECT; a lattice may need one more interval until its tick. With `patience` n every request therefore
    leaves or is refused within (n + 1) gap of being queued: each dispatch either takes it or leaves it behind.
With batches by an allocation
    an instance may be ready and have no room, or the rule may keep all that wait, until a pass has ended; and the next
    one of a ring is waited for until a second interval. So requests that wait see a dispatch, or hear of the end of a
    pass, at least every  k P + 2 (P + L) + e,  and X has n + p of these gaps. That the head is not idle is not checked,
    and no gap of an engine that goes back-to-back: it takes a batch when the end of a pass is heard, which may be lost.
Served within
    Let one instance live from some time on: it stays up in one epoch, messages between it and the scheduler arrive, and
    it is heard of at most S s after each pass began. Then each request is served or refused within
        X = (f + 1) ((n + 1) gap + (p + 2) W),   W = max(k P + e, S),
    where n requests were not served yet, their work and that on the devices takes p passes, and f is how often the
    request is queued again. Proof: each of at most n + 1 dispatches takes one or more of the n requests and it. On an
    instance, it waits for at most p passes, of each of which is heard within W, or it is queued again by the timer: W
    for the live batch to be acknowledged or given up, W for answers on their way. Without faults from that time on, f
    is at most N for N instances: each other one can lose what it held, once, as no suspect is served while the living
    one lives, and the living one what it was sent before.
Batches sent ahead (`dispatch` ``ahead``)
    More than one batch may be live at an instance: what it was sent for the pass to come while one runs. The deadline
    of a BUSY one is at most 2 k P from when its first live batch was sent, or from what was last heard of its passes or
    in answer: k P until the batch can begin, and the watchdog. If it passes, all batches come back, also those that
    were sent later. There is no interval, and instead of *no idle head*: while a request waits a timer is set. In the
    proofs an end of a pass and a first token count like a dispatch: while requests wait, one of them comes every
        gap = 2 k P + P + L + e.
    For who gets nothing is SUSPECT while another lives, or is reckoned to have something for the pass to come. It then
    holds a request and is BUSY, or has a deadline k P from what was last heard; or it waits for the spacing of starts,
    which ends k P after the last dispatch. And as p passes end,
        X = (f + 1) ((n + p + 1) gap + (p + 2) W),   W = max(2 k P + e, S).
"""

from __future__ import annotations

import math

from prefill.protocol.claims import BrokenPromiseError, Claims

from lbopt.prefill.protocol.messages import (
    Action,
    ArmWatchdog,
    Arrival,
    Deliver,
    EndForward,
    Event,
    FirstToken,
    HealthCheck,
    IntervalTick,
    PollAnswer,
    PollTick,
    Refuse,
    Send,
    WakeAt,
    Watchdog,
)
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import Phase, SchedulerState

#: s, of rounding in sums of times, and of a timer's resolution.
SLACK = 1e-8
#: Among the timers, that of the interval.
_INTERVAL = -1


class Monitor:
    """Follows one run, event by event.

    Parameters
    ----------
    setting
        The scheduler's.
    late
        s, by how much a timer may ring too late.
    """

    def __init__(self, setting: ProtocolSetting, late: float = 0.0) -> None:
        self.setting, self.late = setting, late
        self.ahead_of_ends = setting.dispatch == "ahead"
        #: When the live batches of an instance began to be watched: with the first of them, and anew when it got on.
        self.since: dict[int, float] = {}
        #: Timeouts of a watchdog until a deadline, at most.
        self.patience = 2 if self.ahead_of_ends else 1
        self.tokens: dict[int, int] = {}
        self.where: dict[int, str | tuple[int, int]] = {}
        self.waits_since: dict[int, float] = {}
        self.requeued: dict[int, int] = {}
        self.live: dict[int, tuple[int, float, float]] = {}
        self.sent_at: dict[tuple[int, int], float] = {}
        self.timer: dict[int, float] = {}
        self.epoch = [0] * setting.num_instances
        self.joined: dict[int, float] = dict.fromkeys(range(setting.num_instances), 0.0)
        self.largest_pass = self.smallest_pass = setting.default_pass
        self.last_cycle = self.last_end = 0.0
        self.clock = self.ahead = 0.0
        self.sums = dict.fromkeys(("queued", "in flight", "done", "refused"), 0)
        self.open: set[int] = set()
        self._named_newer = False
        self.tried: set[tuple[int, int, int]] = set()
        self.gone: dict[str | tuple[int, int], float] = {}
        self.claims = Claims(setting)

    @property
    def gap(self) -> float:
        """Most seconds between dispatches while a request waits and one instance stays; see the module."""
        watchdog, interval = self.setting.timeout(self.largest_pass), self.largest_pass + self.setting.latency
        if self.ahead_of_ends:
            return 2 * watchdog + interval + self.late
        if self.setting.allocation is not None:
            return watchdog + 2 * interval + self.late
        return (max(watchdog, interval) if self.setting.timer == "spacing" else watchdog + interval) + self.late

    def served_within(self, waiting: int, passes: int, heard_within: float) -> float:
        """Return X, s; see the module.

        Parameters
        ----------
        waiting
            n, requests that are not served.
        passes
            p, that their work and that on the devices takes.
        heard_within
            S, s.
        """
        patience = self.patience * self.setting.timeout(self.largest_pass)
        heard = max(patience + self.late, heard_within + 2 * self.setting.latency)
        again = self.setting.num_instances
        if self.ahead_of_ends or self.setting.allocation is not None:
            waiting += passes
        return (again + 1) * ((waiting + 1) * self.gap + (passes + 2) * heard)

    def after(
        self,
        before: SchedulerState,
        event: Event,
        state: SchedulerState,
        actions: tuple[Action, ...],
        now: float | None = None,
    ) -> None:
        """Take one step of the scheduler; raises BrokenPromiseError.

        Parameters
        ----------
        before, state
            State of the scheduler before and after the event.
        event
            The event.
        actions
            What the scheduler did.
        now
            True time, s; None = the clock is right.
        """
        now = event.time if now is None else now
        # The scheduler's own time: it stands still where the clock steps back.
        step = max(0.0, self.clock - event.time - self.ahead)
        self.ahead += step
        # Timers were set to readings of the clock, which come so much later now.
        self.timer = {which: time + step for which, time in self.timer.items()} if step else self.timer
        self.clock = event.time + self.ahead
        if abs(state.now - self.clock) > SLACK:
            raise BrokenPromiseError(f"the scheduler's time is {state.now:g} s; expected {self.clock:g} s")
        # The same but for rounding, which may not decide whether a deadline has passed.
        self.clock = state.now
        self._check_waiting(now)
        self.largest_pass = max(self.largest_pass, state.pace.typical)
        self.smallest_pass = min(self.smallest_pass, state.pace.typical)
        self._enter(event, now)
        self._check_books(event, state, actions, now)
        for action in actions:
            match action:
                case Send():
                    self._sent(action, state, now)
                case ArmWatchdog():
                    self.timer[action.instance] = action.deadline + self.ahead
                case WakeAt():
                    self.timer[_INTERVAL] = action.time + self.ahead
        self._check_instances(state, now)
        self._check_pace(before, state)
        self._check_head(before, event, state, actions)
        self.claims.after(before, event, state, actions, sum(self.requeued.values()))

    def _enter(self, event: Event, now: float) -> None:
        self._named_newer = False
        match event:
            case Arrival() if event.request not in self.where:
                self.tokens[event.request] = event.tokens
                self.sums["queued"] += event.tokens
                self.open.add(event.request)
                self._queue(event.request, now)
            case HealthCheck() if not event.healthy and event.instance in self.joined:
                del self.joined[event.instance]
                self.live.pop(event.instance, None)
            case HealthCheck() if event.healthy:
                self.joined.setdefault(event.instance, now)
                self._epoch(event.instance, event.epoch)
            case EndForward() | PollAnswer() | FirstToken() if event.instance in self.joined:
                if not 0 < event.epoch < self.epoch[event.instance]:
                    self._epoch(event.instance, event.epoch)
                    self._retire(event, now)
                    self._left(event, now)
                    if self.setting.allocation is not None and isinstance(event, EndForward):
                        self.last_end = now
            case IntervalTick():
                self.timer.pop(_INTERVAL, None)
            case Watchdog():
                self.timer.pop(event.instance, None)
                self._ring(event.instance)
            case PollTick():
                for g in tuple(self.live):
                    self._ring(g)

    def _epoch(self, g: int, epoch: int) -> None:
        self._named_newer = 0 < self.epoch[g] < epoch
        if self._named_newer:
            self.live.pop(g, None)
        self.epoch[g] = max(self.epoch[g], epoch)

    def _retire(self, event: EndForward | PollAnswer | FirstToken, now: float) -> None:
        if self.ahead_of_ends and not isinstance(event, PollAnswer):
            self.last_cycle = now
        if event.instance not in self.live:
            return
        batch, ends = self.live[event.instance][0], isinstance(event, EndForward)
        received = isinstance(event, EndForward) and event.newest == batch and self.setting.ready == "free"
        if isinstance(event, FirstToken):
            self._renew(event.instance, event.seq, now)
            freed = self.setting.last_token and not self.ahead_of_ends
            if freed and event.seq == batch and self._is_last(event):
                del self.live[event.instance]
        elif received or (event.seq == batch and (ends or event.depth == 0)):
            del self.live[event.instance]
        elif isinstance(event, EndForward):
            self._renew(event.instance, event.seq, now)

    def _is_last(self, event: FirstToken) -> bool:
        """Whether a first token is of the only request that its instance has still to answer."""
        g = event.instance
        held = [r for r in self.open if isinstance(at := self.where[r], tuple) and at[0] == g]
        return held == [event.request] and (event.request, g, event.seq) in self.tried

    def _renew(self, g: int, seq: int, now: float) -> None:
        """An instance that is sent batches ahead got on: its deadline is later."""
        if self.ahead_of_ends and seq <= self.live[g][0]:
            newest, due, by = self.live[g]
            self.live[g] = newest, due, max(by, now + self.setting.timeout(self.largest_pass))

    def _left(self, event: EndForward | PollAnswer | FirstToken, now: float) -> None:
        """Note the batches of which the instance says that nothing is left."""
        if isinstance(event, FirstToken):
            return
        left = event.remaining if isinstance(event, EndForward) else event.depth
        oldest = event.oldest if left else event.seq + 1
        for request in self.open:
            at = self.where[request]
            if isinstance(at, tuple) and at[0] == event.instance and at[1] < oldest and at[1] <= event.seq:
                self.gone.setdefault(at, now)

    def _ring(self, g: int) -> None:
        if g in self.live and self.clock >= self.live[g][1]:
            del self.live[g]

    def _queue(self, request: int, now: float) -> None:
        if "queued" not in (self.where[other] for other in self.open if other in self.where):
            self.last_cycle = max(self.last_cycle, now)
        self.where[request] = "queued"
        self.waits_since[request] = now

    def _sent(self, action: Send, state: SchedulerState, now: float) -> None:
        g = action.instance
        if g not in self.joined:
            raise BrokenPromiseError(f"at {now:g} s batch {action.seq} goes to instance {g}, which is removed")
        if g in self.live and not self.ahead_of_ends:
            raise BrokenPromiseError(
                f"at {now:g} s instance {g} gets batch {action.seq} while {self.live[g][0]} is live"
            )
        alive = [other for other, at in enumerate(state.instances) if other != g and at.lives]
        if state.instances[g].on_trial and alive:
            raise BrokenPromiseError(f"at {now:g} s batch {action.seq} goes to the suspect {g}, while {alive} live")
        timeout = self.patience * self.setting.timeout(state.pace.typical)
        due, by = self.live[g][1:] if g in self.live else (self.clock + timeout, now + timeout)
        if g not in self.live:
            self.since = {**self.since, g: self.clock}
        self.live[g] = action.seq, due, by
        self.sent_at[g, action.seq] = self.clock
        self.last_cycle = now

    def _may_come_back(self, event: Event, g: int, seq: int) -> bool:
        """Whether the event is a reason to queue again what instance `g` has of batch `seq`."""
        match event:
            case Watchdog() if event.instance != g:
                return False
            case Watchdog() | PollTick():
                timeout = self.setting.timeout(self.smallest_pass)
                since = self.sent_at[g, seq]
                if self.ahead_of_ends:
                    since = min(since, self.since.get(g, math.inf))
                return self.clock >= since + timeout - SLACK
        return self._must_come_back(event, g, seq)

    def _must_come_back(self, event: Event, g: int, seq: int) -> bool:
        """Whether the event says that instance `g` has lost batch `seq`."""
        if getattr(event, "instance", None) != g:
            return False
        if isinstance(event, HealthCheck) and not event.healthy:
            return True
        if self._named_newer:
            return True
        if isinstance(event, EndForward | PollAnswer) and not 0 < event.epoch < self.epoch[g]:
            forgotten = event.asked if isinstance(event, PollAnswer) and event.asked > event.seq else 0
            return seq in event.missing or seq <= forgotten
        return False

    def _check_waiting(self, now: float) -> None:
        if self.setting.engine == "back-to-back":
            return
        waiting = [request for request in self.open if self.where[request] == "queued"]
        if not waiting or not self.joined:
            return
        stays_since = min(self.joined.values())
        idle = now - max(self.last_cycle, stays_since, self.last_end)
        if idle > self.gap + SLACK:
            raise BrokenPromiseError(f"no dispatch for {idle:g} s at {now:g} s, bound {self.gap:g} s; {waiting} wait")
        limited = self.setting.batch_tokens is not None or self.setting.allocation is not None
        if self.ahead_of_ends or (self.setting.patience is None and limited):
            return
        # A batch without a limit takes all waiting requests.
        cycles = (self.setting.patience or 0) + 1 if limited else 1
        for request in waiting:
            waited = now - max(self.waits_since[request], stays_since)
            if waited > cycles * self.gap + SLACK:
                raise BrokenPromiseError(f"request {request} waits for {waited:g} s, bound {cycles * self.gap:g} s")

    def _check_books(self, event: Event, state: SchedulerState, actions: tuple[Action, ...], now: float) -> None:
        """Follow the actions in the order in which they were decided: what came back, answers, batches, refusals."""
        entries = state.ledger.entries
        sent = {r: (send.instance, send.seq) for send in actions if isinstance(send, Send) for r in send.requests}
        ended = {action.request: action for action in actions if isinstance(action, Deliver | Refuse)}
        for request in sorted(self.open):
            was, entry = self.where[request], entries.get(request)
            became = "gone" if entry is None else entry.holder or "queued"
            comes_back = isinstance(was, tuple) and (became != was or request in sent) and request not in ended
            if isinstance(was, tuple) and (comes_back or isinstance(ended.get(request), Refuse)):
                if not self._may_come_back(event, *was):
                    raise BrokenPromiseError(
                        f"the ledger says {became} of request {request}, but {was} has it, at {event}"
                    )
                self._move(request, "queued")
                self.requeued[request] = self.requeued.get(request, 0) + 1
                self._queue(request, now)
            elif isinstance(was, tuple) and request not in ended and self._must_come_back(event, *was):
                raise BrokenPromiseError(f"request {request} stays in {was}, which is lost, at {event}")
            if request in sent:
                self._expect(request, "queued")
                self._move(request, "in flight")
                self.where[request] = sent[request]
                self.tried.add((request, *sent[request]))
        if isinstance(event, FirstToken) and self._counts(event) and event.request not in ended:
            raise BrokenPromiseError(f"{event} is the first answer, and is not handed on")
        for request, action in ended.items():
            if isinstance(action, Deliver) and not (isinstance(event, FirstToken) and self._counts(event)):
                raise BrokenPromiseError(f"request {request} is handed on at {event}")
            if request not in self.open:
                raise BrokenPromiseError(f"request {request} is ended by {action}, but it is {self.where.get(request)}")
            if isinstance(action, Refuse):
                self._expect(request, "queued")
            place = "done" if isinstance(action, Deliver) else "refused"
            self._move(request, place)
            self.where[request] = place
            self.open.discard(request)
        claimed = {request: entry.holder or "queued" for request, entry in entries.items()}
        mine = {request: self.where[request] for request in self.open}
        if claimed != mine:
            raise BrokenPromiseError(f"the ledger says {claimed}, what was heard and done says {mine}")
        waiting = [request for request in mine if mine[request] == "queued"]
        by_arrival = sorted(waiting, key=lambda request: entries[request].order)
        if list(state.ledger.queue) != by_arrival or state.ledger.waiting != len(waiting):
            raise BrokenPromiseError(f"the queue {state.ledger.queue} is not who waits, {by_arrival}")
        if state.ledger.tokens() != self.sums:
            raise BrokenPromiseError(f"the ledger says {state.ledger.tokens()} tokens, what was heard says {self.sums}")

    def _counts(self, event: FirstToken) -> bool:
        """Whether a first token is the first of its request, and of an instance that had it and lives."""
        g = event.instance
        void = g not in self.joined or 0 < event.epoch < self.epoch[g]
        return not void and event.request in self.open and (event.request, g, event.seq) in self.tried

    def _expect(self, request: int, place: str) -> None:
        if self.where.get(request) != place:
            raise BrokenPromiseError(f"request {request} is taken for {place}, but it is {self.where.get(request)}")

    def _move(self, request: int, place: str) -> None:
        was = self.where[request]
        self.sums["in flight" if isinstance(was, tuple) else was] -= self.tokens[request]
        self.sums[place] += self.tokens[request]

    def _check_instances(self, state: SchedulerState, now: float) -> None:
        holders = {self.where[request][0] for request in self.open if isinstance(self.where[request], tuple)}
        answers = self.setting.timeout(self.largest_pass) + self.late + SLACK
        for request in self.open if self.gone else ():
            if now > self.gone.get(self.where[request], math.inf) + answers:
                raise BrokenPromiseError(
                    f"request {request} waits for an answer of {self.where[request]}, which has none"
                )
        for g, at in enumerate(state.instances):
            if at.in_flight < 0 or at.backlog < 0:
                raise BrokenPromiseError(f"instance {g} has {at.in_flight} tokens in flight and {at.backlog} left")
            if (at.phase is Phase.REMOVED) == (g in self.joined):
                raise BrokenPromiseError(f"instance {g} is {at.phase.value}, the health checks say otherwise")
            if at.phase is Phase.BUSY:
                if g not in self.live or self.live[g][0] != at.seq:
                    raise BrokenPromiseError(f"instance {g} waits for batch {at.seq}, which has retired")
                if self.ahead_of_ends and at.deadline != self.live[g][1]:
                    self.live[g] = at.seq, at.deadline, self.live[g][2]
                    self.since = {**self.since, g: self.clock}
                if now > self.live[g][2] + self.late + SLACK:
                    raise BrokenPromiseError(f"instance {g} is busy after its deadline {self.live[g][2]:g} s")
            if g in holders and at.phase is Phase.SUSPECT:
                raise BrokenPromiseError(f"instance {g} is suspected, and still holds requests")
            if g in holders or at.phase in (Phase.BUSY, Phase.SUSPECT):
                rings = self.timer.get(g, math.inf)
                timeout = self.patience * self.setting.timeout(self.largest_pass)
                if rings > min(at.due, self.clock + timeout) + SLACK:
                    raise BrokenPromiseError(f"instance {g} is {at.phase.value}, due {at.due:g} s, rings {rings:g} s")

    def _check_pace(self, before: SchedulerState, state: SchedulerState) -> None:
        rings = self.timer.get(_INTERVAL, math.inf)
        by_due = self.setting.timer in ("spacing", "tick")
        if by_due and state.ledger.waiting and self.clock < state.due - SLACK and rings > state.due + SLACK:
            raise BrokenPromiseError(f"requests wait until {state.due:g} s, and the interval's timer rings {rings:g} s")
        if state.pace is not before.pace and self.setting.pace == "median":
            values = sorted(state.pace.measured)
            low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
            if not low <= state.pace.typical <= high:
                raise BrokenPromiseError(
                    f"the typical pass is {state.pace.typical:g} s; expected {low:g} to {high:g} s"
                )

    def _check_head(
        self, before: SchedulerState, event: Event, state: SchedulerState, actions: tuple[Action, ...]
    ) -> None:
        if self.ahead_of_ends:
            heard_of = any(state.instances[g].ended < math.inf for g in self.joined)
            if state.ledger.waiting and heard_of and not self.timer:
                raise BrokenPromiseError(f"at {self.clock:g} s {state.ledger.queue} wait, and no timer is set")
            return
        if self.setting.allocation is not None:
            return  # whether one may be served depends on its room, and on whose turn it is
        elapsed = state.now >= state.due
        if self.setting.timer == "tick":
            elapsed = isinstance(event, IntervalTick) and state.now >= before.due
        ready = [g for g, at in enumerate(state.instances) if at.phase is Phase.READY]
        if elapsed and ready and state.ledger.waiting and not any(isinstance(action, Send) for action in actions):
            raise BrokenPromiseError(
                f"the interval has elapsed, {state.ledger.queue} wait, {ready} are ready, none is sent"
            )
