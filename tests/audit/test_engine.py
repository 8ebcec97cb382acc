"""The independent serving engine, against its description."""

import ast
import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from audit.engine import run
from audit.fleets import FLEETS, Fleet, Requests
from audit.logs import CLOCKS, COLUMNS, EPOCH, to_rows, write_csv
from audit.mutations import EITHER, KINDS, REFUSE, SAME, mutate, plain
from audit.routers import RULES

DIGESTS = {
    "small-at-once": "c6a610ee476fcb37",
    "small-over": "4e95c794da30902f",
    "small-busy": "1566f3c3a1269b4c",
    "small-idle": "57740d2a3dfce12c",
    "small-chat": "0ca636f17511a4dc",
    "eight-at-once": "f883ed2699c3c2e0",
    "eight-over": "ea9dddd19ab2df62",
    "eight-busy": "a8d642e44e655ae2",
    "eight-half": "8031dd57b26f87a2",
    "eight-long": "c975d2ad3d07679c",
    "eight-drift": "e7e15b9bfa14843f",
    "sixteen-at-once": "b0f43feaacfe4080",
    "sixteen-over": "f7d4c01bd8ca369b",
    "sixteen-busy": "ab31e29d9e7682a7",
    "sixteen-idle": "d1dbad44caf3603b",
    "sixteen-tail": "b93cdaa822851d81",
    "thirty-over": "1e5ae32001eb4909",
    "thirty-half": "901789427e41f39d",
    "sixty-at-once": "64ebcfd8b832df88",
    "sixty-idle": "7179c99f59353eea",
}

SMALL = Fleet(4, 6, 0.01, 1e-6, 0.0, 0.8, "medium", 300, 5, 600, 40)
NOISY = Fleet(4, 6, 0.01, 1e-6, 0.03, 0.8, "medium", 300, 5, 600, 40)
FAULTS = {
    "none": {},
    "slow": {"slow": (1, 1.3)},
    "replicas": {"replicas": True},
    "restart": {"restart": (2, 3.0, 2.0)},
    "prefill": {"prefill": (0.05, 1e-4)},
    "preempt": {"preempt": (0.1, 15)},
    "restart of a preempted": {"restart": (2, 3.0, 2.0), "preempt": (0.5, 30)},
    "replicas restarted": {"replicas": True, "restart": (2, 3.0, 2.0), "preempt": (0.1, 15)},
}


def requests(*rows):
    columns = list(zip(*rows, strict=True))
    return Requests(np.array(columns[0], dtype=float), np.array(columns[1]), np.array(columns[2]))


def most_held(served):
    """The most requests that one worker ever had at a time."""
    most = 0
    for worker in range(served.G):
        own = served.worker == worker
        times = np.concatenate([served.start[own], served.finish[own]])
        change = np.repeat([1, -1], own.sum())
        most = max(most, int(np.cumsum(change[np.lexsort((change, times))]).max()))  # ends come first
    return most


