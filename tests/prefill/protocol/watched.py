"""A world in which the monitor watches every step of the scheduler, and all requests have to be served within X."""

import math

from prefill.protocol.monitor import BrokenPromiseError, Monitor

from lbopt.prefill.protocol.faults import NO_LIMIT, Devices, PassLoad
from lbopt.prefill.protocol.world import World


class Watched(World):
    """A world that raises BrokenPromiseError; without `devices`, one unit of a chunk of 100, a full pass takes 1 s.

    With moments no monitor watches, as then several events are one step.
    """

    def __init__(self, scheduler, arrivals, plan, seed, devices=None, poll_period=1.0, moments=False):
        setting = scheduler.setting
        if devices is None:
            half = 0.5 * setting.default_pass
            devices = Devices(100, pass_time=lambda load: half + 0.005 * load.total)
        super().__init__(scheduler, arrivals, plan, seed, devices, poll_period, moments)
        # Each time that the clock steps back, the scheduler's time stands still from the last event to the next.
        late = 2 * plan.timer_error + poll_period * sum(step < 0 for _, step in plan.clock)
        self.monitor = None if moments else Monitor(setting, late)
        # What was sent while things went wrong has arrived by then: an outlier on its way changes the typical pass.
        self.over = plan.over + plan.longest_delay + max(setting.latency, setting.way_back)
        self.calm, self.allowed, self.last, self.last_open = math.inf, math.inf, 0.0, 0.0
        self.saw_no_instance = False

    def _next(self):
        now, happen = super()._next()
        self.last_open, self.last = self.last if self._open else self.last_open, now
        if now > self.over and self.calm == math.inf:
            self.calm, self.allowed = now, self.bound()
        if now > self.calm + self.allowed and self._open:
            raise BrokenPromiseError(
                f"at {now:g} s, after {self.events} events, requests {sorted(self._open)} are not served; faults "
                f"were over at {self.over:g} s, and the bound was {self.calm + self.allowed:g} s"
            )
        return now, happen

    def _decide(self, now, event):
        before, actions = self.state, super()._decide(now, event)
        self.saw_no_instance |= self.state.healthy == 0
        if self.monitor is not None:
            self.monitor.after(before, event, self.state, actions, now)
        return actions

    def bound(self):
        """How long it may take from now on until all that have arrived are served, s, if no more goes wrong.

        See `served_within` of the monitor, with all requests not yet served, and all passes that they and the work on
        the devices may take.
        """
        if self.monitor is None:
            return math.inf
        tokens = [self.tokens[request] for request in self._open]
        tokens += [work.tokens for engine in self.engines for work in engine.work]
        passes = sum(map(self.devices.passes, tokens))
        units, chunk = self.devices.units, min(self.devices.chunk or NO_LIMIT, sum(tokens) + 1)
        slowest = self.plan.slow_factor * self.devices.seconds(
            PassLoad(units * chunk, chunk, chunk, len(tokens), (chunk,) * units)
        )
        return self.monitor.served_within(len(self._open), passes, max(1.0, slowest) + self.plan.longest_delay)
