"""Forbidden pairs: no large cost stands for them, and where nothing is left a set of points and centres shows why."""

import re

import numpy as np
import pytest
from assignment.forbidden_problems import KINDS, drawn
from assignment.problems import problems
from hypothesis import given
from hypothesis import strategies as st
from naive.assignment import cheapest_by_flow, cheapest_by_trying
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_array, eye_array, kron, vstack

from lbopt.assignment import Candidates, CostBlocks, NoAssignmentError, balanced_assignment
from lbopt.assignment.costs import Pairs
from lbopt.assignment.level import Level
from lbopt.exceptions import CertificateError, InputError
from lbopt.kernels.assignment.costs import UNREACHED


def hungarian(costs, capacity):
    """The least total on slots, None where there is none: SciPy reads infinity as a pair that is forbidden."""
    slots = np.repeat(costs.astype(float).filled(np.inf), capacity, axis=1)
    try:
        rows, columns = linear_sum_assignment(slots)
    except ValueError:
        return None
    return int(slots[rows, columns].sum())


def program(costs, lower, capacity):
    """The least total of the linear program without the forbidden variables, by HiGHS; None where there is none."""
    points, centres = costs.shape
    kept = ~np.ma.getmaskarray(costs).ravel()
    if not kept.any():
        return None
    once = kron(eye_array(points), np.ones((1, centres)), format="csc")[:, kept]
    counts = kron(np.ones((1, points)), eye_array(centres), format="csc")[:, kept]
    found = linprog(
        costs.data.ravel()[kept],
        A_eq=once,
        b_eq=np.ones(points),
        A_ub=vstack([counts, -counts]),
        b_ub=np.concatenate([capacity, -lower]),
        method="highs-ds",
    )
    return None if found.status == 2 else round(found.fun)


def total(costs, capacity, lower=None, given=None, **more):
    """Our total, checked; None where a shortage, checked too, says that there is none."""
    given = costs if given is None else given
    try:
        answer = balanced_assignment(given, capacity, lower=lower, **more)
    except NoAssignmentError as error:
        error.shortage.check(costs, capacity, lower)
        error.shortage.check(given, capacity, lower)
        assert "\n" not in str(error)
        return None
    answer.check(costs)
    answer.check(given)
    assert not np.ma.getmaskarray(costs)[np.arange(len(costs)), answer.labels].any()
    return answer.scaled_cost


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_hungarian_method_on_slots(kind):
    found = []
    for seed in range(500):
        costs, _, capacity = drawn(kind, seed)
        found.append(total(costs, capacity))
        assert found[-1] == hungarian(costs, capacity), seed
    share = found.count(None) / len(found)
    assert 0.02 < share < 0.98, "both answers and shortages are drawn"


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_linear_program_with_lower_bounds(kind):
    found = []
    for seed in range(60):
        costs, lower, capacity = drawn(kind, seed)
        found.append(total(costs, capacity, lower))
        assert found[-1] == program(costs, lower, capacity), seed
    assert 0 < found.count(None) < len(found)


@pytest.mark.parametrize("seed", range(40))
def test_as_trying_everything_and_as_the_textbook_flow(seed):
    costs, lower, capacity = drawn("many", seed, most=7)
    costs = costs[:, :4]
    lower, capacity = lower[:4], capacity[:4]
    if not lower.sum() <= len(costs) <= capacity.sum():
        capacity, lower = capacity + len(costs), np.minimum(lower, 1) * 0
    barred = np.where(np.ma.getmaskarray(costs), None, costs.data.astype(object)).tolist()
    ours = total(costs, capacity, lower)
    assert ours == cheapest_by_trying(barred, capacity.tolist(), lower.tolist())
    assert ours == cheapest_by_flow(barred, capacity.tolist(), lower.tolist())


