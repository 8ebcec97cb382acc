"""Routing table and locality band: the worked numbers, a loop-only twin, and what must hold whatever the request."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from locality import naive_routing as naive

from lbopt.exceptions import InputError
from lbopt.kernels.locality.band import SCALE
from lbopt.locality import TRANSFORMS, IdfTable, MoEShape, fit_idf, transformed
from lbopt.locality.band_router import BandRouter, Basis, basis_of
from lbopt.locality.routing_table import DriftReference, RoutingTable

WORKED = RoutingTable("", MoEShape(1, 3, 2), "count", None, np.array([0]), [[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1]])
REQUEST = np.array([[9, 4, 1]])


def unit(rows):
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def drawn(seed, L, E, K, transform="count-idf", requests=12):
    """A table whose centroids are some of the requests or near them, and the requests."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 40, size=(requests, L, E)) * (rng.random((requests, L, E)) < 0.7)
    counts[0] = 0
    idf = fit_idf(counts[2:]) if transform == "count-idf" else None  # some experts may be new to the live requests
    layers = np.sort(rng.permutation(L)[: rng.integers(1, L + 1)])
    rows = np.array(transformed(transform, counts, idf)[:, layers]).reshape(requests, -1)
    centroids = unit(rows[rng.integers(requests, size=K)] + rng.choice([0.0, 5.0]) * rng.random((K, rows.shape[1])))
    return RoutingTable("toy", MoEShape(L, E, 1), transform, idf, layers, centroids), counts, rows, rng


def test_worked_example():
    assert np.allclose(WORKED.similarities(REQUEST[np.newaxis]), [[0.909137, 0.868731, 0.101015]], atol=1e-6)
    for tau, worker in ((0, 0), (0.04, 0), (0.05, 1), (0.1, 1), (1, 2)):
        assert BandRouter(WORKED, tau).route(REQUEST, [5, 3, 0]) == worker
    assert BandRouter(WORKED, 0.05).band(REQUEST).tolist() == [0, 1]
    assert BandRouter(WORKED).tau == 0.1


sizes = (st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 40), st.integers(1, 9))


@given(*sizes, st.sampled_from(["count", "count-idf", "sqrt-count", "binary"]), st.sampled_from([0, 0.003, 0.1, 1]))
def test_twin(seed, L, E, K, transform, tau):
    table, counts, rows, rng = drawn(seed, L, E, K, transform)
    near = table.similarities(counts)
    router = BandRouter(table, tau)
    for request, row, s in zip(counts, rows, near, strict=True):
        twin = naive.similarities(row.tolist(), table.centroids.tolist())
        assert np.allclose(s, twin, rtol=0, atol=1e-12)
        load = rng.integers(0, 3, size=K)
        edges = np.abs(np.array(twin) - (max(twin) - tau - 1e-12))
        if edges.min() < 1e-13:
            continue  # who is at the band's very edge is for rounding to say
        assert router.band(request).tolist() == naive.band(twin, tau)
        chosen = router.route(request, load)
        best = naive.route(twin, load.tolist(), tau)
        assert load[chosen] == load[best]
        assert twin[chosen] == pytest.approx(twin[best], abs=1e-13)


@given(*sizes)
def test_what_holds_of_every_band(seed, L, E, K):
    table, counts, _, rng = drawn(seed, L, E, K)
    near = table.similarities(counts)
    load = rng.integers(0, 5, size=K)
    widths = [0, 0.01, 0.1, 0.5, 1]
    routers = [BandRouter(table, tau) for tau in widths]
    for request, s in zip(counts, near, strict=True):
        bands = [set(router.band(request).tolist()) for router in routers]
        chosen = [router.route(request, load) for router in routers]
        assert all(bands) and all(a <= b for a, b in pairwise(bands))
        assert all(k in band for k, band in zip(chosen, bands, strict=True))
        assert all(s[k] >= s.max() - tau - 2e-12 for k, tau in zip(chosen, widths, strict=True))
        assert s[chosen[0]] == pytest.approx(s.max(), abs=2e-12)  # tau = 0: the nearest
        loads = load[chosen]
        assert (loads[1:] <= loads[:-1]).all()
        assert loads[-1] == load.min() and len(bands[-1]) == K  # tau = 1: the shortest queue


