"""Random small runs for lbopt's loop and for the naive simulator, and what it means that two runs are the same."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

import naive
import numpy as np

from lbopt.hardware import AffineStepTime
from lbopt.model import Eligibility, Fleet, Trace
from lbopt.policies import Policy, make_policy
from lbopt.simulator import ClosedLoop, Run, SimulationSetting, Telemetry, TraceTimes, simulate


@dataclass
class Case:
    """One trace, fleet and way of arriving."""

    trace: Trace
    setting: SimulationSetting
    seed: int = 0
    uniforms: list[tuple[float, float]] = field(init=False)

    def __post_init__(self) -> None:
        draws = np.random.default_rng(self.seed).random((len(self.trace), 2))
        self.uniforms = [tuple(pair) for pair in draws.tolist()]

    def seeing(self, telemetry: Telemetry) -> "Case":
        """The same for routers that see reports."""
        return Case(self.trace, replace(self.setting, telemetry=telemetry), self.seed)

    def run(self, policy: str | Policy, **options: Any) -> Run:
        """What lbopt makes of it."""
        chosen = make_policy(policy) if isinstance(policy, str) else policy
        return simulate(self.trace, chosen, self.setting, seed=self.seed, keep_loads=True, **options)

    def naive_run(self, name: str, options: dict[str, Any], admission: str) -> naive.Trajectory:
        """What the naive simulator makes of it."""
        arrivals = self.setting.arrivals
        closed = isinstance(arrivals, ClosedLoop)
        return naive.simulate(
            self.trace.prompt.tolist(),
            self.trace.output.tolist(),
            self.setting.fleet.num_workers,
            self.setting.fleet.slots_per_worker,
            name,
            admission,
            arrival=None if closed else self.trace.arrival.tolist(),
            reveal_target=(arrivals.reveal_target or 4 * self.setting.fleet.num_workers) if closed else None,
            fixed_seconds=self.setting.form.fixed,
            seconds_per_token=self.setting.form.per_token,
            event_order=self.setting.event_order,
            options=options,
            uniforms=self.uniforms,
            telemetry=None if self.setting.telemetry is None else naive_telemetry(self.setting.telemetry, self.seed),
            eligible=None if self.trace.eligibility is None else naive_eligibility(self.trace.eligibility),
        )


def naive_eligibility(eligibility: Eligibility) -> list[frozenset[int]]:
    """The workers that serve each request."""
    return [frozenset(np.flatnonzero(eligibility.allowed[k]).tolist()) for k in eligibility.kind]


def some_serve(case: Case, rng: random.Random) -> Case:
    """The same where only some workers serve some of the requests, in up to five kinds."""
    G, kinds = case.setting.fleet.num_workers, rng.randint(1, 5)
    allowed = {tuple(rng.random() < 0.5 for _ in range(G)) for _ in range(kinds)} - {(False,) * G} or {(True,) * G}
    kind = [rng.randrange(len(allowed)) for _ in range(len(case.trace))]
    eligibility = Eligibility(kind=kind, allowed=sorted(allowed))
    return Case(replace(case.trace, eligibility=eligibility), case.setting, case.seed)


def naive_telemetry(telemetry: Telemetry, seed: int) -> naive.Telemetry:
    """The same for the naive simulator, with the draws of the compiled loop: SplitMix64, a stream a worker."""
    start = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])

    def word(start: int, n: int) -> int:
        z = (start + (n + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    def draws(worker: int, number: int) -> tuple[float, float]:
        stream = word(start, worker)
        jitter, lost = (word(stream, 2 * number + k) for k in range(2))
        return (jitter >> 11) / 2**53, (lost >> 11) / 2**53

    return naive.Telemetry(**telemetry.describe(), draws=draws)


def random_case(rng: random.Random, requests: int = 50) -> Case:
    """Ties and none, empty prompts, one-step requests, idle gaps, simultaneous arrivals, both event orders."""
    N, G, B = rng.randint(1, requests), rng.randint(1, 5), rng.randint(1, 4)
    top = rng.choice([0, 2, 50, 10_000])
    few = [rng.randint(0, top) for _ in range(3)]
    prompt = [rng.randint(0, top) if rng.random() < 0.6 else rng.choice(few) for _ in range(N)]
    lengths = rng.choice([[1], [1, 2, 3], [1, 2, 5, 20], [3, 4, 40]])
    output = [rng.choice(lengths) for _ in range(N)]
    step_time = AffineStepTime(rng.choice([0.5, 0.0048875, 0.1]), rng.choice([0.0, 0.01, 1.0052490234375e-07]))
    clock, arrival = 0.0, []
    for _ in range(N):
        gaps = [0.0, rng.expovariate(3 / step_time.fixed_seconds), rng.expovariate(0.05 / step_time.fixed_seconds)]
        clock += rng.choice(gaps)
        arrival.append(clock)
    arrivals = rng.choice([TraceTimes(), ClosedLoop(), ClosedLoop(rng.randint(1, 12))])
    capacity = rng.choice([None, rng.randint(1, 2 * B * (top + 10))])
    return Case(
        Trace(prompt=prompt, output=output, arrival=arrival, name="random"),
        SimulationSetting(Fleet(G, B, capacity), arrivals, rng.choice(["paper", "theory"]), step_time),
        seed=rng.randrange(1000),
    )


def assert_same_run(first: Run, second: Run) -> None:
    """Every figure of every request and step, to the last bit; `real_choice` means another thing in each admission."""
    for kind in ("requests", "steps"):
        ours, theirs = getattr(first, kind), getattr(second, kind)
        assert ours.keys() == theirs.keys()
        for name in ours:
            if first.admission == second.admission or name != "real_choice":
                assert np.array_equal(ours[name], theirs[name], equal_nan=True), (kind, name)