def all_forms(costs):
    """The same problem as every kind of costs that there is."""
    mask = np.ma.getmaskarray(costs)
    integers = np.where(mask, 7, costs.data)
    masked = np.ma.MaskedArray(integers, mask)
    rows, columns = np.nonzero(~mask)
    sparse = csr_array((costs.data[rows, columns], (rows, columns)), shape=costs.shape)
    start = np.concatenate([[0], np.cumsum((~mask).sum(axis=1))])
    return {
        "masked": masked,
        "infinite": np.where(mask, np.inf, costs.data.astype(float)),
        "masked reals": np.ma.MaskedArray(np.where(mask, np.nan, costs.data.astype(float)), mask),
        "sparse": sparse,
        "candidates": Candidates(start, columns, costs.data[rows, columns], costs.shape[1]),
        "blocks": CostBlocks.of_array(masked),
        "blocks of reals": CostBlocks.of_array(np.where(mask, np.inf, costs.data.astype(np.float32))),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_all_forms_of_costs_are_one_problem(kind):
    for seed in range(40):
        costs, lower, capacity = drawn(kind, seed)
        wanted = total(costs, capacity, lower)
        for form, given_costs in all_forms(costs).items():
            assert real_total(given_costs, capacity, lower) == wanted, (seed, form)


def real_total(given_costs, capacity, lower):
    """Our total of whole numbers that were given as reals."""
    try:
        answer = balanced_assignment(given_costs, capacity, lower=lower)
    except NoAssignmentError as error:
        error.shortage.check(given_costs, capacity, lower)
        return None
    answer.check(given_costs)
    return answer.cost


@given(problems(), st.integers(0, 2**32))
def test_what_is_forbidden_costs_nothing_and_no_less(problem, seed):
    """The total without some pairs is no lower; it does not depend on what stands in their place, however large."""
    costs, lower, capacity = problem
    hidden = np.random.default_rng(seed).random(costs.shape) < 0.3
    free = balanced_assignment(costs, capacity, lower=lower)
    masked = np.ma.MaskedArray(np.where(hidden, 2**62, costs), hidden)
    ours = total(masked, capacity, lower)
    assert ours is None or ours >= free.scaled_cost
    if not hidden[np.arange(len(costs)), free.labels].any():
        assert ours == free.scaled_cost, "the answer used none of them"
    assert ours == total(np.ma.MaskedArray(np.where(hidden, -5, costs), hidden), capacity, lower)


@given(problems(), st.integers(0, 2**32))
def test_forbidden_pairs_take_no_digits_from_the_others(problem, seed):
    """A large cost in their place would coarsen the scale; infinity does not."""
    costs, lower, capacity = problem
    hidden = np.random.default_rng(seed).random(costs.shape) < 0.3
    reals = np.where(hidden, np.inf, np.ldexp(costs.astype(float), -40))
    try:
        answer = balanced_assignment(reals, capacity, lower=lower)
    except NoAssignmentError:
        return
    assert answer.cost == np.ldexp(float(total(np.ma.MaskedArray(costs, hidden), capacity, lower)), -40)


@pytest.mark.more
@given(problems(), st.integers(0, 2**32), st.lists(st.floats(-1e300, 1e300), min_size=6, max_size=6))
def test_any_prices_to_start_from(problem, seed, prices):
    costs, lower, capacity = problem
    masked = np.ma.MaskedArray(costs, np.random.default_rng(seed).random(costs.shape) < 0.4)
    wanted = total(masked, capacity, lower)
    assert total(masked, capacity, lower, prices=prices[: capacity.size]) == wanted
    assert total(masked, capacity, lower, CostBlocks.of_array(masked), prices=prices[: capacity.size]) == wanted


@pytest.mark.jit
@pytest.mark.parametrize("nearest", [3, 8])
def test_levels_and_the_nearest_centres_alone(nearest):
    """Thousands of points with few candidates each, which levels of samples may not be able to place."""
    rng = np.random.default_rng(nearest)
    places, hubs = rng.normal(size=(6_000, 2)), rng.normal(size=(60, 2))
    costs = ((places[:, None] - hubs) ** 2).sum(axis=2)
    few = Candidates.nearest(costs, nearest)
    assert repr(few) == f"<Candidates: {6_000 * nearest} pairs of 6000 points and 60 centres>"
    chosen = np.bincount(few.centre, minlength=60)
    order = np.argsort(costs, axis=1)[:, :nearest]
    assert (np.sort(order, axis=1).ravel() == few.centre).all()
    capacity = np.full(60, 1)
    capacity = np.maximum(capacity, np.ceil(chosen / nearest * 1.3).astype(int))
    answer = balanced_assignment(few, capacity)
    answer.check(few)
    masked = np.full(costs.shape, np.inf)
    np.put_along_axis(masked, order, np.take_along_axis(costs, order, 1), 1)
    whole = balanced_assignment(masked, capacity)
    whole.check(masked)
    assert (whole.exponent, whole.scaled_cost) == (answer.exponent, answer.scaled_cost)
    answer.check(masked)


SHORT = [
    (
        ([[1, -1], [1, -1], [1, -1], [2, 2]], 2, None),
        "points 0, 1 and 2 (3 in all) may be at centre 0 alone, with 2 places in all: 1 too few; allow more pairs, or "
        "change capacity",
    ),
    (([[1, 1], [-1, -1]], 2, None), "point 1 may be at no centre"),
    (
        ([[1, 1, -1]] * 4, 2, [0, 0, 1]),
        "centre 2 needs 1 points by its lower bound, and no point may be there: 1 too few; allow more pairs, or change "
        "lower",
    ),
    (
        ([[1, 1, -1]] * 8 + [[1, 1, 1]], 5, [0, 0, 3]),
        "centre 2 needs 3 points by its lower bound, and point 8 alone may be there: 2 too few",
    ),
    (
        ([[1, -1]] * 9 + [[1, 1]] * 3, 6, None),
        "points 0, 1, 2, 3, 4 and 4 more (9 in all) may be at centre 0 alone, with 6 places in all: 3 too few",
    ),
]


@pytest.mark.parametrize(("problem", "said"), SHORT)
def test_a_shortage_is_said(problem, said):
    costs, capacity, lower = problem
    masked = np.ma.masked_equal(np.array(costs), -1)
    for form in all_forms(masked).values():
        with pytest.raises(NoAssignmentError, match=re.escape(said)) as refusal:
            balanced_assignment(form, capacity, lower=lower)
        refusal.value.shortage.check(form, capacity, lower)


def test_a_shortage_that_does_not_hold_is_refused():
    costs = np.ma.masked_equal(np.array([[1, -1], [1, -1], [1, -1], [2, 2]]), -1)
    with pytest.raises(NoAssignmentError) as refusal:
        balanced_assignment(costs, 2)
    shortage = refusal.value.shortage
    with pytest.raises(CertificateError, match="point 0 may be at a centre outside of those"):
        shortage.check(np.ma.getdata(costs), 2)
    with pytest.raises(CertificateError, match="names 3 points, and its centres are bounded by 3: none is short"):
        shortage.check(costs, 3)
    barred = np.ma.masked_equal(np.array([[1, -1]] * 2), -1)
    with pytest.raises(NoAssignmentError) as refusal:
        balanced_assignment(barred, 2, lower=[0, 1])
    shortage = refusal.value.shortage
    with pytest.raises(CertificateError, match="point 1 may be at a centre among those"):
        shortage.check(np.ma.masked_equal([[1, -1], [1, 1]], -1), 2, [0, 1])
    with pytest.raises(CertificateError, match="bounded by 0: none is short"):
        shortage.check(barred, 2)


def test_a_point_at_a_forbidden_centre_is_no_answer():
    costs = np.array([[1, 5], [1, 5], [9, 1]])
    answer = balanced_assignment(costs, 2)
    hidden = np.zeros(costs.shape, dtype=bool)
    hidden[0, 0] = True
    with pytest.raises(CertificateError, match="point 0 is at centre 0, which is forbidden to it"):
        answer.check(np.ma.MaskedArray(costs, hidden))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Candidates([0, 2], [0, 0], [1, 2], 2), "point 0 names centre 0 twice"),
        (lambda: Candidates([0, 2], [0, 2], [1, 2], 2), "candidates name centres 0 to 2; there are 2"),
        (lambda: Candidates([0, 1], [0, 1], [1, 2], 2), "start must rise from 0 to the 2 pairs"),
        (lambda: Candidates([0, 2], [0, 1], [1.0, np.inf], 2), "a candidate of point 0 costs inf; leave out pairs"),
        (lambda: Candidates([0, 1], [0, 1], [1], 2), "expected the same"),
        (lambda: Candidates([0, 1], [0], ["a"], 2), "costs of candidates must be numbers"),
        (lambda: Candidates([0], [], [], 0), "centres is 0; expected at least 1"),
        (lambda: Candidates.nearest(np.ones((2, 3)), 4), "count is 4; expected 1 to the 3 centres"),
        (lambda: balanced_assignment(Candidates([0, 1], [0], [2**60], 2), 1), "a candidate costs 1152921504606846976"),
        (lambda: balanced_assignment(np.ma.masked_equal([[1.0, np.nan]], 1.0), 1), r"costs\[0, 1\] is nan; .* mask"),
        (lambda: balanced_assignment([[np.inf, -np.inf]], 1), r"costs\[0, 1\] is -inf"),
    ],
)
def test_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_a_sparse_matrix_with_an_entry_in_two_parts():
    parts = csr_array((np.array([1, 2, 5]), (np.array([0, 0, 1]), np.array([0, 0, 1]))), shape=(2, 2)).tocoo()
    assert balanced_assignment(parts, 1).scaled_cost == 8