def test_it_imports_nothing_of_lbopt():
    allowed = {*sys.stdlib_module_names, "numpy", "audit"}
    for name in ("engine", "fleets", "routers", "logs", "mutations"):
        for node in ast.walk(ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {a.name.split(".")[0] for a in node.names} <= allowed
            elif isinstance(node, ast.ImportFrom):
                assert node.module.split(".")[0] in allowed


def test_by_hand():
    """Two workers of one slot; a step takes 1 s and 0.1 s a token."""
    fleet = Fleet(2, 1, 1.0, 0.1, 0.0, 1.0, "light", 0, 0)
    asked = requests((0.5, 10, 2), (0.5, 20, 1), (1.0, 30, 2), (100.0, 5, 1))
    done = run(fleet, "fcfs", requests=asked)
    # 0.5: 10 | 20, 3 s.  3.5: 11 | 30, 4 s.  7.5: - | 31, 4.1 s.  11.6: nothing.  100: 5 | -, 1.5 s.
    assert np.allclose(done.step_start, [0.5, 3.5, 7.5, 100]) and np.allclose(done.step_time, [3, 4, 4.1, 1.5])
    assert done.step_max.tolist() == [20, 30, 31, 5] and done.step_sum.tolist() == [30, 41, 31, 5]
    assert done.worker.tolist() == [0, 1, 1, 0]
    assert np.allclose(done.start, [0.5, 0.5, 3.5, 100]) and np.allclose(done.finish, [7.5, 3.5, 11.6, 101.5])
    assert done.steps == 4 and done.wait == pytest.approx(2.5 / 4)
    assert done.idle == pytest.approx(np.mean([1 - 30 / 40, 1 - 41 / 60, 1 / 2, 1 / 2]))
    assert done.tpot == pytest.approx(np.mean([3.5, 3, 8.1 / 2, 1.5]))
    # the largest prompt goes first: 20 then 10; round robin binds the third request to worker 0, behind the first
    assert run(fleet, "max-min", requests=asked).worker.tolist() == [1, 0, 0, 0]
    assert run(fleet, "round-robin", requests=asked).worker.tolist() == [0, 1, 0, 1]


def test_by_hand_with_faults():
    fleet = Fleet(2, 1, 1.0, 0.1, 0.0, 1.0, "light", 0, 0)
    asked = requests((0.0, 10, 2), (0.0, 20, 2))
    assert np.allclose(run(fleet, requests=asked, slow=(0, 3.0)).step_time, [4, 4.3])
    apart = run(fleet, requests=asked, replicas=True)
    assert np.allclose(apart.finish, [2 + 2.1, 3 + 3.1])
    late = run(fleet, requests=asked, prefill=(1.0, 0.05))  # known at 1.5 and 2; the first runs alone until 3.5
    assert np.allclose(late.start, [1.5, 3.5])
    cut = run(fleet, requests=requests((0.0, 10, 3), (0.0, 20, 2), (0.0, 5, 1)), restart=(0, 2.5, 4.0))
    assert cut.cancelled.tolist() == [True, False, False] and cut.output.tolist() == [1, 2, 1]
    assert np.allclose(cut.finish[:2], [3, 6.1]) and cut.start[2] == pytest.approx(6.1)
    held = run(fleet, requests=requests((0.0, 10, 3)), preempt=(1.0, 2))
    assert held.finish[0] > 2 + 2.1 + 2.2 and held.last[0] > 3 and 0 in held.step_max


@pytest.mark.some(16)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fault", FAULTS)
def test_conservation(rule, fault):
    served = run(NOISY, rule, 1, **FAULTS[fault])
    asked = NOISY.draw()
    assert (served.arrival <= served.start).all() and (served.start < served.finish).all()
    assert (served.arrival == asked.arrival).all() and (served.prompt == asked.prompt).all()
    assert (served.output == asked.output)[~served.cancelled].all() and (served.output >= 0).all()
    assert served.cancelled.any() == ("restart" in FAULTS[fault])
    assert ((served.worker >= 0) & (served.worker < NOISY.G)).all()
    assert most_held(served) <= NOISY.B
    if "preempt" not in FAULTS[fault]:
        assert (served.last - served.first == served.output).all()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seed_fixes_the_run(fault):
    served, again, other = (run(NOISY, "jsq", seed, **FAULTS[fault]) for seed in (1, 1, 2))
    assert (again.finish == served.finish).all() and (other.finish != served.finish).any()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fault", ["none", "slow", "restart", "preempt"])
def test_residence_is_the_sum_of_its_steps(rule, fault):
    served = run(NOISY, rule, 3, **FAULTS[fault])
    clock = np.concatenate([[0], np.cumsum(served.step_time)])
    assert np.allclose(served.finish - served.start, clock[served.last] - clock[served.first])
    assert np.allclose(served.start, served.step_start[served.first])


@pytest.mark.parametrize("rule", RULES)
def test_loads_and_law_of_the_steps(rule):
    served = run(SMALL, rule)
    loads = np.zeros((served.steps, SMALL.G), dtype=int)
    for worker, first, last, prompt in zip(served.worker, served.first, served.last, served.prompt, strict=True):
        loads[first:last, worker] += prompt + np.arange(last - first)
    assert (loads.max(axis=1) == served.step_max).all() and (loads.sum(axis=1) == served.step_sum).all()
    assert np.allclose(served.step_time, SMALL.fixed + SMALL.per_token * loads.max(axis=1), rtol=1e-12, atol=0)
    ends = served.step_start + served.step_time
    gap = served.step_start[1:] > ends[:-1] + 1e-12
    assert np.isin(served.step_start[1:][gap], served.arrival).all(), "time jumps to an arrival alone"


def test_replicas_follow_their_own_load():
    served = run(SMALL, "jsq", replicas=True)
    for worker in range(SMALL.G):
        own, steps = served.worker == worker, served.step_group == worker
        loads = np.zeros(steps.sum(), dtype=int)
        for first, last, prompt in zip(served.first[own], served.last[own], served.prompt[own], strict=True):
            loads[first:last] += prompt + np.arange(last - first)
        assert (loads == served.step_max[steps]).all()
        assert np.allclose(served.step_time[steps], SMALL.fixed + SMALL.per_token * loads)


def test_no_slot_is_left_free_while_the_pool_waits():
    served = run(SMALL, "fcfs")
    held = np.zeros(served.steps, dtype=int)
    for first, last in zip(served.first, served.last, strict=True):
        held[first:last] += 1
    for step, begin in enumerate(served.step_start):
        if ((served.arrival <= begin) & (served.first > step)).any():
            assert held[step] == SMALL.G * SMALL.B
    assert (np.diff(served.first) >= 0).all(), "first come, first served"


def test_noise():
    fleet = Fleet(4, 16, 0.005, 5e-7, 0.04, float("inf"), "light", 800, 1, 600, 100, rho=0.8)
    served = run(fleet)
    ratio = np.log(served.step_time / (fleet.fixed + fleet.per_token * served.step_max))
    assert ratio.std() == pytest.approx(0.04, rel=0.25)
    assert np.corrcoef(ratio[1:], ratio[:-1])[0, 1] == pytest.approx(0.8, abs=0.1)


def test_a_restarted_worker_stays_empty():
    served = run(SMALL, "jsq", restart=(2, 3.0, 2.0))
    cut = served.finish[served.cancelled]
    assert len(cut) and (cut == cut[0]).all() and (served.worker[served.cancelled] == 2).all()
    own = served.start[served.worker == 2]
    assert not ((own >= cut[0]) & (own < cut[0] + 2)).any() and (own >= cut[0] + 2).any()


@pytest.mark.parametrize("name", FLEETS)
def test_frozen_fleets(name):
    fleet = FLEETS[name]
    assert fleet.digest == DIGESTS[name]
    _, prompt, output = fleet.draw()
    assert 1500 <= fleet.requests == len(prompt) <= 8000
    assert output.mean() == pytest.approx(fleet.output, rel=0.08)
    assert prompt.mean() == pytest.approx(fleet.prompt, rel=0.25 if fleet.tail in ("long", "heavy") else 0.08)


def test_digests_are_of_all_fleets():
    assert list(DIGESTS) == list(FLEETS) and len(set(DIGESTS.values())) == 20


@pytest.mark.some(8)
@pytest.mark.parametrize("name", FLEETS)
def test_served_fleets(name):
    fleet = FLEETS[name]
    served = run(fleet)
    assert 0.2 <= served.token_share <= 0.8
    if fleet.occupancy < 1:
        assert served.occupancy == pytest.approx(fleet.occupancy, rel=0.25)
    else:
        assert served.occupancy > 0.9 and served.wait > 10 * served.step_time.mean()
    assert most_held(served) <= fleet.B
    if fleet.noise == 0:
        law = np.polyfit(served.step_max, served.step_time, 1)
        assert law == pytest.approx([fleet.per_token, fleet.fixed], rel=1e-6)


@pytest.mark.parametrize("unit", CLOCKS)
def test_logs(unit, tmp_path):
    served = run(SMALL, "jsq")
    path = write_csv(served, tmp_path / "log.csv", unit, order="finish")
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS and len({row["id"] for row in rows}) == len(rows) == SMALL.requests
    assert sum(int(row["output_tokens"]) for row in rows) == served.output.sum()
    if "iso" not in unit:
        scale, zero = (1e3 if "ms" in unit else 1), (EPOCH if "epoch" in unit else 0)
        found = np.array([float(row["finish"]) for row in rows]) / scale - zero
        assert np.allclose(found, np.sort(served.finish), rtol=0, atol=6e-4 if "whole" in unit else 2e-6)
    assert "cancelled" not in rows[0] and "status" in to_rows(served, status=True)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_mutations(kind):
    rows = to_rows(run(SMALL, "jsq"))
    before = plain(rows)
    for seed in range(3):
        text, expectation = mutate(rows, kind, np.random.default_rng(seed))
        again, _ = mutate(rows, kind, np.random.default_rng(seed))
        assert text == again != before and expectation in (SAME, EITHER, REFUSE)
    assert plain(rows) == before, "the rows were changed"
