"""The band rule: its published example, its laws, and a twin in one line."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lbopt.kernels.routing import band
from lbopt.kernels.routing.band import TOLERANCE

#: Centroids (1,0,0), (.6,.8,0), (0,0,1) and x = (.9,.4,.1): ELDR sheet, 13.4.
SIMILAR = np.array([0.909137, 0.868731, 0.101015])


def bind_in_band(width, preference, running, queued):
    return band.bind_in_band(width, np.stack([preference[::-1], preference]), 1, running, queued)


def bound(width, preference, load):
    return bind_in_band(width, preference, load, np.zeros_like(load))


def test_published_example():
    load = np.array([5, 3, 0])
    assert [bound(tau, SIMILAR, load) for tau in (0.0, 0.04, 0.05, 0.1, 1.0)] == [0, 0, 1, 1, 2]


def test_queued_requests_count():
    assert bind_in_band(1.0, SIMILAR, np.array([1, 1, 1]), np.array([3, 0, 1])) == 1


def test_rounding_puts_nobody_out_of_the_band():
    similar = np.array([0.5, 0.5 - 5e-13, 0.5 - 5e-12])
    assert bound(0.0, similar, np.array([1, 0, 0])) == 1
    assert bound(0.1, similar - [0, 0.1, 0.1], np.array([1, 0, 0])) == 1


states = st.integers(1, 8).flatmap(
    lambda G: st.tuples(
        arrays(np.float64, G, elements=st.integers(0, 10).map(lambda v: v / 10)),
        arrays(np.int64, G, elements=st.integers(0, 5)),
        arrays(np.int64, G, elements=st.integers(0, 2)),
    )
)


@given(states, st.floats(0, 1), st.floats(0, 1))
def test_laws(state, one, other):
    preference, running, queued = state
    load, narrow, wide = running + queued, min(one, other), max(one, other)
    first, second = (bind_in_band(width, preference, running, queued) for width in (narrow, wide))
    twin = min(
        (g for g in range(load.size) if preference[g] >= preference.max() - narrow - TOLERANCE),
        key=lambda g: (load[g], -preference[g], g),
    )
    assert first == twin
    assert preference[first] >= preference.max() - narrow - TOLERANCE
    assert load[second] <= load[first], "a wider band never finds a longer queue"
    assert load[bind_in_band(1.0, preference, running, queued)] == load.min()
    assert preference[bind_in_band(0.0, preference, running, queued)] == preference.max()


@given(states, st.floats(0, 1), st.randoms())
def test_names_of_workers_do_not_matter(state, width, random):
    preference, running, queued = state
    order = list(range(preference.size))
    random.shuffle(order)
    g = bind_in_band(width, preference, running, queued)
    h = bind_in_band(width, preference[order], running[order], queued[order])
    assert (running + queued)[order][h] == (running + queued)[g] and preference[order][h] == preference[g]