@pytest.mark.parametrize("form", ["matrix", "candidates", "blocks"])
def test_small_costs_beside_large_ones_are_lost_with_a_word(form):
    costs = np.array([[1e12, 1e-9, 2e-9], [1e-9, 1e12, 2e-9], [3.0, 4.0, 0.0]])
    given_costs = {
        "matrix": costs,
        "candidates": Candidates(np.arange(0, 10, 3), np.tile(np.arange(3), 3), costs.ravel(), 3),
        "blocks": CostBlocks.of_array(costs),
    }[form]
    with pytest.warns(UserWarning, match=r"^4 of 9 costs are not zero and count as zero: the largest, 1e\+12, makes"):
        answer = balanced_assignment(given_costs, 1)
    answer.check(costs)
    forbidden = np.where(costs == 1e12, np.inf, costs)
    answer = balanced_assignment(forbidden, 1)  # what large costs stood for, said as it is: all digits are kept
    answer.check(forbidden)
    assert answer.cost == pytest.approx(2e-9, abs=1e-14)


@pytest.mark.filterwarnings("error")
def test_no_word_where_nothing_is_lost():
    balanced_assignment(np.array([[1.0, 1e-9], [0.0, 3.0]]), 1)
    balanced_assignment(np.zeros((3, 2)), 2)


