"""A timetable against a plain simulation, and against the simulator's own runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbopt
from lbopt.exceptions import InputError
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.model import Trace


def naive_loads(timetable, worker):
    """Add each request's size to its worker, step by step."""
    loads = np.zeros((timetable.num_steps, timetable.num_workers), dtype=np.int64)
    for start, prompt, output, g in zip(timetable.start, timetable.prompt, timetable.output, worker, strict=True):
        for age in range(output):
            loads[start + age, g] += prompt + age
    return loads


@given(st.data())
def test_loads_are_the_sums_of_sizes(data):
    workers, slots = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=20))
    trace = Trace(prompt=np.array([p for p, _ in rows]), output=np.array([o for _, o in rows]))
    timetable = first_come(trace, workers, slots)
    free = [[0] * slots for _ in range(workers)]
    worker = []
    for start, end in zip(timetable.start, timetable.end, strict=True):  # colour the intervals
        g, slot = next((g, b) for g in range(workers) for b in range(slots) if free[g][b] <= start)
        free[g][slot] = end
        worker.append(g)
    worker = np.array(worker)
    expected = naive_loads(timetable, worker)
    np.testing.assert_array_equal(timetable.loads(worker), expected)
    np.testing.assert_array_equal(timetable.totals(), expected.sum(axis=1))
    assert timetable.barriers(worker) == expected.max(axis=1).sum()
    assert timetable.imbalance(worker) == (workers * expected.max(axis=1) - expected.sum(axis=1)).sum()
    assert timetable.running().max() <= workers * slots


@pytest.mark.parametrize("policy", ["fcfs", "jsq-load", "round-robin", "br-0"])
def test_a_run_of_the_simulator_has_the_barriers_of_its_timetable(policy):
    """The starts do not depend on the rule where it admits in the order of arrival; loads are those at the barrier."""
    rng = np.random.default_rng(7)
    trace = Trace(prompt=rng.integers(1, 300, 90), output=rng.integers(1, 40, 90))
    run = lbopt.simulate(trace, policy, workers=3, slots=4)
    requests, steps = run.request_table(), run.step_table()
    order = np.argsort(requests["start_step"], kind="stable")
    start = requests["start_step"].to_numpy()[order]
    timetable = Timetable(3, 4, start, trace.prompt[order], trace.output[order])
    loads = timetable.loads(requests["worker"].to_numpy()[order])
    np.testing.assert_array_equal(loads.max(axis=1), steps["barrier_max"])
    np.testing.assert_array_equal(loads.sum(axis=1), steps["barrier_sum"])
    if policy in ("fcfs", "jsq-load"):  # round-robin binds on arrival, br-0 chooses whom to admit
        np.testing.assert_array_equal(start, first_come(trace, 3, 4).start)


def test_what_is_no_timetable_is_refused():
    with pytest.raises(InputError, match="3 requests of the timetable run at once on 2 slots"):
        Timetable(2, 1, [0, 0, 0], [1, 1, 1], [2, 2, 2])
    with pytest.raises(InputError, match="worker 5 does not exist"):
        Timetable(2, 1, [0], [1], [2]).loads(np.array([5]))
    with pytest.raises(InputError, match="worker 0 holds more than 1 requests in step 1"):
        Timetable(2, 1, [0, 1], [1, 1], [2, 2]).loads(np.array([0, 0]))
    with pytest.raises(InputError, match="do not decrease"):
        Timetable(2, 1, [1, 0], [1, 1], [2, 2])
