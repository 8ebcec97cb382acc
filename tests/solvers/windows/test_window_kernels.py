"""The parts of the window search against naive twins."""

import random
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog
from solvers.windows.window_problems import random_window

from lbopt.kernels.known_ends.placing import cost_of
from lbopt.kernels.known_ends.polish import heaviest_beside, note_tops
from lbopt.kernels.windows.boxes import snap, total_of_left
from lbopt.kernels.windows.branching import take
from lbopt.kernels.windows.cuts import limit_of, refresh, separate
from lbopt.kernels.windows.placing import fill_near, nearest
from lbopt.kernels.windows.polish import cost_of_change, ideal_change, polish
from lbopt.kernels.windows.relaxation import OPTIMAL, exact_bound, first_basis, optimise, sound
from lbopt.kernels.windows.sets import FOUND, IMPOSSIBLE, next_set
from lbopt.kernels.windows.tree import begin
from lbopt.model import objective
from lbopt.solvers.exact.windows import WindowDecision

pytestmark = [pytest.mark.jit, pytest.mark.more]


def roots(seed, count, **size):
    """(problem, decision, search at its root, random source) of random windows."""
    rng = random.Random(seed)
    while count:
        problem = random_window(rng, top=rng.choice([3, 30, 1000]), **size)
        decision = WindowDecision(problem)
        search = decision.start(1 << 61)
        begin(decision.window, search)
        take(search.progress, search.nodes, search.box, 0)
        if snap(decision.window.pool, decision.window.slots, search.box):
            count -= 1
            yield problem, decision, search, rng


def items(avail):
    """Classes of the requests that are left, one entry each, ascending."""
    return [k for k, copies in enumerate(avail.tolist()) for _ in range(copies)]


def test_the_next_total_is_the_nearest_that_exists():
    for _, decision, _, rng in roots(1, 150):
        pool, avail = decision.window.pool, decision.window.pool.n
        v = pool.v.tolist()
        c = rng.randint(1, min(3, sum(avail.tolist()), pool.small.size - 1))
        least = rng.randrange(len(v))
        most = rng.randint(least, len(v) - 1)
        totals = {sum(v[k] for k in s) for s in combinations(items(avail), c) if least <= s[-1] <= most}
        t = rng.randint(-5, sum(v))
        for up in (True, False):
            beside = {x for x in totals if (x >= t if up else x <= t)}
            wanted = (min(beside) if up else max(beside)) if beside else -1
            found = total_of_left(pool, avail, c, least, most, t, up)
            if c < 3:
                assert found == wanted
            elif wanted >= 0:  # lists may hold totals that no three requests have, never miss one
                assert t <= found <= wanted if up else wanted <= found <= t


def test_the_sets_with_a_total_are_listed_once_each_and_put_back():
    for _, decision, _, rng in roots(2, 150):
        pool, left = decision.window.pool, decision.window.pool.n.copy()
        before = left.tolist()
        c = rng.randint(1, min(4, sum(before), pool.small.size - 1))
        total = sum(pool.v[k] for k in rng.sample(items(left), c)) if rng.random() < 0.8 else rng.randint(0, 50)
        most = rng.randrange(pool.v.size)
        wanted = {
            tuple(sorted(s, reverse=True))
            for s in combinations(items(left), c)
            if s[-1] <= most and sum(pool.v[k] for k in s) == total
        }
        row, found, fresh = np.zeros(c, dtype=np.int64), [], True
        while True:
            state, _ = next_set(pool, left, c, most, total, row, fresh, 10**6)
            if state != FOUND:
                break
            found.append(tuple(row.tolist()))
            assert left.sum() == sum(before) - c
            fresh = False
        assert state == IMPOSSIBLE
        assert len(found) == len(set(found))
        assert set(found) == wanted
        assert left.tolist() == before


def most_together(decision, search, inside, problem, sense):
    """The extreme total of these workers over all assignments with boxes, by trying all of them."""
    pool, slots, box = decision.window.pool, decision.window.slots, search.box
    chosen = [w for w in range(slots.size) if inside[w]]
    best = [None]

    def serve(i, left, total):
        if i == len(chosen):
            outside = int(slots.sum()) - sum(int(slots[w]) for w in chosen)
            used = [n - sum(1 for k in left if k == j) for j, n in enumerate(pool.n.tolist())]
            if sum(max(0, m - u) for m, u in zip(pool.must.tolist(), used, strict=True)) <= outside:
                best[0] = total if best[0] is None else sense * max(sense * total, sense * best[0])
            return
        w = chosen[i]
        for s in set(combinations(left, int(slots[w]))):
            own = sum(int(pool.v[k]) for k in s)
            if box.low[w] <= own <= box.high[w]:
                rest = list(left)
                for k in s:
                    rest.remove(k)
                serve(i + 1, rest, total + own)

    serve(0, items(pool.n), 0)
    return best[0]


def test_a_cut_loses_no_assignment():
    for problem, decision, search, rng in roots(3, 60, workers=3, requests=6, slots=2):
        window, box = decision.window, search.box
        W = window.slots.size
        for w in range(W):
            if rng.random() < 0.5:
                box.high[w] = rng.randint(int(box.low[w]), int(box.high[w]))
            if rng.random() < 0.3:
                box.low[w] = rng.randint(int(box.low[w]), int(box.high[w]))
        if not snap(window.pool, window.slots, box):
            continue
        inside = np.array([rng.randint(0, 1) for _ in range(W)], dtype=np.int64)
        for sense in (1, -1):
            limit = limit_of(window.pool, window.slots, box, inside, sense, search.scratch.demand)
            true = most_together(decision, search, inside, problem, sense)
            assert true is None or (limit >= 0 and sense * true <= sense * limit)


