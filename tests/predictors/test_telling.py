"""A learning predictor hears of every request that has ended, once, in order, and never before."""

import random

import numpy as np
import pytest
from kernels.rules import many
from simulator.traces import assert_same_run, random_case

from lbopt.predictors import PREDICTORS, Foresight


class Listener:
    """A predictor that notes what it is told and when."""

    name = "listener"
    refresh_period = 3

    def __init__(self, training, horizon=5):
        self.heard = []
        self.begun = 0

    def begin(self):
        self.begun += 1

    def tell(self, prompt, output):
        self.heard.append((prompt.tolist(), output.tolist()))

    def ends_within(self, requests, prompt, generated, horizon):
        return np.zeros(requests.size), np.full(requests.size, float(horizon))


class Looking:
    """First come, first served by hand, which asks for a forecast and notes what it saw."""

    name = "looking"

    def __init__(self, admission, predictor):
        self.admission = admission
        self.foresight = None if predictor is None else Foresight(horizon=5, predictor=predictor)
        self.seen = []

    def decide(self, observation):
        active = None if observation.active is None else observation.active.requests.tolist()
        self.seen.append((observation.step, active, observation.requests.tolist(), observation.sizes.size))
        if self.admission == "immediate":
            return np.array([int(np.argmin(observation.running + observation.queued))])
        workers = np.full(observation.sizes.size, -1)
        places = np.repeat(np.arange(observation.free_slots.size), observation.free_slots)[: observation.num_admissible]
        workers[: places.size] = places
        return workers


@pytest.fixture
def listening(monkeypatch):
    """Listeners made by name, in the order in which runs made them."""
    made = []

    def make(training, horizon=5):
        made.append(Listener(training, horizon))
        return made[-1]

    monkeypatch.setitem(PREDICTORS, "listener", make)
    return made


@pytest.mark.parametrize("admission", ["pooled", "immediate"])
def test_nobody_hears_of_an_end_before_it(listening, admission):
    """At each decision, what was heard so far are exactly the requests that have ended by then, in that order."""
    rng = random.Random(1)
    for _ in range(many(60, 15)):
        case = random_case(rng)
        policy = Looking(admission, "listener")
        times = []

        class Timed(Listener):
            def tell(self, prompt, output, times=times, policy=policy):
                times.append(len(policy.seen))  # decisions made before it was told
                super().tell(prompt, output)

        monkey = Timed(None)
        listening.clear()
        PREDICTORS["listener"] = lambda training, horizon=5, monkey=monkey: monkey  # undone by the fixture
        run = case.run(policy, training=case.trace)
        assert monkey.begun == 1
        finish = run.requests["finish_step"]
        order = np.lexsort((np.arange(finish.size), finish))
        told = 0
        heard = iter(zip(times, monkey.heard, strict=True))
        upcoming = next(heard, None)
        for decision, (step, _, _, _) in enumerate(policy.seen):
            ended = order[: int((finish <= step).sum())]
            if ended.size > told:
                assert upcoming is not None
                at, (prompt, output) = upcoming
                assert at == decision
                assert prompt == case.trace.prompt[ended[told:]].tolist()
                assert output == case.trace.output[ended[told:]].tolist()
                told, upcoming = ended.size, next(heard, None)
        assert upcoming is None


def test_listening_changes_no_run(listening):
    """The same rule, looking at forecasts or not, runs the same; those that do not learn are told nothing."""
    rng = random.Random(2)
    for _ in range(many(20, 6)):
        case = random_case(rng)
        plain, survival, told = (Looking("pooled", name) for name in (None, "survival", "listener"))
        training = random_case(rng, 10).trace if len(case.trace) < 2 else case.trace
        if len(training) < 2:
            continue
        first = case.run(plain)
        assert_same_run(first, case.run(survival, training=training))
        assert_same_run(first, case.run(told, training=training))


def test_the_learned_pair_runs(listening):
    pytest.importorskip("sklearn")
    case = random_case(random.Random(5), 60)
    assert len(case.trace) > 10
    assert_same_run(case.run(Looking("pooled", None)), case.run(Looking("pooled", "learned"), training=case.trace))
