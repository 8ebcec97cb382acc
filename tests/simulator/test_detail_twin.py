"""Random fleets in detail, beside the twin that keeps objects and sums anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from kernels.rules import many
from lengths import quick_and_long
from naive import detail as naive
from naive.gates import GATES
from naive.sight import Sight
from naive.sight import Telemetry as NaiveTelemetry
from simulator.random_fleets import RandomFleet, naive_gate, random_fleet

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.hardware import AffineStepTime
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide
from lbopt.simulator import ClosedLoop, Run, SimulationSetting, simulate

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

#: Rules by the names of the twin, whether they keep a pool, and their options there.
TWINS = {
    "jsq": ("jsq", False, {}),
    "jsq-load:admission=immediate": ("jsq_load", False, {}),
    "round-robin": ("round_robin", False, {}),
    "power-of-two": ("power_of_two", False, {}),
    "tpu-inference": ("tpu_inference", False, {"cache": True}),
    "tpu-inference:cache=no": ("tpu_inference", False, {"cache": False}),
    "vllm:version=2025": ("vllm", False, {}),
    "max-min": ("max_min", True, {"scope": "oldest"}),
    "br-0:stage_switch=0": ("br_0", True, {"stage_switch": 0, "window_size": 4}),
    "jsq-load": ("jsq_load", True, {}),
    "fcfs": ("fcfs", True, {}),
}
FLEETS = many(1000, 100)
CHUNK = FLEETS // 10
#: Of ten chunks the first three are in every run.
FIRST = [pytest.param(k * CHUNK, marks=[pytest.mark.slow] if k > 2 else []) for k in range(10)]
_MASK = 2**64 - 1


def word(start: int, n: int) -> int:
    """SplitMix64, number n of the stream that begins at `start`."""
    z = (start + (n + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def draw(seed: int, i: int, n: int) -> float:
    """u(i, n)."""
    return (word(word(seed, i), n) >> 11) * 2.0**-53


def twin_of(fleet: RandomFleet) -> naive.Case:
    """Return the same fleet for the twin."""
    setting, trace = fleet.setting, fleet.trace
    detail, law = setting.detail, setting.law
    assert detail is not None
    assert isinstance(law, AffineStepTime)
    assert trace.arrival is not None
    seed = int(np.random.SeedSequence(fleet.seed).generate_state(2, np.uint64)[1])
    name, pooled, options = TWINS[fleet.rule]
    closed = setting.arrivals if isinstance(setting.arrivals, ClosedLoop) else None
    columns = zip(trace.prompt.tolist(), trace.output.tolist(), trace.arrival.tolist(), strict=True)
    slots, slow = dict(detail.slots), dict(detail.slow)
    fleet_slots, G = setting.fleet.slots_per_worker, setting.fleet.num_workers
    blocks = []
    if trace.prefixes is not None:
        told, full = trace.prefixes, trace.prefixes.block_tokens
        for i, prompt in enumerate(trace.prompt.tolist()):
            blocks.append(tuple(told.blocks[told.first[i] : told.first[i + 1]].tolist()[: prompt // full]))
    plain = {
        name: getattr(detail, name)
        for name in naive.Options.__dataclass_fields__
        if name not in ("draw", "capacity", "events")
    }
    sight = None
    if setting.telemetry is not None:
        seen = setting.telemetry
        sight = Sight.of(NaiveTelemetry(seen.period, seen.own, front_ends=seen.front_ends), G, fleet_slots)
    return naive.Case(
        requests=[naive.Request(i, p, o, a, blocks=blocks[i] if blocks else ()) for i, (p, o, a) in enumerate(columns)],
        block_tokens=0 if trace.prefixes is None else trace.prefixes.block_tokens,
        workers=[naive.Worker(w, slots.get(w, fleet_slots), slow.get(w, 1.0)) for w in range(G)],
        options=naive.Options(
            draw=lambda i, n: draw(seed, i, n),
            capacity=setting.fleet.kv_capacity or 0,
            events=list(detail.events),
            **plain,
        ),
        rule=name,
        rule_options=options,
        pooled=pooled,
        reveal_target=None if closed is None else closed.reveal_target,
        uniforms=np.random.default_rng(fleet.seed).random((len(trace), 2)).tolist(),
        sight=sight,
        gate=naive_gate(detail.gate),
        fixed=law.fixed_seconds,
        per_token=law.seconds_per_token,
    )


def assert_equal(run: Run, case: naive.Case, fleet: RandomFleet) -> None:
    """Every number of both is the same; seconds are sums of 2^-20 s times small numbers, and so exact."""
    said = f"fleet {fleet.seed}, {fleet.rule}"
    for name, values in run.requests.items():
        assert values.tolist() == [getattr(request, name) for request in case.requests], f"{said}: {name}"
    for name, expected in (
        ("active", case.active),
        ("made", case.made),
        ("blocks", case.blocks),
        ("seconds", case.seconds),
        ("clock", case.clocks),
        ("barrier_loads", case.barrier_loads),
        ("post_loads", case.post_loads),
    ):
        assert run.steps[name].tolist() == expected, f"{said}: {name}"
    assert run.happened is not None
    tally = run.happened
    found = (tally.preemptions, tally.recomputed_tokens, tally.moved_tokens, tally.returned_requests, tally.pauses)
    assert found == (case.preemptions, case.recomputed, case.moved, case.returned, case.pauses), said
    assert tally.reused_tokens == case.reused, said


def hold_to_the_twin(fleet: RandomFleet, seed: int) -> naive.Case | None:
    """Hold a run against the twin's and return the twin; None where both are stuck."""
    case = twin_of(fleet)
    try:
        run = simulate(fleet.trace, make_policy(fleet.rule), fleet.setting, seed=seed, keep_loads=True)
    except InfeasibleDecisionError:
        with pytest.raises(naive.StuckError):
            naive.simulate(case)
        return None
    naive.simulate(case)
    assert_equal(run, case, fleet)
    return case