def linear_program(decision, search):
    """The relaxation with its cuts, solved by HiGHS through SciPy: its value, None where it is empty."""
    window, box, cuts = decision.window, search.box, search.cuts
    W, T = window.profile.peak.shape
    G = int(window.profile.workers)
    rows, right = [], []
    for w in range(W):
        for h in range(T):
            row = np.zeros(T + W)
            row[h], row[T + w] = -1, 1
            rows.append(row)
            right.append(-float(window.profile.peak[w, h]))
    for c in range(int(search.progress.cuts)):
        if cuts.sense[c]:
            rows.append(np.concatenate([np.zeros(T), cuts.sense[c] * cuts.inside[c]]))
            right.append(float(cuts.sense[c] * cuts.limit[c]))
    sides = [(float(f), None) for f in window.profile.floor] + list(
        zip(box.low.tolist(), box.high.tolist(), strict=True)
    )
    answer = linprog([G] * T + [-T] * W, np.array(rows), right, bounds=sides, method="highs")
    return answer.fun if answer.status == 0 else None


def test_the_relaxation_is_solved_and_its_exact_bound_is_below_it():
    for problem, decision, search, _ in roots(4, 100):
        window, box = decision.window, search.box
        pool, profile, slots = window.pool, window.profile, window.slots
        args = (search.program, box, search.cuts, search.progress)
        refresh(pool, slots, box, search.cuts, 0, search.program.right, search.scratch.demand)
        first_basis(profile, search.program, window.low)
        for _ in range(4):
            state, value, _ = optimise(profile, *args, 1e300, 10_000)
            true = linear_program(decision, search)
            if state != OPTIMAL:
                assert true is None
                break
            assert value == pytest.approx(true, abs=1e-3)
            assert sound(profile, search.program, search.cuts)
            bound = exact_bound(profile, search.program, box, search.cuts, -1, search.scratch)
            assert value + decision.constant - 0.1 <= bound <= value + decision.constant + 1
            if not separate(pool, slots, box, search.cuts, search.program, search.progress, search.scratch):
                break
        assert search.progress.pivots >= 0
        assert problem.num_workers == profile.workers


def test_costs_of_sums_and_of_changes_agree_with_the_objective():
    for problem, decision, search, rng in roots(5, 100):
        window, draft, made = decision.window, search.draft, search.draft.made
        G, T = window.fleet.workers, problem.horizon + 1
        draft.goal[:] = [rng.randint(int(a), int(b)) for a, b in zip(window.low, window.high, strict=True)]
        assert fill_near(window.pool, window.slots, window.order, draft, rng.random() < 0.5, search.scratch)
        search.answer[:] = draft.pattern
        cost = objective(problem, decision.handed_out(search))
        assert polish(window, draft, 0, search.scratch, search.progress) == cost
        assert (made.loads - window.profile.peak == draft.placed[:, None]).all()
        note_tops(made.loads, made.tops)
        w, u = 0, window.slots.size - 1
        one, other = (rng.randint(0, int(window.high[x])) - int(draft.placed[x]) for x in (w, u))
        changed = made.loads.copy()
        changed[w] += one
        made.rest[:] = [heaviest_beside(made.tops, h, w, w) for h in range(T)]
        before = cost_of_change(made, G, w, 0)
        assert cost_of(window.fleet, changed) - cost == cost_of_change(made, G, w, one) - before
        ideal = ideal_change(made, G, w, search.scratch.gaps)
        least = cost_of_change(made, G, w, ideal)
        assert all(least <= cost_of_change(made, G, w, x) for x in (one, ideal - 1, ideal + 1))
        if w != u:
            changed[u] += other
            tops = [max(heaviest_beside(made.tops, h, w, u), changed[w, h], changed[u, h]) for h in range(T)]
            assert tops == np.maximum(changed.max(axis=0), 0).tolist()
        polished = polish(window, draft, 3, search.scratch, search.progress)
        search.answer[:] = draft.pattern
        assignment = decision.handed_out(search)
        assert polished == objective(problem, assignment) <= cost
        assert (assignment[problem.must_admit] >= 0).all()


def test_the_nearest_sets_of_one_and_two():
    rng = random.Random(6)
    for _ in range(200):
        v = np.array(sorted(rng.sample(range(60), rng.randint(1, 8))), dtype=np.int64)
        left = np.array([rng.randint(0, 2) for _ in v], dtype=np.int64)
        nearest_below, nearest_above = np.zeros((2, 2), dtype=np.int64)
        c, t = rng.choice([1, 2]), rng.randint(0, 120)
        nearest(v, left, c, t, nearest_below, nearest_above)
        totals = {sum(int(v[k]) for k in s) for s in combinations(items(left), c)}
        below, above = [x for x in totals if x <= t], [x for x in totals if x > t]
        for found, wanted in ((nearest_below, max(below, default=-1)), (nearest_above, min(above, default=-1))):
            assert (sum(int(v[k]) for k in found[:c]) if found[0] >= 0 else -1) == wanted
