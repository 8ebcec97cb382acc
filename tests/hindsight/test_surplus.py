"""The surplus bound against every set and every placement, and its certificate against forgeries."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from lbopt.exceptions import CertificateError
from lbopt.hindsight import optimum as module
from lbopt.hindsight import search_start, search_surplus
from lbopt.hindsight.bounds import step_bounds
from lbopt.hindsight.certificate import BoundCertificate, WindowBound
from lbopt.hindsight.check import check_optimum
from lbopt.hindsight.halt import Halt
from lbopt.hindsight.optimum import optimum
from lbopt.hindsight.search_cover import starts_of
from lbopt.hindsight.search_surplus import outlook_of, surplus_bound, terms_of
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.hindsight.windows import cut
from lbopt.kernels.arrays import record
from lbopt.kernels.hindsight.optimum_lists import DONE
from lbopt.kernels.hindsight.optimum_surplus import BANNED, PRICED, Found, Prices, cheapest_sets
from lbopt.model import Trace
from tests.hindsight.small_runs import KINDS, least_barriers, small_run


def runs(count, seed, most=8):
    """Small runs of all kinds on two workers or more."""
    rng = np.random.default_rng(seed)
    drawn = 0
    while drawn < count:
        timetable = small_run(KINDS[drawn % len(KINDS)], rng, most)
        if timetable.num_workers > 1:
            drawn += 1
            yield timetable, rng


def sets_of(timetable):
    """Every set that one worker can run in some placement, by the number of slots that the others have."""
    start, end = timetable.start, timetable.end
    running = timetable.running()
    most, least = timetable.slots_per_worker, running - (timetable.num_workers - 1) * timetable.slots_per_worker
    for bits in itertools.product([False, True], repeat=timetable.num_requests):
        chosen = np.array(bits, dtype=bool)
        held = np.array([int((chosen & (start <= k) & (end > k)).sum()) for k in range(timetable.num_steps)])
        if (held <= most).all() and (held >= least).all():
            yield chosen


def cost_of(timetable, windows, terms, chosen):
    """What a set costs without prices, window by window."""
    cost = 0
    for c in range(windows.floor.size):
        over = sum(int(windows.tokens[i, c]) for i in np.flatnonzero(chosen)) - int(windows.floor[c])
        cost += int(terms.above[c]) * over if over > 0 else -int(terms.below[c]) * over
    return cost


def test_the_cheapest_sets_are_those_of_trying_all():
    """Also where some requests are banned, and where the list is too short for all sets within the budget."""
    shortened = 0
    for timetable, rng in runs(60, 1, 7):
        windows, count = cut(timetable), timetable.num_requests
        terms, starts = terms_of(timetable, windows), starts_of(timetable, windows, np.arange(count))
        prices = rng.integers(-200, 400, count)
        banned = rng.random(count) < 0.1
        every = [s for s in sets_of(timetable) if not (s & banned).any()]
        costs = sorted(cost_of(timetable, windows, terms, s) - int(prices[s].sum()) for s in every)
        search = search_surplus._Search(timetable, windows, starts, 0, Halt())
        shifted, later = search.shifted(prices)
        for s in every:
            assert int(shifted[s].sum()) == int(prices[s].sum())
        shifted[banned] = BANNED
        for rows, budget in ((512, 10**9), (8, 10**9), (512, costs[len(costs) // 2] if costs else 0)):
            found, state = Found(np.zeros((rows, 1), np.uint64), np.zeros(rows, np.int64)), record(PRICED)
            state.budget = budget
            first = int(starts.begin[1])
            fill = -search_surplus._fill(-shifted[:first].clip(min=-(1 << 54)), int(starts.most[0]))
            given = Prices(shifted, fill, later, terms.above, terms.below)
            assert cheapest_sets(starts, given, outlook_of(windows, starts, terms), found, state) == DONE
            kept = found.cost[: state.sets]
            assert sorted(kept.tolist()) == [cost for cost in costs if cost <= state.budget]
            shortened += state.budget < budget
            for row, cost in enumerate(kept.tolist()):
                chosen = np.array([int(found.mask[row, 0]) >> i & 1 for i in range(count)], dtype=bool)
                assert cost == cost_of(timetable, windows, terms, chosen) - int(prices[chosen].sum())
    assert shortened > 5


def test_the_bound_is_below_every_placement_and_often_above_the_steps():
    """The inequality, the prices and the certificate, on runs whose least barriers are found by trying all."""
    raised = 0
    for timetable, _ in runs(70, 2):
        least, floors = least_barriers(timetable), int(step_bounds(timetable).sum())
        worker = search_start.greedy(timetable, cut(timetable)) // timetable.slots_per_worker
        found = surplus_bound(timetable, worker, 600.0)
        assert found is not None
        assert found.lower <= least
        raised += found.lower > floors
        steps = timetable.num_steps
        window = WindowBound(0, steps, found.lower, "surplus", tuple(found.cuts.tolist()), tuple(found.prices.tolist()))
        assert established(timetable, optimum(timetable, 600), window)
    assert raised > 5


def established(timetable, result, window, **limits):
    """Whether the check accepts a lower bound that rests on one window."""
    total = int(timetable.totals().sum())
    claim = dataclasses.replace(
        result,
        lower=window.bound,
        lower_imbalance=timetable.num_workers * window.bound - total,
        stop="proved" if window.bound == result.upper else "time",
        certificate=BoundCertificate(result.certificate.timetable, (window,)),
    )
    return check_optimum(timetable, claim, **limits).bound_established


@pytest.fixture(scope="module")
def priced():
    """A run whose surplus bound is above the bounds of its steps, and the window that says so."""
    rng = np.random.default_rng(5)
    trace = Trace(prompt=rng.integers(1, 300, 26), output=rng.integers(1, 40, 26))
    timetable = first_come(trace, 4, 3)
    worker = search_start.greedy(timetable, cut(timetable)) // 3
    found = surplus_bound(timetable, worker, 600.0)
    assert found.lower > step_bounds(timetable).sum()
    cuts, prices = tuple(found.cuts.tolist()), tuple(found.prices.tolist())
    window = WindowBound(0, timetable.num_steps, found.lower, "surplus", cuts, prices)
    return timetable, optimum(timetable, 600), window


def test_forged_prices_and_bounds_are_refused(priced):
    timetable, result, window = priced
    assert established(timetable, result, window)
    forged = [
        dataclasses.replace(window, bound=window.bound + 1),
        dataclasses.replace(window, prices=window.prices[:-1]),
        dataclasses.replace(window, prices=(window.prices[0] + 10**6, *window.prices[1:])),
        dataclasses.replace(window, cuts=window.cuts[:-1]),
        dataclasses.replace(window, cuts=()),
    ]
    for wrong in forged:
        with pytest.raises(CertificateError, match="leave a set of requests that costs less"):
            established(timetable, result, wrong)
    assert not established(timetable, result, window, most_rows=100)


def test_the_certificate_is_written_and_read(priced):
    _, _, window = priced
    certificate = BoundCertificate("x", (window, WindowBound(1, 2, 3, "steps")))
    data = certificate.to_dict()
    assert [len(row) for row in data["windows"]] == [6, 4]
    assert BoundCertificate.from_dict(data) == certificate


def test_a_run_that_cannot_be_covered_gets_an_end_and_prices(monkeypatch):
    """With short lists the end of the run is proved by itself, what comes before is priced, and the check agrees."""
    monkeypatch.setattr(search_start, "MOVES", 2_000)
    monkeypatch.setattr(search_start, "PATIENCE", 1)
    monkeypatch.setattr(module, "_ENDS", (9, 12))
    kinds = set()
    for seed in range(4):
        rng = np.random.default_rng([9, seed])
        trace = Trace(prompt=rng.integers(1, 300, 26), output=rng.integers(1, 60, 26))
        timetable = first_come(trace, 4, 4)
        result = optimum(timetable, 0.2)
        bounds, _ = module._with_its_end(timetable, result.worker, 100.0, 0, Halt())
        lower = sum(window.bound for window in bounds)
        assert step_bounds(timetable).sum() <= lower <= result.upper
        claim = dataclasses.replace(
            result,
            lower=lower,
            lower_imbalance=4 * lower - int(timetable.totals().sum()),
            stop="proved" if lower == result.upper else "time",
            certificate=BoundCertificate(result.certificate.timetable, bounds),
        )
        assert check_optimum(timetable, claim).bound_established
        kinds.add(tuple(window.kind for window in bounds))
    assert ("surplus", "covers") in kinds


def test_a_bound_that_no_pass_has_ended_for_is_none():
    timetable = Timetable(2, 2, [0, 0, 0, 0], [9, 5, 4, 1], [3, 2, 2, 3])
    worker = np.array([0, 0, 1, 1])
    asked = Halt()
    asked.ask()
    assert surplus_bound(timetable, worker, 600.0, asked) is None
    assert surplus_bound(Timetable(1, 4, [0], [1], [1]), np.zeros(1, np.int64), 600.0) is None
