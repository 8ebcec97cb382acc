"""Runs of the rules of serving engines: every binding is told again from the run's own record, and decided by the twin.

What a front end saw at a binding follows from who had started and ended by then, from the reports that were due, and
from what it had sent since: the replay below keeps lists of requests, where the compiled loop keeps sums.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
from kernels.rules import ENGINE, many
from lengths import quick_and_long
from naive.engine_rules import Seen, bind_of_engine, tensorrt_llm
from simulator.traces import Case, random_case

from lbopt.exceptions import InputError
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, simulate


class Replay:
    """The history of a closed-loop run, decision by decision."""

    def __init__(self, case, run):
        self.prompt, self.output = case.trace.prompt.tolist(), case.trace.output.tolist()
        self.G, self.slots = case.setting.fleet.num_workers, case.setting.fleet.slots_per_worker
        self.start = run.requests["start_step"].tolist()
        self.worker = run.requests["worker"].tolist()
        self.reveal = run.requests["reveal_step"].tolist()
        self.clock = [0.0, *run.steps["clock"].tolist()]

    def in_flight(self, step, bound):
        """Those of the `bound` requests that have not ended before decision `step`."""
        return [i for i in bound if self.start[i] + self.output[i] > step]

    def truth(self, step, bound):
        """The workers at decision `step`, when these have been bound; a request that starts there starts at once."""
        workers = [Seen() for _ in range(self.G)]
        for i in self.in_flight(step, bound):
            one = workers[self.worker[i]]
            if self.start[i] <= step:
                one.running += 1
                one.load += self.prompt[i] + step - self.start[i]
            else:
                one.queued += 1
                one.queued_tokens += self.prompt[i]
        return workers


def add_sent(name, seen, prompt, slots, front_ends):
    """What an optimistic front end adds to its picture of a worker."""
    if name == "vllm_2026":
        seen.queued += front_ends
    elif name == "smg":
        seen.queued_tokens += prompt
    elif seen.running < slots:
        seen.running += 1
        seen.load += prompt
    else:
        seen.queued += 1
        seen.queued_tokens += prompt


def closed_loop(rng):
    """A random case in which requests come as fast as they are taken, on a fleet with and without a capacity."""
    case = random_case(rng)
    fleet = Fleet(rng.choice([1, 2, 3, 5]), rng.randint(1, 4), rng.choice([None, rng.randint(1, 400)]))
    return Case(case.trace, replace(case.setting, arrivals=ClosedLoop(rng.randint(1, 12)), fleet=fleet), case.seed)


@pytest.mark.some(4)
@pytest.mark.parametrize("cases", quick_and_long(many(45, 6), many(150, 6)))
@pytest.mark.parametrize(("spec", "name"), ENGINE)
def test_every_binding_of_a_run_is_the_twins(spec, name, cases):
    rng = random.Random(f"replay {spec}")
    for _ in range(cases):
        case = closed_loop(rng)
        telemetry = rng.choice([None, True, True])
        if telemetry:
            telemetry = Telemetry(
                rng.choice([0.0, 0.001, 0.4, 3.0]), rng.choice(["optimistic", "none"]), front_ends=rng.randint(1, 4)
            )
            case = case.seeing(telemetry)
        replay_bindings(name, case, Replay(case, case.run(spec)), telemetry)


def replay_bindings(name, case, told, telemetry):
    front_ends = 1 if telemetry is None else telemetry.front_ends
    capacity, G = case.setting.fleet.kv_capacity, told.G
    seen = [[Seen() for _ in range(G)] for _ in range(front_ends)]
    start = [G * f // front_ends for f in range(front_ends)]
    due, bound = 0.0, []
    for step in range(max(told.reveal) + 1):
        if telemetry is not None and due <= told.clock[step]:
            seen = [told.truth(step, bound) for _ in range(front_ends)]
            while due <= told.clock[step] and telemetry.period > 0:
                due += telemetry.period
        for i in [i for i, revealed in enumerate(told.reveal) if revealed == step]:
            f = i % front_ends
            workers = told.truth(step, bound) if telemetry is None else seen[f]
            for g in range(G):
                own = [j for j in told.in_flight(step, bound) if told.worker[j] == g and j % front_ends == f]
                workers[g].own_prompts = [told.prompt[j] for j in own]
            chosen, start[f] = bind_of_engine(name, workers, case.uniforms[i][0], start[f], capacity, front_ends)
            assert chosen == told.worker[i], (step, i)
            bound.append(i)
            if telemetry is not None and telemetry.own == "optimistic":
                add_sent(name, seen[f][chosen], told.prompt[i], told.slots, front_ends)


@pytest.mark.parametrize("cases", quick_and_long(many(45, 6), many(150, 6)))
@pytest.mark.parametrize("period", [None, 0.0, 0.4, 3.0])
def test_every_decision_of_tensorrt_llm_is_the_twins(period, cases):
    """Its ranks report the sums of their prompts with everything else; a pool's router adds what it has sent."""
    rng = random.Random(f"tensorrt-llm {period}")
    for _ in range(cases):
        case = closed_loop(rng)
        if period is not None:
            case = case.seeing(Telemetry(period))
        told = Replay(case, case.run("tensorrt-llm"))
        due, known, started = 0.0, [], []
        for step in range(max(told.start) + 1):
            pool = [i for i in range(len(told.start)) if told.reveal[i] <= step <= told.start[i]]
            clock = told.clock[step]
            while True:
                if period is None or due <= clock:
                    known = told.in_flight(step, started)
                    while period and due <= clock:
                        due += period
                full = len(known) == told.G * told.slots
                if not (full and pool) or told.in_flight(step, started):
                    break
                clock = due  # an idle fleet that looks full is waited for
            if full or not pool:
                continue
            prompts = [[told.prompt[i] for i in known if told.worker[i] == g] for g in range(told.G)]
            chosen = tensorrt_llm(prompts, told.slots, [told.prompt[i] for i in pool])
            for i, worker in zip(pool, chosen, strict=True):
                assert (told.start[i] == step) == (worker >= 0)
                if worker >= 0:
                    assert told.worker[i] == worker
                    known.append(i)
                    started.append(i)