@pytest.mark.some(2)
@pytest.mark.parametrize("first", FIRST)
def test_runs_are_those_of_the_twin(first: int) -> None:
    for seed in range(first, first + CHUNK):
        fleet = random_fleet(seed, tuple(TWINS))
        hold_to_the_twin(fleet, seed)


@pytest.mark.parametrize("fleets", quick_and_long(many(60, 20), many(2000, 100)))
def test_gated_runs_are_those_of_the_twin(fleets: int) -> None:
    held = Counter[str]()
    for seed in range(fleets):
        fleet = random_fleet(seed, tuple(TWINS), gated=True)
        case, detail = hold_to_the_twin(fleet, seed), fleet.setting.detail
        assert detail is not None
        if case is None:
            continue
        free = simulate(fleet.trace, make_policy(fleet.rule), _without_gate(fleet), seed=seed)
        held[detail.gate.partition(":")[0]] += free.requests["first_token_clock"].tolist() != [
            request.first_token_clock for request in case.requests
        ]
    assert held.total() > 0
    assert fleets < 60 or min(held[name] for name in GATES) > 0  # twenty fleets do not meet every gate


def _without_gate(fleet: RandomFleet) -> SimulationSetting:
    assert fleet.setting.detail is not None
    return replace(fleet.setting, detail=replace(fleet.setting.detail, gate="none"))


class Asked:
    """A rule of the table that decides in Python, and keeps what it was shown of the memory."""

    def __init__(self, rule: str, admission: str) -> None:
        self.name, self.admission = rule, admission
        self.committed: list[list[int]] = []

    def decide(self, observation: Observation) -> np.ndarray:
        """Decide as the compiled rule does."""
        assert observation.memory is not None
        self.committed.append(observation.memory.committed.tolist())
        if self.admission == "pooled":
            return decide(make_policy(self.name), observation)
        return np.array([np.argmin(observation.loads + observation.queued_tokens)])


@pytest.mark.some(1)
@pytest.mark.parametrize("fleets", quick_and_long(many(120, 30), many(400, 30)))
@pytest.mark.parametrize(("rule", "admission"), [("max-min", "pooled"), ("jsq-load:admission=immediate", "immediate")])
def test_memory_is_seen_as_the_twin_sees_it(rule: str, admission: str, fleets: int) -> None:
    compared, stale, waited = 0, 0, 0
    for seed in range(fleets):
        fleet = random_fleet(seed, (rule,))
        detail = fleet.setting.detail
        assert detail is not None
        detail = replace(detail, preempt="swap" if detail.preempt == "none" else detail.preempt)
        if admission == "immediate":
            detail = replace(detail, drain=(), leave=(), join=())
        fleet = replace(fleet, setting=replace(fleet.setting, detail=detail))
        case, policy = twin_of(fleet), Asked(rule, admission)
        try:
            run = simulate(fleet.trace, policy, fleet.setting, seed=seed, keep_loads=True)
        except InfeasibleDecisionError:
            with pytest.raises(naive.StuckError):
                naive.simulate(case)
            continue
        naive.simulate(case)
        assert_equal(run, case, fleet)
        assert policy.committed == case.committed, f"fleet {seed}"
        compared += len(case.committed)
        stale += fleet.setting.telemetry is not None
        waited += case.preemptions > 0
    assert compared > 20 * stale > 0
    assert waited > 0
