"""iqr: the percentiles, the mask, the worked examples of its source, and the naive twin decision for decision."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.rules import many, random_iqr, random_observation
from naive import bind, iqr_threshold, place

from lbopt.exceptions import InputError
from lbopt.kernels.routing import iqr as kernel
from lbopt.kernels.routing.state import Shown, parameters_of
from lbopt.policies import Observation, make_policy
from lbopt.policies.compiled_rules import PERCENTILES
from lbopt.policies.decide import decide

LOADS = st.lists(st.integers(0, 10**6) | st.integers(0, 4), min_size=1, max_size=24)


def heaviest_safe(loads, spec="iqr"):
    return int(
        kernel.heaviest_safe(parameters_of(**make_policy(spec).parameters), np.sort(np.array(loads, dtype=np.int64)))
    )


def masked(loads, spec="iqr"):
    return [g for g, load in enumerate(loads) if load > heaviest_safe(loads, spec)]


def seen(loads, running, sizes, free=None):
    zeros = [0] * len(loads)
    free = [len(sizes)] * len(loads) if free is None else free
    return Observation(0, 0.0, loads, free, running, zeros, zeros, sizes, [0] * len(sizes), range(len(sizes)))


def after(loads, running, sizes, workers):
    """Requests and tokens of each worker once the requests lie where `workers` says."""
    batch, load = list(running), list(loads)
    for size, worker in zip(sizes, workers, strict=True):
        batch[worker] += 1
        load[worker] += size
    return batch, load


# ---------------------------------------------------------------------------------------------------------------------
# percentiles and the mask


@pytest.mark.parametrize("method", PERCENTILES)
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_quartiles_are_those_of_numpy(method, quarters):
    rng = np.random.default_rng(quarters)
    for _ in range(many(300, 60)):
        loads = rng.integers(0, rng.choice([2, 10, 10**9]), rng.integers(1, 40))
        ours = kernel.quadruple_quartile(PERCENTILES[method], quarters, np.sort(loads)) / 4
        assert ours == np.percentile(loads, 25 * quarters, method=method)


@settings(max_examples=many(400, 80), deadline=None)
@given(loads=LOADS, multiplier=st.integers(0, 5000), method=st.sampled_from(list(PERCENTILES)), scale=st.integers(0, 9))
def test_the_mask_is_exact(loads, multiplier, method, scale):
    """A load equal to the threshold is safe, however large the numbers and whatever the multiplier."""
    loads = [load * 10**scale for load in loads]
    spec = f"iqr:multiplier={multiplier / 1000:.3f},percentile={method}"
    threshold = iqr_threshold(loads, Fraction(multiplier, 1000), method)
    assert heaviest_safe(loads, spec) == math.floor(threshold)
    assert masked(loads, spec) == [g for g, load in enumerate(loads) if load > threshold]


def test_a_threshold_beyond_int64_masks_nobody():
    loads = [0, 0, 2**58, 2**58 + 1, 2**59]
    assert iqr_threshold(loads, Fraction(1000), "linear") > 2**63
    assert heaviest_safe(loads, "iqr:multiplier=1000") == 2**59
    assert masked(loads, "iqr:multiplier=0") == [4]


@settings(max_examples=many(300, 60), deadline=None)
@given(loads=LOADS, multiplier=st.integers(0, 3000), method=st.sampled_from(list(PERCENTILES)))
def test_somebody_is_always_safe(loads, multiplier, method):
    """The source's fallback to all workers needs another filter: the lightest worker is never masked."""
    spec = f"iqr:multiplier={multiplier / 1000:.3f},percentile={method}"
    assert min(loads) <= heaviest_safe(loads, spec)
    if method == "linear":
        assert len(loads) - len(masked(loads, spec)) >= 3 * (len(loads) - 1) // 4 + 1