def test_a_burst_goes_round_although_no_report_comes():
    """vllm, core_client.py at 00080ee1: own requests in flight are exact, so two front ends spread eight requests."""
    trace = Trace(prompt=[10] * 8, output=[50] * 8)
    setting = SimulationSetting(Fleet(4, 4), ClosedLoop(8), telemetry=Telemetry(1000.0, "none", front_ends=2))
    where = simulate(trace, make_policy("vllm"), setting).requests["worker"].tolist()
    assert where[::2] == [0, 1, 2, 3]  # the first front end begins at worker 0, the second at 4 * 1 / 2
    assert where[1::2] == [2, 3, 0, 1]


def test_rules_of_engines_bind_when_their_source_does():
    for spec, _ in ENGINE:
        with pytest.raises(InputError, match=f"policy '{spec}' cannot use admission 'pooled'; expected immediate"):
            make_policy(f"{spec}:admission=pooled")
    with pytest.raises(InputError, match="expected pooled"):
        make_policy("tensorrt-llm:admission=immediate")
    with pytest.raises(InputError, match="keeps requests in one pool"):
        setting = SimulationSetting(Fleet(2, 2), telemetry=Telemetry(front_ends=2))
        simulate(Trace(prompt=[1], output=[1]), make_policy("tensorrt-llm"), setting)


def test_books_are_empty_when_all_requests_have_ended():
    from lbopt.simulator.state import fresh_rows, fresh_state, requests_of, setting_of

    rng = random.Random("books")
    loop = __import__("lbopt.kernels.simulation.loop", fromlist=["run"])
    for spec in ("vllm", "dynamo", "lmdeploy", "vllm-ascend", "tensorrt-llm"):
        case = closed_loop(rng)
        if spec != "tensorrt-llm":
            case = case.seeing(Telemetry(0.4, front_ends=3))
        policy = make_policy(spec)
        requests = requests_of(case.trace, policy, case.setting, 0)
        rules = setting_of(policy, case.setting, case.trace)
        state = fresh_state(case.setting.fleet, requests, case.setting.telemetry, 0, rules.code)
        assert state.sight.books.size > 0
        loop.run(requests, rules, state, fresh_rows(case.setting.fleet.num_workers, 5000))
        assert not np.any(state.sight.books)
