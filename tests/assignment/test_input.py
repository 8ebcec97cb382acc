"""What is refused, in one sentence, and what is not."""

import numpy as np
import pytest

from lbopt.assignment import balanced_assignment
from lbopt.exceptions import InputError

GOOD = np.arange(12.0).reshape(4, 3)


def with_value(value):
    costs = GOOD.copy()
    costs[2, 1] = value
    return costs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"costs": with_value(np.nan)}, r"costs\[2, 1\] is nan; expected finite costs"),
        ({"costs": with_value(-np.inf)}, r"costs\[2, 1\] is -inf"),
        ({"costs": GOOD[0]}, r"costs must be 2-D, .* its shape is \(3,\)"),
        ({"costs": np.zeros((4, 0))}, "there are no centres"),
        ({"costs": [[1, 2], [3]]}, "its rows differ in length"),
        ({"costs": [["a", "b"]]}, "costs must hold numbers"),
        ({"costs": GOOD + 1j}, "costs must hold numbers; it holds complex128"),
        ({"costs": [[2**70, 1, 1]]}, "beyond int64"),
        (
            {"costs": np.full((4, 3), 2**60)},
            r"costs\[0, 0\] is 1152921504606846976; .* at most 28823037615171174 in size",
        ),
        ({"costs": np.full((4, 3), 2**63, dtype=np.uint64)}, "at most 28823037615171174 in size"),
        ({"capacity": 1}, "add up to 3, and there are 4 points: 1 too few; with 3 centres a capacity of 2 each"),
        ({"capacity": [0, 0, 0]}, "add up to 0, and there are 4 points: 4 too few"),
        ({"capacity": [5, -1, 5]}, r"capacity\[1\] is -1; expected zero or more"),
        ({"capacity": -1}, r"capacity.* is -1; expected zero or more"),
        ({"capacity": [2, 2]}, r"capacity must be one number or have shape \(3,\), .* its shape is \(2,\)"),
        ({"capacity": [2.5, 2, 2]}, r"capacity\[0\] is 2.5; expected a whole number"),
        ({"capacity": [np.nan, 2, 2]}, r"capacity\[0\] is nan"),
        ({"lower": [0, 3, 0]}, r"lower\[1\] is 3, above capacity\[1\] = 2"),
        ({"lower": [2, 2, 1]}, "lower bounds add up to 5, and there are 4 points: 1 too many"),
        ({"lower": [0, -1, 0]}, r"lower\[1\] is -1"),
        ({"lower": [0, 0]}, r"lower must be one number or have shape \(3,\)"),
        ({"prices": [0, 0]}, r"prices must have shape \(3,\), .* its shape is \(2,\)"),
        ({"prices": [0, np.nan, 0]}, r"prices\[1\] is nan; expected a finite price"),
        ({"prices": "high"}, "prices must be an array of numbers"),
    ],
)
def test_refused(arguments, said):
    given = {"costs": GOOD, "capacity": 2} | arguments
    with pytest.raises(InputError, match=said) as refusal:
        balanced_assignment(given.pop("costs"), given.pop("capacity"), **given)
    assert "\n" not in str(refusal.value)


def test_no_points():
    answer = balanced_assignment(np.zeros((0, 3)), 0)
    answer.check(np.zeros((0, 3)))
    assert (answer.labels.size, answer.cost, answer.scaled_cost) == (0, 0.0, 0)


def test_lists_float32_booleans_and_columns_first():
    wanted = balanced_assignment(GOOD, 2).cost
    for costs in (GOOD.tolist(), GOOD.astype(np.float32), np.asfortranarray(GOOD), GOOD.astype(np.int8)):
        answer = balanced_assignment(costs, [2, 2, 2])
        answer.check(costs)
        assert answer.cost == wanted
    assert balanced_assignment(GOOD > 5, 2).scaled_cost == 4 - 2


def test_capacity_beyond_all_points():
    answer = balanced_assignment(GOOD, 2**40)
    answer.check(GOOD)
    assert answer.labels.tolist() == [0, 0, 0, 0]
    assert not answer.prices.any()


def test_results_are_read_only():
    answer = balanced_assignment(GOOD, 2)
    for array in (answer.labels, answer.prices, answer.scaled_prices):
        assert not array.flags.writeable
