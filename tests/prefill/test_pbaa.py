"""PBAA: worked examples, its definition line by line, and what must hold of any batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.pbaa import pbaa as naive_pbaa

from lbopt.exceptions import InputError
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, make_allocation, pbaa, simulate_prefill

TRAP = {"headroom": [1000, 0], "length": [2000, 900], "hits": [[0, 1800], [0, 0]]}
HELPS = {"headroom": [3072, 2500], "length": [2000, 900, 600], "hits": [[0, 1500], [0, 0], [0, 0]]}
OVERSHOOT = {
    "headroom": [3072, 3072, 1000],
    "length": [500, 2000, 1800, 1500, 900, 700, 400],
    "pending": [True, *[False] * 6],
}


def left(headroom, length, unit, hits=None, **_):
    """Return the headroom after `unit`, from the costs alone."""
    room = list(headroom)
    for r, d in enumerate(unit):
        if d >= 0:
            room[d] -= length[r] - (hits[r][d] if hits is not None else 0)
    return room


@pytest.mark.parametrize(
    ("case", "unit", "room"),
    [
        (OVERSHOOT, [0, 1, 0, 1, 2, 0, 2], [72, -428, -300]),
        ({"headroom": [2000, 1500], "length": [2000, 1800, 1500, 900]}, [0, 1, -1, -1], [0, -300]),
        (TRAP | {"printed": True}, [-1, 0], [100, 0]),
        (TRAP, [0, -1], [-1000, 0]),
        (HELPS, [1, 0, 0], [1572, 2000]),
        (HELPS | {"hits": None}, [0, 1, 1], [1072, 1000]),
    ],
)
def test_worked_examples(case, unit, room):
    found = pbaa(**case)
    assert found.tolist() == unit
    assert left(unit=found, **case) == room


@st.composite
def batches(draw):
    D, n = draw(st.integers(1, 6)), draw(st.integers(0, 14))
    largest = draw(st.sampled_from([2, 5, 40, 2**45]))
    chunk = draw(st.sampled_from([largest, 3 * largest]))
    headroom = draw(st.lists(st.integers(-largest, chunk), min_size=D, max_size=D))
    length = draw(st.lists(st.integers(1, largest), min_size=n, max_size=n))
    hits = None
    if draw(st.booleans()):
        hits = [[draw(st.integers(0, longest)) for _ in range(D)] for longest in length]
        hits = np.array(hits, dtype=np.int64).reshape(n, D)
    pending = draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
    printed, whole = draw(st.booleans()), draw(st.booleans())
    return {
        "headroom": headroom, "length": length, "hits": hits, "pending": pending, "printed": printed, "whole": whole,
        "chunk": chunk,
    }  # fmt: skip


@given(batches())
@settings(max_examples=500)
def test_line_by_line(case):
    unit, room = naive_pbaa(**case)
    found = pbaa(**case)
    assert found.tolist() == [-1 if d is None else d for d in unit]
    assert left(unit=found, **case) == room


@given(batches())
@settings(max_examples=200)
def test_of_any_batch(case):
    found, room = pbaa(**case), case["headroom"]
    after = left(unit=found, **case)
    length, hits = case["length"], case["hits"]
    for d in range(len(room)):
        here = np.flatnonzero(found == d)
        if room[d] <= 0:
            assert here.size == 0, "a unit without headroom gets nobody"
        if case["whole"]:
            assert after[d] >= min(0, room[d]) or room[d] == case["chunk"]
        elif here.size:
            last = max(length[r] - (0 if hits is None else hits[r][d]) for r in here)
            assert after[d] > -last, "only one request overshoots"
    if not case["whole"] and not case["printed"] and (found < 0).any():
        assert max(after) <= 0, "nobody is kept while a unit has headroom"
    if hits is None and not case["whole"]:
        kept = np.array(length)[found < 0]
        pending = np.zeros(len(length), bool) if case["pending"] is None else np.array(case["pending"], bool)
        for phase in (pending, ~pending):
            placed = np.array(length)[phase & (found >= 0)]
            kept = np.array(length)[phase & (found < 0)]
            assert placed.size == 0 or kept.size == 0 or kept.max() <= placed.min(), "the longest first"
        assert not (found[pending] < 0).any() or (found[~pending] < 0).all(), "left over before new"


@pytest.mark.parametrize("spec", ["pbaa", "pbaa:printed=yes,cache=yes", "pbaa:cache=yes", "pbaa:whole=yes"])
@pytest.mark.parametrize("policy", ["pooled", "staggered", "staggered:window=3", "staggered:timer=tick"])
def test_in_a_run(spec, policy):
    rng = np.random.default_rng(3)
    n, N, D = 300, 2, 3
    length = rng.integers(1, 12, n)
    hits = rng.integers(0, length[:, None, None] + 1, (n, N, D))
    requests = PrefillRequests(np.sort(rng.integers(0, 40, n)) / 8, length, hits)
    setting = PrefillSetting(N, D, policy, spec, PassTime(0.5, 0.0), chunk_tokens=8)
    run = simulate_prefill(requests, setting, seed=1)
    assert run.served.all()
    cost = length - hits[np.arange(n), run.requests["instance"], run.requests["unit"]]
    assert run.passes["tokens"].sum() == cost.sum()
    assert (run.requests["deferred"] > 0).any()


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_refused_when_kept_more_often(limit):
    rng = np.random.default_rng(4)
    requests = PrefillRequests(np.sort(rng.random(400)) * 10, rng.integers(1, 12, 400))
    setting = PrefillSetting(2, 3, "staggered", f"pbaa:n_limit={limit}", PassTime(0.5, 0.0), chunk_tokens=8)
    run = simulate_prefill(requests, setting, seed=1)
    assert 0 < run.served.sum() < 400
    assert (run.requests["deferred"][~run.served] == limit).all()
    assert run.requests["deferred"].max() <= limit


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"headroom": []}, "headroom has no entries"),
        ({"headroom": [1.5, 2.0]}, "headroom is float64"),
        ({"headroom": [2**50, 0]}, "expected below 2"),
        ({"length": [0]}, r"length\[0\] is 0"),
        ({"hits": [[0, 1800]]}, r"hits have shape \(1, 2\); expected \(2, 2\)"),
        ({"hits": [[0, 1800], [0, 901]]}, r"hits\[1, 1\] is 901, but the prompt has 900 tokens"),
        ({"whole": True}, "whole=True needs the chunk"),
        ({"chunk": 999}, "chunk is 999 but a unit has headroom 1000"),
    ],
)
def test_bad_batches(given, says):
    with pytest.raises(InputError, match=says):
        pbaa(**TRAP | given)


def test_bad_rules():
    with pytest.raises(InputError, match="n_limit is -1; expected 0 or more"):
        make_allocation("pbaa:n_limit=-1")
    with pytest.raises(InputError, match="has no option 'size'"):
        make_allocation("pbaa:size=3")
    with pytest.raises(InputError, match="'pbaa' holds requests back, but policy 'random' binds them on arrival"):
        PrefillSetting(2, policy="random", allocation="pbaa")
    for spec in ("round-robin", "pbaa", "pbaa:printed=yes,cache=yes,whole=yes,n_limit=3"):
        assert make_allocation(make_allocation(spec).name) == make_allocation(spec)