@settings(max_examples=many(300, 60), deadline=None)
@given(loads=st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
def test_up_to_three_workers_are_never_masked(loads):
    assert masked(loads) == []


@pytest.mark.parametrize(
    ("loads", "threshold", "out"),
    [
        ([10, 20, 30, 40, 200], 70, [4]),  # sheet of the source, example (a)
        ([0, 0, 0, 10], 6.25, [3]),  # (d)
        ([0, 5, 10], 15, []),  # (d)
        ([0, 5, 5, 5, 9], 5, [4]),  # equal quartiles mask whatever is above them
        ([1, 1, 1, 1, 1, 1, 9, 9], 6, [6, 7]),
        ([7, 7, 7, 7], 7, []),
    ],
)
def test_the_mask_of_worked_examples(loads, threshold, out):
    assert iqr_threshold(loads, Fraction(3, 2), "linear") == threshold
    assert heaviest_safe(loads) == math.floor(threshold)
    assert masked(loads) == out


@pytest.mark.parametrize(
    ("method", "threshold"),
    # positions 1.25 and 3.75 of 0 1 2 3 4 50 (types 7 and the two neighbours), 0.75 and 4.25 (type 6)
    [("linear", 7.5), ("lower", 6), ("higher", 7), ("nearest", 8.5), ("weibull", 15.5 + 1.5 * 14.75)],
)
def test_the_percentile_decides_who_is_masked(method, threshold):
    loads = [0, 1, 2, 3, 4, 50]
    assert iqr_threshold(loads, Fraction(3, 2), method) == threshold
    assert heaviest_safe(loads, f"iqr:percentile={method}") == math.floor(threshold)


# ---------------------------------------------------------------------------------------------------------------------
# decisions


def test_a_small_batch_does_not_help_a_masked_worker():
    """Example (b): worker 3 has fewest requests and stays as it is; the exact two-stage optima use it or not."""
    loads, running, sizes = [40, 20, 30, 200, 10], [2, 2, 3, 1, 2], [8, 5, 3]
    workers = decide(make_policy("iqr"), seen(loads, running, sizes)).tolist()
    assert workers == [4, 1, 0]
    assert after(loads, running, sizes, workers) == ([3, 3, 3, 1, 3], [43, 25, 30, 200, 18])
    everywhere = [after(loads, running, sizes, each) for each in itertools.product(range(5), repeat=3)]
    fewest = min(max(batch) for batch, _ in everywhere)
    assert fewest == 3
    assert min(max(load) for batch, load in everywhere if max(batch) == fewest) == 200
    level = min(sorted(batch, reverse=True) for batch, _ in everywhere)
    assert level == [3, 3, 3, 2, 2]
    assert min(max(load) for batch, load in everywhere if sorted(batch, reverse=True) == level) == 203


@pytest.mark.parametrize(("sizes", "ours", "best"), [([19, 18, 13, 12, 10], [41, 31], 37), ([6, 5, 4, 3], [9, 9], 9)])
def test_longest_first_is_not_optimal(sizes, ours, best):
    """Example (c): two empty workers."""
    workers = decide(make_policy("iqr"), seen([0, 0], [0, 0], sizes)).tolist()
    assert after([0, 0], [0, 0], sizes, workers)[1] == ours
    everywhere = [after([0, 0], [0, 0], sizes, each) for each in itertools.product(range(2), repeat=len(sizes))]
    level = min(max(batch) for batch, _ in everywhere)
    assert min(max(load) for batch, load in everywhere if max(batch) == level) == best


def test_where_all_safe_workers_are_full_the_mask_is_dropped():
    """Our reading: a slot that only an outlier has is used."""
    loads, running = [10, 20, 30, 40, 200], [5, 5, 5, 5, 1]
    assert masked(loads) == [4]
    assert decide(make_policy("iqr"), seen(loads, running, [9, 8], free=[0, 0, 0, 0, 1])).tolist() == [4, -1]
    assert decide(make_policy("iqr"), seen(loads, running, [9, 8], free=[1, 0, 0, 0, 1])).tolist() == [0, 4]


def test_quartiles_are_those_of_all_workers_full_or_not():
    """Among the two open workers alone (quartiles 3 and 7) nobody would be masked."""
    loads, running = [0, 0, 0, 0, 1, 9], [9, 9, 9, 9, 5, 0]
    assert masked(loads) == [5]
    assert decide(make_policy("iqr"), seen(loads, running, [3], free=[0, 0, 0, 0, 1, 1])).tolist() == [4]


def test_a_pool_longer_than_the_slots_starts_its_oldest():
    workers = decide(make_policy("iqr"), seen([0, 0], [0, 0], [1, 2, 50, 60], free=[1, 1])).tolist()
    assert workers == [1, 0, -1, -1]


def water_filled(batch, count):
    """Final batches, sorted: `count` requests poured one by one onto the lowest."""
    batch = sorted(batch)
    for _ in range(count):
        batch[0] += 1
        batch.sort()
    return batch


def test_without_a_mask_the_final_batches_are_those_of_water_filling():
    rng, unmasked = random.Random(4), 0
    for _ in range(many(1500, 300)):
        G, n = rng.randint(1, 7), rng.randint(0, 12)
        loads, running = ([rng.randint(0, top) for _ in range(G)] for top in (1000, 5))
        sizes = [rng.randint(0, 40) for _ in range(n)]
        workers = decide(make_policy("iqr:multiplier=7"), seen(loads, running, sizes)).tolist()
        current, fired = list(loads), False
        for i in sorted(range(n), key=lambda i: -sizes[i]):
            fired |= max(current) > iqr_threshold(current, Fraction(7), "linear")
            current[workers[i]] += sizes[i]
        if not fired:
            unmasked += 1
            assert sorted(after(loads, running, sizes, workers)[0]) == water_filled(running, n)
    assert unmasked > many(1000, 200)


@pytest.mark.some(2)
@pytest.mark.parametrize("block", range(4))
def test_the_pooled_form_decides_as_its_twin(block):
    rng = random.Random(f"iqr {block}")
    for _ in range(many(2500, 250)):
        observation = random_observation(rng)
        spec, name, options = random_iqr(rng)
        observed = (observation.loads, observation.free_slots, observation.sizes, observation.waited)
        lists = [array.tolist() for array in (*observed, observation.running)]
        expected, _ = place(name, *lists, options=options)
        assert decide(make_policy(spec), observation).tolist() == expected, (spec, observation)


def test_the_immediate_form_binds_as_its_twin():
    rng = random.Random("iqr bound")
    for _ in range(many(10_000, 800)):
        G = rng.choice([1, 2, 3, 4, 5, 8, 13])
        top = rng.choice([1, 3, 1000])
        load, running, queued, tokens = (np.array([rng.randint(0, top) for _ in range(G)]) for _ in range(4))
        load[rng.randrange(G)] *= rng.choice([1, 5])
        spec, name, options = random_iqr(rng)
        expected, _ = bind(name, running.tolist(), queued.tolist(), (load + tokens).tolist(), None, 0, options=options)
        shown = Shown(load, running, queued, tokens, load[:0])
        assert kernel.bind_iqr(parameters_of(**make_policy(spec).parameters), shown) == expected


def test_renumbering_the_workers_renumbers_the_decision():
    """Without equal loads no worker is known by its number."""
    rng = random.Random(7)
    for _ in range(many(500, 60)):
        G, n = rng.randint(1, 9), rng.randint(0, 12)
        loads, sizes = (np.array([rng.randrange(10**9) for _ in range(count)]) for count in (G, n))
        running, free = (np.array([rng.randint(0, 3) for _ in range(G)]) for _ in range(2))
        new = np.array(rng.sample(range(G), G))  # old worker g becomes new[g]
        old = np.argsort(new)
        policy = make_policy(random_iqr(rng)[0])
        here, there = (decide(policy, seen(loads[o], running[o], sizes, free[o])) for o in (np.arange(G), old))
        assert np.where(here >= 0, new[here], -1).tolist() == there.tolist()


# ---------------------------------------------------------------------------------------------------------------------
# options


def test_the_multiplier_comes_in_thousandths():
    assert make_policy("iqr:multiplier=1.5") == make_policy("iqr")
    assert make_policy("iqr:multiplier=1.0004") == make_policy("iqr:multiplier=1")
    for spec in ("iqr:multiplier=0", "iqr:multiplier=999.999,percentile=lower", "iqr:admission=immediate"):
        assert make_policy(spec).name == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("iqr:multiplier=-0.5", r"policy 'iqr': multiplier is -0\.5; expected 0 to 1000"),
        ("iqr:multiplier=nan", r"multiplier is nan; expected 0 to 1000"),
        ("iqr:multiplier=inf", r"multiplier is inf; expected 0 to 1000"),
        ("iqr:multiplier=none", r"multiplier is 'none'; expected a number"),
        ("iqr:percentile=median", r"percentile is 'median'; expected linear or lower or higher or nearest or weibull"),
        ("iqr:admission=late", r"policy 'iqr' cannot use admission 'late'; expected pooled or immediate"),
    ],
)
def test_a_wrong_option_is_named(spec, message):
    with pytest.raises(InputError, match=message):
        make_policy(spec)