def test_points_with_one_candidate_alone_leave_a_slack_that_can_double():
    start, centre = np.arange(41), np.zeros(40, dtype=np.int32)
    pairs = Pairs.of_lists(2, start, centre, np.arange(40))
    level = Level(pairs, np.arange(40), np.zeros(2, dtype=np.int64), np.full(2, 20), np.zeros(2, dtype=np.int64))
    assert level._margin.min() > UNREACHED
    assert level._slack() == UNREACHED
    both = np.concatenate([np.zeros(39, dtype=np.int32), [0, 1]])
    pairs = Candidates(np.append(np.arange(40), 41), both, np.arange(41), 2)
    assert total(pairs.rows(0, 40), [39, 1], None, pairs) == sum(range(39)) + 40


@pytest.mark.slow
@pytest.mark.jit
def test_thousands_of_problems_with_few_pairs():
    """Up to a hundred points and twenty centres, against SciPy and HiGHS; shortages as often as answers."""
    rng = np.random.default_rng(26)
    answers = 0
    for round_ in range(4_000):
        points, centres = int(rng.integers(1, 100)), int(rng.integers(1, 20))
        hidden = rng.random((points, centres)) < 1 - min(1, rng.choice([1.2, 2, 3, 6]) / centres)
        costs = np.ma.MaskedArray(rng.integers(0, int(rng.choice([3, 50, 10**6])), (points, centres)), hidden)
        capacity = rng.multinomial(int(points * rng.choice([1, 1.2, 2])), np.full(centres, 1 / centres))
        given_costs = costs if round_ % 3 else CostBlocks.of_array(costs)
        ours = total(costs, capacity, None, given_costs)
        assert ours == hungarian(costs, capacity), round_
        answers += ours is not None
        if round_ % 10 == 0:
            lower = np.minimum(capacity, rng.integers(0, 4, centres))
            if lower.sum() <= points:
                assert total(costs, capacity, lower, given_costs) == program(costs, lower, capacity), round_
    assert 400 < answers < 3_600
