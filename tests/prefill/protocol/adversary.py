"""The promises against an adversary who is free to say anything: Hypothesis chooses events, not a model of engines.

Only the scheduler's own timers are honest, but for those that fire early, and its clock may step. Ends of passes and
poll answers name any batch ever sent, in any order, as often as it likes; first tokens are claimed by anybody;
instances come and go. Runs get shrunk to the shortest one that breaks a promise.
"""

from functools import partial

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from prefill.protocol.monitor import Monitor

from lbopt.prefill.protocol import ProtocolSetting, TripleCheck, initial_state
from lbopt.prefill.protocol.messages import (
    ArmWatchdog,
    Arrival,
    Deliver,
    EndForward,
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

which = st.integers(0, 3)


class Adversary(RuleBasedStateMachine):
    scheduler_class = TripleCheck

    @initialize(
        count=st.integers(1, 4),
        latency=st.sampled_from([0.0, 0.3]),
        window=st.integers(3, 5),
        watchdog=st.sampled_from([2.0, 5.0]),
        timer=st.sampled_from(["spacing", "tick"]),
        idle_bypass=st.booleans(),
        batch_tokens=st.sampled_from([None, 1, 50]),
        patience=st.sampled_from([None, 0, 2]),
    )
    def begin(self, count, **setting):
        self.setting = ProtocolSetting(count, **setting)
        self.scheduler, self.monitor = self.scheduler_class(self.setting), Monitor(self.setting)
        self.state, self.now, self.skew = initial_state(self.setting), 0.0, 0.0
        self.timers: dict[int, tuple[float, object]] = {}
        self.arrived, self.refused = {}, []
        self.sent: list[Send] = []
        self.delivered: list[int] = []
        self.hear(IntervalTick(0.0))

    def hear(self, event):
        before = self.state
        self.state, actions = self.scheduler.step(before, event)
        self.monitor.after(before, event, self.state, actions, self.now)
        for action in actions:
            match action:
                case ArmWatchdog():
                    ring = partial(Watchdog, instance=action.instance)
                    self.timers[action.instance] = action.deadline - self.skew, ring
                case WakeAt():
                    self.timers[-1] = action.time - self.skew, IntervalTick
                case Send():
                    self.sent.append(action)
                case Deliver():
                    self.delivered.append(action.request)
                case Refuse():
                    self.refused.append(action.request)

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 4.0, 30.0]))
    def pass_time(self, seconds):
        until = self.now + seconds
        while self.timers:
            which = min(self.timers, key=lambda one: self.timers[one][0])
            time, event = self.timers[which]
            if time > until:
                break
            del self.timers[which]
            # Every timer takes some time.
            self.now = max(self.now + 1e-9, time)
            self.hear(event(self.clock))
        self.now = max(self.now, until)
        self.hear(PollTick(self.clock))

    @property
    def clock(self):
        return self.now + self.skew

    @rule(step=st.sampled_from([-3600.0, -2.0, -1e-6, 1.0, 20.0]))
    def clock_steps(self, step):
        """Between two events at one moment: the scheduler's time stands still for none."""
        self.hear(PollTick(self.clock))
        self.skew += step
        self.hear(PollTick(self.clock))

    @precondition(lambda self: self.timers)
    @rule(choice=which)
    def early_timer(self, choice):
        _, event = self.timers.pop(sorted(self.timers)[choice % len(self.timers)])
        self.hear(event(self.clock))

    @rule(tokens=st.integers(1, 80))
    def arrive(self, tokens):
        request = len(self.arrived)
        self.arrived[request] = tokens
        self.hear(Arrival(self.clock, request, tokens))

    @precondition(lambda self: self.sent)
    @rule(
        choice=which,
        seconds=st.sampled_from([0.05, 1.0, 3.0, 3600.0]),
        remaining=st.sampled_from([0, 40]),
        epoch=which,
        oldest=which,
        missing=st.lists(which, max_size=2),
    )
    def end_forward(self, choice, seconds, remaining, epoch, oldest, missing):
        send = self.sent[-1 - choice % len(self.sent)]
        named = tuple(max(1, send.seq - older) for older in missing)
        self.hear(EndForward(self.clock, send.instance, send.seq, seconds, remaining, epoch, oldest, named))

    @precondition(lambda self: self.sent)
    @rule(choice=which, older=st.integers(0, 2), depth=st.integers(0, 1), epoch=which, asked=which)
    def poll_answer(self, choice, older, depth, epoch, asked):
        send = self.sent[-1 - choice % len(self.sent)]
        self.hear(PollAnswer(self.clock, send.instance, max(0, send.seq - older), depth, epoch, 0, (), asked))

    @precondition(lambda self: self.sent)
    @rule(choice=which, other=which, request=which, epoch=which)
    def first_token(self, choice, other, request, epoch):
        """Mostly of a batch that had the request; sometimes it is made up."""
        send = self.sent[-1 - choice % len(self.sent)]
        claimed = send.requests[request % len(send.requests)] if other else request
        self.hear(FirstToken(self.clock, send.instance, send.seq, claimed, epoch))

    @rule(instance=which)
    def spurious_watchdog(self, instance):
        assume(instance < self.setting.num_instances)
        self.hear(Watchdog(self.clock, instance))

    @rule()
    def spurious_tick(self):
        self.hear(IntervalTick(self.clock))

    @precondition(lambda self: self.arrived)
    @rule(request=which)
    def doubled_arrival(self, request):
        if request in self.arrived:
            self.hear(Arrival(self.clock, request, self.arrived[request]))

    @rule(instance=which, healthy=st.booleans())
    def health_check(self, instance, healthy):
        assume(instance < self.setting.num_instances)
        self.hear(HealthCheck(self.clock, instance, healthy))

    @invariant()
    def tokens_are_conserved(self):
        """A third book: what this class saw go in and out, against the ledger's sums."""
        tokens = self.state.ledger.tokens()
        assert sum(tokens.values()) == sum(self.arrived.values())
        assert tokens["done"] == sum(self.arrived[request] for request in self.delivered)
        assert tokens["refused"] == sum(self.arrived[request] for request in self.refused)
        assert len({*self.delivered, *self.refused}) == len(self.delivered) + len(self.refused)

    def teardown(self):
        """With one instance that answers, and not a word from anybody else, all are served or refused."""
        if not hasattr(self, "state"):
            return
        self.hear(HealthCheck(self.clock, 0, True))
        for _ in range(4 * (len(self.arrived) + 2)):
            told = len(self.sent)
            self.pass_time(self.monitor.gap)
            for send in [send for send in self.sent[max(0, told - 4) :] if send.instance == 0]:
                for request in send.requests:
                    self.hear(FirstToken(self.clock, 0, send.seq, request, self.state.instances[0].epoch))
                self.hear(EndForward(self.clock, 0, send.seq, 1.0, 0, self.state.instances[0].epoch))
        assert len(self.state.ledger.entries) == 0