@given(*sizes, st.sampled_from([0, 0.1, 1]))
def test_other_names_of_workers_change_only_the_name(seed, L, E, K, tau):
    table, counts, _, rng = drawn(seed, L, E, K)
    names = rng.permutation(K)
    other = RoutingTable("", table.shape, table.transform, table.idf, table.layers, table.centroids[names])
    here, there = BandRouter(table, tau), BandRouter(other, tau)
    load = rng.permutation(K)  # no ties
    for request in counts:
        assert here.route(request, load) == names[there.route(request, load[names])]


def test_a_request_without_mass_goes_to_the_least_load():
    table, counts, _, _ = drawn(3, 3, 8, 5)
    assert not table.similarities(counts[:1]).any()
    for tau in (0, 0.1, 1):
        assert BandRouter(table, tau).route(counts[0], [4, 2, 1, 1, 3]) == 2
        assert BandRouter(table, tau).band(counts[0]).tolist() == [0, 1, 2, 3, 4]


def test_an_expert_that_calibration_never_used_lowers_all_similarities_alike():
    idf = IdfTable(np.log(5 / np.array([[5, 2, 1]])), 4)  # the last one: df = 0, weight log(N + 1)
    table = RoutingTable("", MoEShape(1, 3, 1), "count-idf", idf, np.array([0]), [[0, 1, 0], [0.6, 0.8, 0]])
    before, after = table.similarities([[[3, 4, 0]], [[3, 4, 7]]])
    assert after / before == pytest.approx([after[0]] * 2)
    assert after[0] == pytest.approx(4 * np.log(2.5) / np.hypot(4 * np.log(2.5), 7 * np.log(5)))


@pytest.mark.parametrize("transform", ["gate-prob", "gate-logit"])
def test_transforms_of_the_gate(transform):
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((6, 2, 5)) if transform == "gate-logit" else rng.random((6, 2, 5))
    shape = MoEShape(2, 5, 1)
    table = RoutingTable("", shape, transform, None, np.array([0, 1]), unit(rows[:3].reshape(3, 10)))
    near = table.similarities(rows)
    load = rng.permutation(3)
    for request, s in zip(rows, near, strict=True):
        assert BandRouter(table, 0.1).route(request, load) == naive.route(s.tolist(), load.tolist(), 0.1)
    if transform == "gate-logit":
        assert near.min() < 0 and BandRouter(table, 2.0).route(rows[4], load) == load.argmin()


def test_fixed_point_keeps_its_bound():
    """|<s, c> - <s', c'>| <= |s - s'| |c'| + |c - c'|, as the kernel's two bounds of every cosine say."""
    rng = np.random.default_rng(1)
    L, E, K = 6, 128, 40
    counts = rng.poisson(rng.gamma(0.3, 20, size=(30, L, E)))
    rows = counts.reshape(30, -1).astype(float)
    table = RoutingTable("", MoEShape(L, E, 8), "count", None, np.arange(L), unit(rows[rng.integers(30, size=K)] + 1.0))
    fixed_rows = np.rint(unit(rows) * SCALE)
    fixed = fixed_rows @ np.rint(table.centroids * SCALE).T / SCALE**2
    off = np.abs(fixed - table.similarities(counts))
    assert 0 < off.max() < 3e-4  # as a rule far less than the bound,
    assert off.max() <= 1.01 * np.sqrt(L * E) / SCALE  # which holds always
    router = BandRouter(table, 0.0)
    for request, s in zip(counts, table.similarities(counts), strict=True):
        router.band(request)
        band = router._band()
        assert (band.least <= s + 1e-12).all() and (s - 1e-12 <= band.most).all()
        assert np.mean(band.least == band.most) < 0.5  # few cosines are taken twice


