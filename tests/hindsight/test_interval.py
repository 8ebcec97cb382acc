"""Intervals of the clairvoyant optimum against exhaustion and plain counts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hindsight import exhaustion
from hypothesis import given
from hypothesis import strategies as st

import lbopt
from lbopt.exceptions import InputError
from lbopt.hardware import BarrierForm
from lbopt.hindsight.interval import Ends, clairvoyant_interval, seconds_of
from lbopt.hindsight.local_search import least_barriers, slot_by_slot
from lbopt.hindsight.timetable import first_come
from lbopt.model import Trace

ROWS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), min_size=1, max_size=7)
AFFINE = BarrierForm(fixed=0.5, per_token=0.01)


def table_of(rows, workers, slots):
    return first_come(
        Trace(prompt=np.array([p for p, _ in rows]), output=np.array([o for _, o in rows])), workers, slots
    )


def plain_bound(timetable, step):
    """The bound of a step by its definition: shares by all sorted sizes, no list kept from step to step."""
    present = [r for r in range(timetable.num_requests) if 0 <= step - timetable.start[r] < timetable.output[r]]
    shown = sorted((exhaustion.sizes(timetable, r, step) for r in present), reverse=True)
    if not shown:
        return 0
    G, B, n = timetable.num_workers, timetable.slots_per_worker, len(shown)
    bounds = [math.ceil(sum(shown) / G)]
    bounds += [sum(sorted(shown[: j * G + 1])[: j + 1]) for j in range(4) if n > j * G]
    with_the_largest = max(1, n - (G - 1) * B)
    bounds.append(shown[0] + sum(sorted(shown[1:])[: with_the_largest - 1]))
    return max(bounds)


def best_of_step(timetable, step):
    """The least barrier of one step over all placements of its requests."""
    present = [r for r in range(timetable.num_requests) if 0 <= step - timetable.start[r] < timetable.output[r]]
    best = None
    for worker in itertools.product(range(timetable.num_workers), repeat=len(present)):
        if max((worker.count(g) for g in set(worker)), default=0) > timetable.slots_per_worker:
            continue
        load = [0] * timetable.num_workers
        for row, g in zip(present, worker, strict=True):
            load[g] += exhaustion.sizes(timetable, row, step)
        best = max(load) if best is None else min(best, max(load))
    return best


@given(ROWS, st.integers(1, 3), st.integers(1, 3))
def test_bounds_of_steps_are_those_of_a_plain_count(rows, workers, slots):
    """And no placement of a step is below them."""
    table = table_of(rows, workers, slots)
    bound = least_barriers(table)
    assert list(bound) == [plain_bound(table, k) for k in range(table.num_steps)]
    assert all(bound[k] <= best_of_step(table, k) for k in range(table.num_steps))


@given(ROWS, st.integers(2, 3), st.integers(1, 3))
def test_the_interval_holds_the_optimum(rows, workers, slots):
    table = table_of(rows, workers, slots)
    interval = clairvoyant_interval(table, AFFINE, effort=2)
    best = exhaustion.least(table)
    assert interval.barriers.low <= best <= interval.barriers.high
    total = sum(table.totals())
    assert interval.imbalance.low <= workers * best - total <= interval.imbalance.high
    seconds = 0.5 * table.num_steps + 0.01 * best
    assert interval.seconds.low <= seconds <= interval.seconds.high
    given_bound = clairvoyant_interval(table, AFFINE, effort=2, lower_bound=best)
    assert given_bound.barriers.low == best
    assert given_bound.seconds.low == pytest.approx(seconds, rel=1e-9) and given_bound.seconds.low <= seconds


def test_seconds_are_those_of_the_law_with_tables():
    """The least seconds of any placement lie in the interval, under a law that goes by the running requests, too."""
    form = BarrierForm(
        fixed=0.1,
        per_token=0.01,
        per_mean_token=0.003,
        of_running=np.array([0.0, 0.7, 0.4, 0.9]),
        of_active=np.linspace(0, 1, 7),
    )
    table = table_of([(5, 3), (9, 2), (0, 4), (3, 3), (8, 2), (2, 1), (7, 2)], 2, 3)
    interval = clairvoyant_interval(table, form, effort=2)
    seconds = []
    for worker in itertools.product(range(2), repeat=7):
        loads = exhaustion.loads(table, worker)
        if loads is not None:
            held = [[0, 0] for _ in loads]
            for row, g in enumerate(worker):
                for step in range(table.start[row], table.end[row]):
                    held[step][g] += 1
            seconds.append(
                sum(
                    0.1
                    + max(0.01 * load[g] + form.of_running[count[g]] for g in range(2))
                    + 0.003 * sum(load) / 2
                    + form.of_active[sum(count)]
                    for load, count in zip(loads, held, strict=True)
                )
            )
    assert 0.8 * min(seconds) < interval.seconds.low <= min(seconds) <= interval.seconds.high
    worker = slot_by_slot(table)
    assert min(seconds) <= seconds_of(table, form, worker) <= max(seconds) + 1e-12


def test_a_ratio_needs_an_optimum_above_zero():
    assert Ends(2.0, 4.0).over(8.0) == Ends(2.0, 4.0)
    assert Ends(0.0, 4.0).over(8.0) == Ends(2.0, math.inf)
    assert Ends(0.0, 0.0).over(0.0) == Ends(1.0, 1.0)
    assert Ends(1.0, math.inf).to_list() == [1.0, None]


def test_what_cannot_be_is_refused():
    table = table_of([(5, 3), (9, 2)], 2, 3)
    with pytest.raises(InputError, match="lower_bound is 1000"):
        clairvoyant_interval(table, AFFINE, lower_bound=1000)
    with pytest.raises(InputError, match="experts in use"):
        clairvoyant_interval(table, BarrierForm(fixed=1.0, per_token=0.0, per_expert=0.1))


@pytest.mark.parametrize("arrivals", [{}, {"arrivals": "trace", "load": 0.7}])
def test_the_study_has_the_seconds_of_the_simulator(arrivals):
    """Imbalance, seconds and tokens a second of a rule are those of its run; its ratio is never below one."""
    outcome = lbopt.in_hindsight(
        "azure-like", policies=["jsq", "fcfs", "auto"], requests=300, workers=3, slots=8, effort=2, **arrivals
    )
    assert [one.rule for one in outcome.rules] == ["jsq", "fcfs", "auto"]
    assert outcome.rules[1].timetable == 0
    for one in outcome.rules:
        run = lbopt.simulate("azure-like", one.rule, requests=300, workers=3, slots=8, **arrivals)
        busy = run.steps["barrier_sum"] > 0
        imbalance = 3 * run.steps["barrier_max"] - run.steps["barrier_sum"]
        assert one.imbalance == imbalance.sum()
        assert one.seconds == pytest.approx(run.steps["seconds"][busy].sum(), rel=1e-9)
        assert one.share_of_ceiling == pytest.approx(run.metrics().whole_run_share_of_ceiling, rel=1e-9)
        assert one.ratio.low * (1 + 1e-9) >= 1 and one.ratio.low <= one.ratio.high
        assert one.optimum_imbalance.low <= one.optimum_imbalance.high <= one.imbalance
        assert one.share_of_ceiling <= 1 / one.ratio.high * (1 + 1e-9)
    assert outcome.fastest.seconds == min(one.seconds for one in outcome.rules)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"policies": ["jsqq"]}, "jsqq"),
        ({"effort": 0}, "effort is 0; expected 1 exchange"),
        ({"time_limit": -1.0}, "time_limit is -1.0"),
        ({"detail": "preempt=recompute", "kv_capacity": 50_000}, "leave detail out"),
        ({"trace": "no_such_file.csv"}, "no_such_file.csv"),
        ({"polices": ["jsq"]}, "polices"),
    ],
)
def test_the_study_refuses_in_a_sentence(words, said):
    with pytest.raises(InputError, match=said):
        lbopt.in_hindsight(**{"requests": 50, "workers": 2, "slots": 4, **words})
