"""Workers in detail: nothing changes while its options are off, laws hold in any fleet, and what it refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels.rules import many
from simulator.laws import BrokenLawError, check, simulate_checked
from simulator.random_fleets import RULES, random_fleet

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.instances import open_trace
from lbopt.kernels.simulation import loop as compiled_loop
from lbopt.kernels.simulation.state import Requests, Setting, State
from lbopt.model import Fleet, RequestPrefixes, Trace
from lbopt.policies import make_policy
from lbopt.simulator import (
    ClosedLoop,
    Detail,
    SimulationSetting,
    Telemetry,
    TraceTimes,
    make_detail,
    sample_states,
    simulate,
)
from lbopt.simulator.state import fresh_rows, fresh_state, requests_of, setting_of

FLEETS = many(1000, 100)
CHUNK = FLEETS // 10
#: Of ten chunks the first two are in every run.
FIRST = [pytest.param(k * CHUNK, marks=[pytest.mark.slow] if k > 1 else []) for k in range(10)]

#: The draws wrap around, of which NumPy warns where they run as plain Python.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@pytest.mark.some(8)
@pytest.mark.jit
@pytest.mark.parametrize("rule", [*RULES, "br-h:horizon=4", "bf-io:time_limit=none,effort=20000"])
@pytest.mark.parametrize("arrivals", [ClosedLoop(), TraceTimes(0.9)])
def test_workers_without_options_change_nothing(rule: str, arrivals: ClosedLoop | TraceTimes) -> None:
    looks_ahead = rule.startswith("br-h")
    trace = open_trace("azure-like", count=200 if looks_ahead or rule.startswith("bf-io") else 1500, seed=3)
    sights = [None] if looks_ahead else [None, Telemetry(0.1, jitter=0.3, lost=0.1)]
    for telemetry in sights:
        runs = [
            simulate(
                trace,
                make_policy(rule),
                SimulationSetting(Fleet(4, 8), arrivals=arrivals, telemetry=telemetry, detail=detail),
                training=trace,
            )
            for detail in (None, Detail())
        ]
        for name, values in runs[0].requests.items():
            assert np.array_equal(values, runs[1].requests[name]), name
        for name, values in runs[0].steps.items():
            if name != "real_choice":  # told more coarsely in detail
                assert np.array_equal(values, runs[1].steps[name], equal_nan=True), name


@pytest.mark.some(1)
@pytest.mark.parametrize("first", FIRST)
def test_laws_of_conservation_hold_in_random_fleets(first: int) -> None:
    stuck = 0
    for seed in range(first, first + CHUNK):
        fleet = random_fleet(seed)
        try:
            run = simulate_checked(fleet.trace, make_policy(fleet.rule), fleet.setting, seed=seed)
        except InfeasibleDecisionError:
            detail = fleet.setting.detail
            assert detail is not None
            assert detail.drain or detail.leave  # nobody is left to take the rest
            stuck += 1
            continue
        assert run.steps["made"].sum() == fleet.trace.output.sum()
        assert (run.requests["finish_step"] > run.requests["start_step"]).all()
        assert (run.requests["first_token_clock"] <= run.requests["finish_clock"]).all()
    assert stuck < CHUNK / 2


def test_a_fleet_that_has_closed_is_named_not_the_rule() -> None:
    setting = SimulationSetting(Fleet(2, 4), detail=Detail(drain=((0, 1.0), (1, 1.0))))
    with pytest.raises(InfeasibleDecisionError, match=r"no worker takes requests any more in step .*let a worker join"):
        simulate(open_trace("azure-like", count=100, seed=0), make_policy("jsq"), setting, seed=0)


@pytest.mark.more
def test_a_run_without_detail_keeps_the_laws_too() -> None:
    trace = open_trace("azure-like", count=300, seed=0)
    for rule in ("jsq", "br-0"):
        simulate_checked(trace, make_policy(rule), SimulationSetting(Fleet(4, 8)))


def _stopped() -> tuple[Requests, Setting, State]:
    """Return a fleet in the middle of a run, between a decision and its step."""
    trace = Trace(prompt=np.arange(10, 50), output=np.full(40, 20))
    fleet = Fleet(2, 8, 400)
    chosen = SimulationSetting(fleet, detail=Detail(preempt="recompute", block=4))
    policy = make_policy("jsq")
    requests = requests_of(trace, policy, chosen, 0)
    setting = setting_of(policy, chosen, trace)
    state = fresh_state(fleet, requests, None, 0, setting.code, chosen.detail)
    rows = fresh_rows(2, 30)
    compiled_loop.run(requests, setting, state, rows)
    check(requests, setting, state)
    return requests, setting, state


def _grow(state: State) -> None:
    state.detail.tracks.tokens[int(state.detail.seats[0, 0])] += 1


def _swap_worker(state: State) -> None:
    state.worker[int(state.detail.seats[0, 0])] = 1


@pytest.mark.parametrize(
    ("law", "harm"),
    [
        ("one place", lambda state: state.detail.seats.__setitem__((0, 0), state.detail.seats[1, 0])),
        ("running requests", lambda state: setattr(state.progress, "active", state.progress.active + 1)),
        ("queued requests", lambda state: setattr(state.progress, "queued", state.progress.queued + 1)),
        ("load", lambda state: state.load.__setitem__(1, state.load[1] + 1)),
        ("queued tokens", lambda state: state.queued_tokens.__setitem__(0, state.queued_tokens[0] - 1)),
        ("load", _grow),
        ("slots", lambda state: state.slots.__setitem__(0, 1)),
        ("worker", _swap_worker),
        ("blocks", lambda state: state.detail.used.__setitem__(0, state.detail.used[0] - 1)),
        ("memory", lambda state: setattr(state.detail.rules, "blocks", 3)),
    ],
)
def test_a_broken_law_is_noticed(law: str, harm: Callable[[State], Any]) -> None:
    requests, setting, state = _stopped()
    harm(state)
    with pytest.raises(BrokenLawError, match=law):
        check(requests, setting, state)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("preempt=maybe", "preempt is 'maybe'; expected none, recompute, swap"),
        ("preemt=swap", "has no option 'preemt'"),
        ("prefix_cache=9000", "prefix_cache saves the computation of prompts, which happens elsewhere; name prefill"),
        ("gate=vllm-ascend,pause=static", "gate and pause both say who is let in; leave one out"),
        ("gate=yes", "unknown gate 'yes': known: none, vllm-ascend, vllm, sglang, trtllm, atom, sbs"),
        ("gate=vllm:interval=8", "gate is 'vllm:interval=8', which holds back prompts that workers compute, and they"),
        ("prefill=500,gate=vllm", "gate 'vllm' needs interval, such as vllm:interval=8"),
        ("prefill=500,gate=vllm:interval=0", "interval is '0'; expected a whole number from 1 to 1.07374e"),
        ("prefill=500,gate=vllm:interval=2.5", "interval is '2.5'; expected a whole number"),
        ("prefill=500,gate=trtllm:timeout=6;wait=-1", "batching_wait_iters is '-1'; expected a whole number from 0"),
        ("prefill=500,gate=trtllm:timeout=6;timeout_iters=7", "timeout_iters is given twice; leave one out"),
        ("prefill=500,gate=atom:fill=2", "target_fill is '2'; expected a number from 0 to 1"),
        (
            "prefill=500,gate=sglang:low=nan",
            "token_usage_low_watermark is 'nan'; expected a number from 0 to 1, or none",
        ),
        ("prefill=500,gate=sbs:knob=1", "gate 'sbs' has no knob 'knob'; it takes window, default_pass, latency"),
        ("pause=sometimes", "pause is 'sometimes'; expected none, static, dynamic"),
        ("pause=static,pause_threshold=0", "pause_threshold is 0; expected blocks above 0"),
        ("pause=dynamic,pause_for=0", "pause_for is 0; expected a number of steps"),
        ("block=0", "block is 0; expected tokens, 1 to 2"),
        ("watermark=1", "watermark is 1; expected a share from 0 to below 1"),
        ("acceptance=1.5", "acceptance is 1.5; expected a share from 0 to 1"),
        ("draft=65", "draft is 65; expected tokens, 0 to 64"),
        ("draft=two", "draft is 'two'; expected a number"),
        ("prefill=500,transfer=1ms", "leave one out"),
        ("swap_cost=soon", "swap_cost is 'soon'; expected a duration"),
        ("slow=3", "slow has '3'; expected WORKER:VALUE"),
        ("slow=3:0", "slow is 0 for worker 3; expected a factor above 0"),
        ("slow=1:2+1:3", "slow names a worker twice"),
        ("slots=1:few", "slots of worker 1 is 'few'; expected a whole number"),
        ("leave=1", "leave has '1'; expected WORKER@VALUE"),
        ("leave=1@later", "leave of worker 1 is 'later'; expected a duration"),
    ],
)
def test_a_wrong_option_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        make_detail(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("detail", "capacity", "said"),
    [
        (Detail(preempt="swap"), None, "needs a memory that can be full; name kv_capacity"),
        (Detail(slow=((4, 2.0),)), None, "slow names worker 4; the fleet has workers 0 to 3"),
        (Detail(leave=((9, 2.0),)), None, "leave names worker 9"),
        (Detail(slots=((1, 99),)), None, "worker 1 is given 99 slots; expected 1 to 8"),
        (Detail(prefill=20, draft=2), None, "prefill is 20 tokens a step; expected 0, or at least 24"),
    ],
)
def test_a_fleet_that_cannot_be_so_is_refused(detail: Detail, capacity: int | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        SimulationSetting(Fleet(4, 8, capacity), detail=detail)


def test_runs_that_cannot_be_so_are_refused() -> None:
    trace = Trace(prompt=np.array([5, 60]), output=np.array([5, 5]), arrival=np.zeros(2))
    setting = SimulationSetting(Fleet(4, 8, 64), detail=Detail(preempt="swap"))
    simulate(trace, make_policy("jsq"), setting)  # 64 tokens at its end
    with pytest.raises(
        InputError, match=r"request 1 .* holds 64 tokens .* 3 blocks of 16; expected a kv_capacity of at least 64"
    ):
        simulate(trace, make_policy("jsq"), SimulationSetting(Fleet(4, 8, 63), detail=Detail(preempt="swap")))
    closing = SimulationSetting(Fleet(4, 8), detail=Detail(leave=((1, 1.0),)))
    with pytest.raises(InputError, match="knows nothing of workers that come and go"):
        simulate(trace, make_policy("fast-phi"), closing)
    simulate(trace, make_policy("bf-io"), closing)
    caching = SimulationSetting(Fleet(4, 8), detail=Detail(prefill=64, prefix_cache=511))
    with pytest.raises(InputError, match=r"does not tell the blocks .* take a trace with hash_ids"):
        simulate(trace, make_policy("jsq"), caching)
    told = RequestPrefixes(block_tokens=512, first=np.array([0, 0, 1]), blocks=np.array([7]))
    with pytest.raises(InputError, match="prefix_cache is 511 tokens; expected at least 512"):
        simulate(replace(trace, prefixes=told), make_policy("jsq"), caching)
    with pytest.raises(InputError, match="leave detail out"):
        sample_states(trace, make_policy("jsq"), closing, 3)
    with pytest.raises(InfeasibleDecisionError, match=r"admits nothing|no worker takes requests any more"):
        gone = Detail(leave=tuple((w, 0.0) for w in range(4)))
        simulate(trace, make_policy("jsq"), SimulationSetting(Fleet(4, 8), detail=gone))


def test_what_a_fleet_is_told_is_what_is_written() -> None:
    text = (
        "preempt=swap,block=8,watermark=0.05,swap_cost=1us,transfer=3ms,draft=2,spread=0.1,slow=3:1.5+0:2,leave=1@2min"
    )
    detail = make_detail(text)
    assert detail.slow == ((3, 1.5), (0, 2.0))
    assert detail.leave == ((1, 120.0),)
    assert detail.describe()["transfer"] == 0.003
    assert Detail().describe() == {}
    assert make_detail("") == Detail()
    assert detail.events == [(120.0, 1, 2)]


def test_policies_in_python_see_what_compiled_ones_see() -> None:
    fleet = copy.copy(random_fleet(7, rules=("max-min",)))
    assert fleet.setting.detail is not None
    compiled = simulate(fleet.trace, make_policy("max-min"), fleet.setting, seed=7)

    class MaxMin:
        name, admission = "max-min in Python", "pooled"

        def decide(self, observation: Any) -> Any:
            free, loads = observation.free_slots.copy(), observation.loads.copy()
            choice = np.full(observation.sizes.size, -1)
            oldest = np.arange(min(free.sum(), choice.size))
            for position in sorted(oldest, key=lambda p: -observation.sizes[p]):
                worker = min(np.flatnonzero(free > 0), key=lambda w: (loads[w], w))
                choice[position] = worker
                free[worker] -= 1
                loads[worker] += observation.sizes[position]
            return choice

    found = simulate(fleet.trace, MaxMin(), fleet.setting, seed=7)
    for name, values in compiled.requests.items():
        assert np.array_equal(values, found.requests[name]), name