def of_kinds(seed, K=40, kinds=4, L=3, E=32, requests=60):
    """A table of workers of a few kinds, and requests of these kinds with their cosines."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 8, size=(kinds, L, E))
    counts = rng.poisson(rates[rng.integers(kinds, size=K + requests)] * rng.gamma(4, 0.25, size=(K + requests, L, E)))
    centroids = unit(counts[:K].reshape(K, -1) + 0.5)
    table = RoutingTable("", MoEShape(L, E, 8), "count", None, np.arange(L), centroids)
    return table, counts[K:], table.similarities(counts[K:]), rng


def with_rows(table, tau, rows):
    """A router that bounds cosines by these rows of a basis."""
    router = BandRouter(table, tau)
    router._shared.update(rows._asdict())
    return router


@pytest.mark.parametrize("number", [0, 1, 3, 8, 24])
@pytest.mark.parametrize("tau", [0.0, 0.05, 0.4])
def test_a_basis_leaves_products_out_and_changes_no_decision(number, tau):
    """Also where most workers are closed, so that those that were left out are asked after all."""
    table, requests, near, rng = of_kinds(number)
    router = with_rows(table, tau, basis_of(router_centroids(table), number=number))
    plain = with_rows(table, tau, basis_of(router_centroids(table), number=0))
    taken = 0
    for request, s in zip(requests, near, strict=True):
        for share in (1.0, 0.5, 0.1):
            load, is_open = rng.integers(0, 3, 40), rng.random(40) < share
            is_open[rng.integers(40)] = True
            seen = np.where(is_open, s, -9)
            band = np.flatnonzero(seen >= seen.max() - tau - 1e-12)
            assert router.band(request, is_open).tolist() == plain.band(request, is_open).tolist() == band.tolist()
            best = min(band, key=lambda k: (load[k], -s[k], k))
            assert router.route(request, load, is_open) == best
            if share == 1.0:
                bounds = router._band()
                assert (bounds.least <= s + 1e-12).all() and (s - 1e-12 <= bounds.most).all()
                taken += bounds.taken.sum()
    assert number > 0 or taken == 40 * len(requests)
    assert tau == 0.4 or number < 3 or taken < 25 * len(requests)


def router_centroids(table):
    return BandRouter(table)._shared["centroids"]


def test_bounds_hold_for_any_rows_whatever():
    """Rows that are no basis of anything bound badly, and still bound."""
    table, requests, near, rng = of_kinds(7)
    centroids = router_centroids(table)
    fixed = np.rint(unit(rng.standard_normal((5, centroids.shape[1]))) * SCALE).astype(np.int16)
    rows = fixed / SCALE
    parts = rng.standard_normal((40, 5)) / 3
    left = centroids - parts @ rows
    skew = np.array([np.linalg.norm(rows @ rows.T - np.eye(5))])
    lengths = [np.linalg.norm(part, axis=1) for part in (parts, left, left @ rows.T)]
    router = with_rows(table, 0.0, Basis(fixed, parts, *lengths, skew))
    for request, s in zip(requests, near, strict=True):
        assert router.band(request).tolist() == np.flatnonzero(s >= s.max() - 1e-12).tolist()
        bounds = router._band()
        assert (bounds.least <= s + 1e-12).all() and (s - 1e-12 <= bounds.most).all()


def test_rows_are_taken_where_they_pay():
    table, *_ = of_kinds(1)
    centroids = router_centroids(table)
    assert 2 <= len(basis_of(centroids, 0.8).basis) <= 12
    rng = np.random.default_rng(0)
    assert len(basis_of(unit(rng.standard_normal((30, 64))), 0.3).basis) == 0  # nothing in common
    assert len(basis_of(np.zeros((3, 32))).basis) == 0  # no mass
    assert len(basis_of(np.eye(1, 32)).basis) == 0  # one worker


def test_what_fixed_point_cannot_tell_is_decided_as_in_float64():
    """Centroids that differ by less than a unit of 2^-15, at the paper's size."""
    rng = np.random.default_rng(5)
    L, E, K = 48, 128, 30
    counts = rng.poisson(rng.gamma(0.3, 20, size=(8, L, E)))
    rows = counts.reshape(8, -1).astype(float)
    noise = rng.choice([0, 1e-6, 1e-4], size=(K, 1)) * rng.standard_normal((K, L * E))
    table = RoutingTable(
        "", MoEShape(L, E, 8), "count", None, np.arange(L), unit(unit(rows)[rng.integers(8, size=K)] + noise)
    )
    near = table.similarities(counts)
    for tau in (0, 1e-9, 1e-5, 0.01):
        router = BandRouter(table, tau)
        for request, s in zip(counts, near, strict=True):
            load = rng.integers(0, 3, size=K)
            chosen = router.route(request, load)
            best = naive.route(s.tolist(), load.tolist(), tau)
            assert load[chosen] == load[best] and abs(s[chosen] - s[best]) < 1e-12
            assert set(router.band(request)) == set(naive.band(s.tolist(), tau))


