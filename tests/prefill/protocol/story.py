"""Events told by hand: a scheduler, the monitor beside it, and what was done last."""

from prefill.protocol.monitor import Monitor

from lbopt.prefill.protocol import InstanceState, ProtocolSetting, TripleCheck, initial_state
from lbopt.prefill.protocol.messages import Arrival, Event, Send


class Story:
    """One scheduler of `count` instances with a default pass of 1 s, so that the watchdog is 5 s."""

    def __init__(self, count: int = 1, scheduler: type[TripleCheck] = TripleCheck, **setting) -> None:
        self.scheduler = scheduler(ProtocolSetting(count, **setting))
        self.monitor = Monitor(self.scheduler.setting)
        self.state = initial_state(self.scheduler.setting)
        self.actions: tuple = ()
        self.requests = 0

    def hear(self, *events: Event) -> None:
        for event in events:
            before = self.state
            self.state, self.actions = self.scheduler.step(before, event)
            self.monitor.after(before, event, self.state, self.actions)

    def arrive(self, time: float, tokens: int = 10) -> None:
        self.hear(Arrival(time, self.requests, tokens))
        self.requests += 1

    def at(self, instance: int = 0) -> InstanceState:
        return self.state.instances[instance]

    @property
    def sent(self) -> list[Send]:
        return [action for action in self.actions if isinstance(action, Send)]
