"""Loads over a window against Python integers: every entry is exact, or the problem is refused with a reason."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.model.integers import LARGEST_TOTAL

#: Small numbers, and numbers around the powers of two at which sums and products leave int64.
AMOUNTS = st.one_of(
    st.integers(0, 50),
    st.builds(lambda power, off: max(0, 2**power + off), st.integers(0, 62), st.integers(-3, 3)),
).filter(lambda value: value <= LARGEST_TOTAL)


@st.composite
def windows(draw):
    """The arguments of `known_ends`."""
    G, N, horizon = draw(st.integers(1, 3)), draw(st.integers(0, 3)), draw(st.integers(0, 4))

    def some(count):
        return draw(st.lists(AMOUNTS, min_size=count, max_size=count))

    rows = draw(st.lists(st.tuples(st.integers(0, G - 1), st.integers(1, horizon + 2), AMOUNTS), max_size=3))
    return {
        "loads": some(G),
        "slots": some(G),
        "sizes": some(N),
        "outputs": [max(1, value) for value in some(N)],
        "horizon": horizon,
        "active": draw(st.none() | st.just(some(G))),
        "departures": rows,
        "growth": draw(st.one_of(st.integers(0, 3), AMOUNTS, st.integers(0, 2**200))),
    }


def in_python(given_window):
    """Base and work by the definition, one entry after another, in Python integers."""
    steps, growth = range(given_window["horizon"] + 1), given_window["growth"]
    active = given_window["active"] or [0] * len(given_window["loads"])
    base = [[load + n * growth * h for h in steps] for load, n in zip(given_window["loads"], active, strict=True)]
    for worker, remaining, size in given_window["departures"]:
        for h in steps:
            if h >= remaining:
                base[worker][h] -= size + growth * h
    work = [
        [size + growth * h if h < end else 0 for h in steps]
        for size, end in zip(given_window["sizes"], given_window["outputs"], strict=True)
    ]
    return base, work


def conceivable(base, slots, work):
    """G times the sum of the largest loads that the window could have."""
    most = min(max(slots), len(work))
    return len(base) * sum(
        max(row[h] for row in base) + sum(sorted((row[h] for row in work), reverse=True)[:most])
        for h in range(len(base[0]))
    )


@given(windows())
def test_every_load_is_exact_or_refused(given_window):
    base, work = in_python(given_window)
    sound = min(map(min, base)) >= 0 and conceivable(base, given_window["slots"], work) <= LARGEST_TOTAL
    if not sound or any(value > LARGEST_TOTAL for row in (*base, *work) for value in row):
        with pytest.raises(InputError) as caught:
            StepProblem.known_ends(**given_window)
        assert len(str(caught.value)) < 400
        return
    problem = StepProblem.known_ends(**given_window)
    assert problem.base.tolist() == base
    assert problem.work.tolist() == work
    assert problem.num_free_slots == sum(given_window["slots"])
    outliving = {key: value for key, value in given_window.items() if key != "outputs"}
    if all(end > given_window["horizon"] for end in given_window["outputs"]):
        assert StepProblem.survives(**outliving) == problem


def test_a_product_beyond_int64_is_refused_and_not_wrapped():
    with pytest.raises(InputError, match=r"worker 0 would hold 18446744073709551621 tokens at step 1 of the window"):
        StepProblem.survives([5], [1], [3], 1, active=[2**40], growth=2**24)
    with pytest.raises(InputError, match=r"request 0 would hold 4611686018427387907 tokens at step 1"):
        StepProblem.survives([5], [1], [3], 2, growth=2**62)
    with pytest.raises(InputError, match="a number of 4001 bits"):
        StepProblem.survives([5], [1], [3], 1, growth=2**4000)


def test_what_leaves_int64_on_the_way_only_is_exact():
    """The running request outgrows int64 and has left by then."""
    problem = StepProblem.survives([3], [1], [], 1, active=[1], departures=[(0, 1, 3)], growth=2**62)
    assert problem.base.tolist() == [[3, 0]]
    assert StepProblem.known_ends([3], [1], [4], [1], 1, growth=2**80).work.tolist() == [[4, 0]]
    assert StepProblem.survives([3], [1], [4], 0, growth=2**80).work.tolist() == [[4]]


def test_many_departures_do_not_wrap():
    with pytest.raises(InputError, match="departures remove more from worker 0"):
        StepProblem.survives([2**61], [1], [], 1, active=[4], departures=[(0, 1, 2**62)] * 4)


@pytest.mark.parametrize(
    ("departures", "words"),
    [
        (7, r"departures must be 1-D or 2-D; it has shape \(\)"),
        ([1, 2, 3], "expected rows of"),
        ([(0, 1)], "expected rows of"),
        ([(1, 1, 3)], "names worker 1"),
        ([(0, 0, 3)], "at least 1"),
    ],
)
def test_a_departure_that_cannot_be_is_named(departures, words):
    with pytest.raises(InputError, match=words):
        StepProblem.survives([9], [1], [3], 1, active=[2], departures=departures)


def test_a_window_that_no_memory_holds_is_refused():
    with pytest.raises(InputError, match="horizon is 1099511627776"):
        StepProblem.survives([5], [1], [3], 2**40)
    with pytest.raises(InputError, match="horizon is 10000000; with 1000 rows of loads"):
        StepProblem.survives([5], [1], np.ones(1000, dtype=np.int64), 10**7)
    assert StepProblem.survives([5], [1], [], 0, departures=[]).base.tolist() == [[5]]