@given(*sizes, st.sampled_from([0, 0.05, 1]))
def test_closed_workers_are_as_if_they_were_not_there(seed, L, E, K, tau):
    table, counts, _, rng = drawn(seed, L, E, K)
    is_open = rng.random(K) < 0.5
    is_open[rng.integers(K)] = True
    here = np.flatnonzero(is_open)
    fewer = RoutingTable("", table.shape, table.transform, table.idf, table.layers, table.centroids[here])
    router, small = BandRouter(table, tau), BandRouter(fewer, tau)
    load = rng.integers(0, 3, K)
    for request in counts:
        assert router.route(request, load, is_open) == here[small.route(request, load[here])]
        assert router.band(request, is_open).tolist() == here[small.band(request)].tolist()


def test_without_an_open_worker_there_is_no_decision():
    closed = np.zeros(3, dtype=np.bool_)
    with pytest.raises(InputError, match="no worker is open; expected at least one"):
        BandRouter(WORKED).route(REQUEST, [5, 3, 0], closed)
    assert BandRouter(WORKED).band(REQUEST, closed).size == 0


def test_equal_centroids_leave_it_to_load_and_index():
    table = RoutingTable("", MoEShape(1, 3, 1), "count", None, np.array([0]), [[0.6, 0.8, 0]] * 6)
    for tau in (0, 0.1):
        assert BandRouter(table, tau).route(REQUEST, [2, 1, 3, 1, 1, 2]) == 1
        assert BandRouter(table, tau).band(REQUEST).size == 6


def test_a_router_may_be_sent_to_another_process():
    copy = pickle.loads(pickle.dumps(BandRouter(WORKED, 0.05)))
    assert copy.tau == 0.05 and copy.route(REQUEST, [5, 3, 0]) == 1


def test_input_of_other_integer_types_is_the_same():
    loads = np.array([5, 3, 0], dtype=np.uint8)
    assert BandRouter(WORKED, 0.1).route(REQUEST.astype(np.uint16), loads) == 1
    assert np.array_equal(WORKED.similarities(REQUEST[np.newaxis].astype(np.int8)), WORKED.similarities([REQUEST]))


IDF = IdfTable(np.ones((1, 3)), 4)


def table(**changes):
    parts = {"model": "", "shape": MoEShape(1, 3, 2), "transform": "count", "idf": None, "layers": np.array([0])}
    return RoutingTable(**{**parts, "centroids": np.eye(3), **changes})


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: table(transform="idf"), "unknown transform 'idf'"),
        (lambda: table(transform="count-idf"), "has no IDF weights"),
        (lambda: table(idf=IDF), "transform 'count' has IDF weights"),
        (
            lambda: table(transform="count-idf", idf=IdfTable(np.ones((2, 3)), 4)),
            r"shape \(2, 3\); the model has 1 lay",
        ),
        (lambda: table(transform="count-idf", idf=IdfTable(-IDF.weights, 4)), "negative or not finite"),
        (lambda: table(layers=np.array([], dtype=int)), "keeps no layer"),
        (lambda: table(layers=np.array([1])), r"layer mask is \[1\]"),
        (lambda: table(centroids=np.eye(2)), r"shape \(2, 2\); expected one row for each worker, of 1 kept"),
        (lambda: table(centroids=np.empty((0, 3))), "expected one row for each worker"),
        (lambda: table(centroids=2 * np.eye(3)), "centroid 0 has the length 2"),
        (lambda: table(centroids=np.eye(3) * [1, np.nan, 1]), "has the length nan"),
        (lambda: WORKED.similarities(np.ones((1, 2, 3), int)), r"shape \(1, 2, 3\); the routing table is of requests"),
        (lambda: WORKED.similarities(REQUEST), r"\(n, 1, 3\)"),
        (lambda: WORKED.similarities([-REQUEST]), "count of tokens is -9"),
        (lambda: BandRouter(WORKED, 1.5), "tau is 1.5; expected a number from 0"),
        (lambda: BandRouter(WORKED, np.nan), "tau is nan"),
        (lambda: BandRouter(WORKED, True), "tau is True"),
        (lambda: BandRouter(WORKED).route(REQUEST, [1, 2]), r"in_flight has shape \(2,\); the routing table has 3"),
        (lambda: BandRouter(WORKED).route(REQUEST, [1.0, 2.0, 3.0]), "in_flight is of type float64"),
        (lambda: BandRouter(WORKED).route(REQUEST, [1, 2, 3], [1, 0, 1]), r"is_open is of shape \(3,\) and type int64"),
        (lambda: BandRouter(WORKED).route(REQUEST, [1, 2, 3], [True]), "expected a truth value for each of 3 workers"),
        (lambda: table(workers=("a", "b")), "2 workers are named and the table has 3 centroids"),
        (lambda: table(workers=("a", "b", "a")), "worker 'a' is named twice"),
        (lambda: table(workers=("a", "", "b")), "expected texts of 1 to 128 letters"),
        (
            lambda: table(drift=DriftReference(np.zeros((4, 2)), np.zeros(4), np.ones((1, 3), bool))),
            r"drift reference is of 2 workers and experts of shape \(1, 3\); the table has 3 workers",
        ),
        (lambda: DriftReference(np.full((4, 2), 2.0), np.zeros(4), np.ones((1, 3), bool)), "outside -1 to 1"),
        (lambda: DriftReference(np.zeros((4, 2)), np.zeros(3), np.ones((1, 3), bool)), r"shares of shape \(3,\)"),
        (lambda: BandRouter(WORKED).route(REQUEST[0], [1, 2, 3]), r"of shape \(3,\); the routing table is of 1 layers"),
        (lambda: BandRouter(WORKED).route(REQUEST / 2, [1, 2, 3]), "expected whole numbers of tokens"),
        (lambda: BandRouter(WORKED).route(-REQUEST, [1, 2, 3]), "a value below 0"),
        (lambda: BandRouter(WORKED).band(-REQUEST), "a value below 0"),
        (
            lambda: BandRouter(table(transform="gate-logit")).band(np.array([[1, np.nan, 0]])),
            "gate_logit of the request hold NaN",
        ),
    ],
)
def test_errors(act, words):
    with pytest.raises(InputError, match=words):
        act()


