"""A backend whose time is a known law and passes only when it computes: no test waits, none depends on the machine."""

import numpy as np


class FakeBackend:
    """Calls take ``law(batch, tokens)`` virtual seconds, times noise, times drift by the virtual hour so far."""

    name = "fake"
    device = "cuda"
    dtype = "bfloat16"
    itemsize = 2
    is_host = True

    def __init__(self, law, *, noise=0.0, drift=0.0, seed=0, free=None, read=1e12, interrupt_after=None, **more):
        self.law, self.noise, self.drift = law, noise, drift
        self.rng = np.random.default_rng(seed)
        self.free, self.rate = free, read
        self.streams, self.watts, self.drawn = more.get("streams", False), more.get("watts", {}), 0.0
        self.time = 0.0
        self.calls = 0
        self.interrupt_after = interrupt_after
        self.seen = []

    def account(self):
        return {"device": "Fake 1", "processor": "none"}

    def free_bytes(self):
        return self.free

    def scratch_bytes(self, shape, tokens):
        return 0

    def _pass(self, seconds):
        self.calls += 1
        if self.interrupt_after is not None and self.calls > self.interrupt_after:
            raise KeyboardInterrupt
        grown = 1 + self.drift * self.time
        seconds *= grown * float(np.exp(self.noise * self.rng.standard_normal()))
        self.time += seconds
        self.drawn += seconds * self.watts.get("busy", 0.0)

    def decode(self, shape, pool_tokens):
        def run(contexts, start):
            assert start >= 0 and start + sum(contexts) <= pool_tokens
            self.seen.append((contexts, start))
            self._pass(self.law(len(contexts), sum(contexts)))

        return run

    def reader(self, num_bytes):
        return lambda: self._pass(num_bytes / self.rate)

    def multiply(self, products):
        def of(requests):
            num_bytes = 2 * sum(one.parameters for one in products)
            flops = sum(one.flops(requests) for one in products)
            return lambda: self._pass(max(num_bytes / 2e12, flops / 5e14))

        return of

    def at_once(self, works):
        if not self.streams:
            return None

        def run(call):
            begin = self.time
            for work in works:
                work(call)
            assert self.time > begin

        return run

    def spin(self, blocks, threads):
        def run():
            self.drawn += 3e-3 * (self.watts["wait"] + blocks)
            self.time += 3e-3

        return run if self.watts else None

    def touch(self):
        return lambda: self._pass(1e-6)

    def counter(self):
        return self if self.watts else None

    def joules(self):
        return self.drawn

    def sleep(self, seconds):
        self.time += seconds
        self.drawn += seconds * self.watts["idle"]

    def clock(self, work):
        begin = self.time
        work()
        return self.time - begin

    def now(self):
        return self.time


class Heard:
    """A progress bar that remembers."""

    def __init__(self):
        self.stages = []

    def begin(self, what, total):
        self.stages.append([what, total, 0])

    def advance(self, units=1):
        self.stages[-1][2] += units


def linear(batch, tokens):
    """30 µs a call, 2 µs a request, 5 ns a token."""
    return 30e-6 + 2e-6 * batch + 5e-9 * tokens
