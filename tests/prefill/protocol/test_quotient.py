"""What the explorer takes for one is one: the step does not see how things are named, and nothing is missed."""

from dataclasses import replace

import numpy as np
import pytest
from immutables import Map
from prefill.protocol.defects import DEFECTS
from prefill.protocol.explore import explore
from prefill.protocol.quotient import EXTENSIONS, UNKNOWN, canonical, digest
from prefill.protocol.schedules import UNTIL, draw

from lbopt.exceptions import LbOptError
from lbopt.prefill.protocol import ProtocolSetting, SchedulerState
from lbopt.prefill.protocol.state import Counts, initial_state

FOUND = (LbOptError, AssertionError)


class Renaming:
    """Instances rotated, requests renamed."""

    def __init__(self, count: int, by: int, requests: dict[int, int]) -> None:
        self.count, self.by, self.requests = count, by, requests

    def instance(self, g):
        return (g + self.by) % self.count

    def pair(self, holder):
        return None if holder is None else (self.instance(holder[0]), holder[1])

    def of_event(self, event):
        changes = {}
        if hasattr(event, "instance"):
            changes["instance"] = self.instance(event.instance)
        if hasattr(event, "request"):
            changes["request"] = self.requests[event.request]
        if hasattr(event, "requests"):
            changes["requests"] = tuple(self.requests[request] for request in event.requests)
        return replace(event, **changes)

    def of_state(self, state):
        name = self.requests
        instances = [None] * self.count
        for g, at in enumerate(state.instances):
            batches = tuple(b._replace(requests=tuple(name[request] for request in b.requests)) for b in at.batches)
            instances[self.instance(g)] = at._replace(batches=batches)
        ledger = state.ledger
        entries = {
            name[request]: entry._replace(holder=self.pair(entry.holder), tried=tuple(map(self.pair, entry.tried)))
            for request, entry in ledger.entries.items()
        }
        ledger = ledger._replace(
            entries=Map(entries),
            fresh=Map({order: name[request] for order, request in ledger.fresh.items()}),
            back=tuple((order, name[request]) for order, request in ledger.back),
            past=Map({number: name[request] for number, request in ledger.past.items()}),
            finished=Map({name[request]: number for request, number in ledger.finished.items()}),
        )
        return state._replace(instances=tuple(instances), ledger=ledger, turn=self.instance(state.turn))


@pytest.mark.parametrize("seed", range(12))
def test_a_step_does_not_see_names(seed):
    """Each event of a random history, to the state and to its image under a rotation and a renaming of requests."""
    world = draw(seed)
    rng = np.random.default_rng([seed, 7])
    count, requests = world.setting.num_instances, len(world.tokens)
    renaming = Renaming(count, int(rng.integers(count)), dict(enumerate(map(int, 1000 + rng.permutation(requests)))))
    step = world.scheduler.step

    def both(state, event):
        after, actions = step(state, event)
        image, others = step(renaming.of_state(state), renaming.of_event(event))
        assert image == renaming.of_state(after)
        assert sorted(map(repr, others)) == sorted(repr(renaming.of_event(action)) for action in actions)
        return after, actions

    world.scheduler.step = both
    world.run(UNTIL)


def test_a_reflection_is_no_symmetry():
    """The ring goes one way: with instances 1 and 2 exchanged, the second batch would go to the other one."""
    state = initial_state(ProtocolSetting(3))._replace(turn=1)
    mirrored = [0, 2, 1]
    assert Renaming(3, 0, {}).of_state(state) == state
    assert (mirrored[state.turn] + 1) % 3 != mirrored[(state.turn + 1) % 3]


@pytest.mark.some(1, but=("5-options0",))
@pytest.mark.parametrize(
    ("depth", "options"),
    [
        (5, {}),
        (4, {"checks": True, "polls": True, "timer": "tick"}),
        (4, {"checks": True, "idle_bypass": True, "batch_tokens": 100, "patience": 0}),
        (4, {"instances": 3, "polls": True}),
        pytest.param(6, {}, marks=pytest.mark.slow),
        pytest.param(6, {"polls": True, "timer": "tick"}, marks=pytest.mark.slow),
        pytest.param(5, {"checks": True, "batch_tokens": 100, "patience": 0}, marks=pytest.mark.slow),
    ],
)
def test_the_quotient_of_all_is_what_the_reduced_exploration_reaches(depth, options):
    ours = {name: value for name, value in options.items() if name not in ("checks", "polls", "instances")}
    setting = ProtocolSetting(options.get("instances", 2), **{"window": 3, "watchdog": 3.0, **ours})

    def reached(reduced):
        digests = set()
        count, _ = explore(
            depth,
            2,
            reduced=reduced,
            visit=lambda system, level: digests.add(digest(canonical(system, setting, options.get("polls", False)))),
            **options,
        )
        return digests, sum(count.values())

    (everything, of_all), (few, of_few) = reached(False), reached(True)
    assert few == everything
    assert of_few == len(few) < of_all


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_what_is_found_in_all_is_found_in_few(defect):
    for depth in (3, 4, 5, 6):
        try:
            explore(depth, 2, defect, reduced=False, checks=True)
        except FOUND:
            with pytest.raises(FOUND):
                explore(depth, 2, defect, checks=True)
            return
    explore(6, 2, defect, checks=True)


def test_a_digest_tells_what_a_hash_does_not():
    """For Python, -1.0 and -2.0 have one hash: two dispatches of one and two seconds ago would have been one."""
    assert hash((-1.0,)) == hash((-2.0,))
    assert digest((-1.0,)) != digest((-2.0,))


def test_fields_that_are_not_known_are_taken_as_they_are(monkeypatch):
    """Unless they serve an option that is not used."""
    plain = canonical(explore(1, 0)[1].start(0), ProtocolSetting(2), False)
    monkeypatch.setitem(UNKNOWN, SchedulerState, ("counts",))
    system = explore(1, 0)[1].start(0)
    assert canonical(system, ProtocolSetting(2), False) == plain
    monkeypatch.setitem(EXTENSIONS, "watchdog", 3.0)
    assert Counts() in canonical(system, ProtocolSetting(2), False)[2]