def test_all_transforms_can_be_routed():
    for name, kind in TRANSFORMS.items():
        made = table(transform=name, idf=IDF if name == "count-idf" else None)
        assert made.measurement == kind
        assert BandRouter(made, 0.0).route(REQUEST if kind == "counts" else REQUEST / 2, [1, 1, 1]) == 0


@pytest.mark.parametrize("apart", [1e-4, 1e-6, 1e-9])
def test_centroids_nearer_to_each_other_than_fixed_point_can_tell(apart):
    """What 16 bits leave open is settled in float64: here nearly every choice is."""
    rng = np.random.default_rng(7)
    rows = np.repeat(rng.random((1, 96)), 6, axis=0) + apart * rng.standard_normal((6, 96))
    table = RoutingTable("", MoEShape(3, 32, 1), "count", None, np.arange(3), unit(rows))
    requests = rng.integers(0, 40, (200, 3, 32))
    near = table.similarities(requests)
    for tau in (0.0, apart / 4):
        router = BandRouter(table, tau)
        for request, s in zip(requests, near, strict=True):
            load = rng.integers(0, 2, 6)
            band = np.flatnonzero(s >= s.max() - tau - 1e-12)
            assert router.band(request).tolist() == band.tolist()
            assert router.route(request, load) == min(band, key=lambda k: (load[k], -s[k], k))


def test_a_centroid_is_of_length_one():
    for length in (1.05, 0.95, 1 + 1e-5, np.nan):
        with pytest.raises(InputError, match="centroid 1 has the length"):
            RoutingTable("", MoEShape(1, 3, 1), "count", None, np.array([0]), [[1, 0, 0], [0, length, 0]])


@pytest.mark.more
@pytest.mark.jit
def test_threads_share_a_router():
    """Eight threads decide at once, each with loads of its own; every decision is the naive one."""
    table, requests, near, _ = of_kinds(3)
    router = BandRouter(table, 0.05)

    def wrong(thread):
        rng, found = np.random.default_rng(thread), 0
        for request in rng.integers(len(requests), size=1500).tolist():
            load, is_open = rng.integers(0, 3, 40), rng.random(40) < 0.7
            is_open[rng.integers(40)] = True
            seen = np.where(is_open, near[request], -9)
            found += router.route(requests[request], load, is_open) != naive.route(seen, load, 0.05)
        return found

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(wrong, range(8))) == 0
