"""The synthetic expert workload: its laws, and the published facts that it is calibrated to."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from locality import naive_signatures as naive
from scipy.stats import t as student

from lbopt.exceptions import InputError
from lbopt.locality import (
    TRANSFORMS,
    GateLaw,
    MoEShape,
    WorkloadConfig,
    draw_activity,
    draw_domains,
    draw_workload,
    draw_world,
    expected_union,
    fit_idf,
    language_shares,
    language_workload,
    picks,
    sample_pairs,
    signature_quality,
    signatures,
    task_shares,
    task_workload,
    transformed,
    workload,
    zipf_shares,
)

SMALL = WorkloadConfig((0.5, 0.3, 0.2), MoEShape(3, 16, 4), requests=30, prompt_tokens=20, decode_steps=10)


def interval(values):
    """95 % interval of the mean."""
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return np.mean(values) - half, np.mean(values) + half


def reductions(config, worlds, batches, layers, sizes=(32, 64, 128)):
    """Percent by which a same-domain batch activates fewer experts than a mixed one; by batch size, one a world."""
    shares = np.array(config.shares)
    cuts, mixed = {B: [] for B in sizes}, {B: [] for B in sizes}
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        shape = replace(config.shape, num_layers=layers)
        world = draw_world(shape, config.law, shares.size, rng, config.topics_per_domain)
        unions = np.zeros((2, len(sizes)))
        for _ in range(batches):
            same = np.full(max(sizes), draw_domains(shares, 1, rng)[0])
            for row, domain in enumerate((same, draw_domains(shares, max(sizes), rng))):
                decode = draw_activity(world, domain, 1, 4, rng).decode
                unions[row] += [expected_union(decode[:B]).mean() for B in sizes]
        for place, B in enumerate(sizes):
            cuts[B].append(100 * (1 - unions[0, place] / unions[1, place]))
            mixed[B].append(unions[1, place] / batches)
    return cuts, mixed


def qualities(config, worlds):
    """Rho of each transform, (worlds, 6), and the prefill-decode correlation of experts in each world."""
    rho, alike = [], []
    for seed in range(worlds):
        _, activity = draw_workload(config, seed)
        pairs, idf = sample_pairs(config.requests, seed), fit_idf(activity.counts)
        rho.append(
            [
                signature_quality(signatures(transformed(name, getattr(activity, kind), idf)), activity.decode, pairs)
                for name, kind in TRANSFORMS.items()
            ]
        )
        prefill, decode = activity.counts.sum(axis=0), activity.decode.sum(axis=0)
        alike.append(np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(prefill, decode, strict=True)]))
    return np.array(rho), alike


@pytest.mark.parametrize("topics", [1, 3])
def test_masses(topics):
    config = replace(SMALL, topics_per_domain=topics, law=GateLaw(topic_strength=1.0))
    world, activity = draw_workload(config, 7)
    assert activity.counts.shape == activity.decode.shape == (30, 3, 16)
    assert (activity.counts.sum(axis=2) == 4 * 20).all() and activity.counts.max() <= 20
    assert np.allclose(activity.decode.sum(axis=2), 4) and activity.decode.max() <= 1
    assert np.allclose(activity.gate_prob.sum(axis=2), 20)
    assert world.topics_per_domain == topics and world.generalist.sum(axis=1).tolist() == [4, 4, 4]
    assert not world.domain[:, world.generalist].any() and not world.shift[world.generalist].any()


def test_the_seed_is_all():
    first, second, other = (draw_workload(SMALL, seed)[1] for seed in (1, 1, 2))
    for name in ("counts", "gate_prob", "gate_logit", "decode", "domain"):
        assert (getattr(first, name) == getattr(second, name)).all()
    assert (first.counts != other.counts).any()


def test_what_is_drawn_at_a_time_bounds_memory_alone(monkeypatch):
    monkeypatch.setattr(workload, "CELLS_AT_A_TIME", 100)
    _, activity = draw_workload(SMALL, 7)
    assert (activity.counts.sum(axis=2) == 4 * 20).all()
    assert np.allclose(activity.decode.sum(axis=2), 4)


def test_prefill_nuisance_and_decode_shift_are_where_they_belong():
    config = replace(SMALL, law=GateLaw(request_spread=0.0))
    world, activity = draw_workload(config, 3)
    logits = activity.gate_logit / config.prompt_tokens
    expected = world.base + world.domain[activity.domain]
    swing = (logits - expected)[:, world.generalist]
    assert np.allclose((logits - expected)[:, ~world.generalist], 0)
    assert np.allclose(swing, swing[:, :1]) and 1 < swing[:, 0].std() < 3


def test_choices_are_sampling_without_replacement():
    scores, tokens = np.array([[1.0, 0.0, -1.0, 2.5]]), 200_000
    weights = np.exp(scores[0])
    included = np.zeros(4)
    for a, b in itertools.permutations(range(4), 2):
        chance = weights[a] / weights.sum() * weights[b] / (weights.sum() - weights[a])
        included[[a, b]] += chance
    share = picks(scores, tokens, 2, np.random.default_rng(0))[0] / tokens
    assert np.allclose(share, included, atol=5 * 0.5 / math.sqrt(tokens))


@pytest.mark.parametrize("k", [1, 5])
def test_one_expert_or_all(k):
    counts = picks(np.random.default_rng(1).standard_normal((2, 3, 5)), 7, k, np.random.default_rng(0))
    assert (counts.sum(axis=2) == 7 * k).all()
    assert k == 1 or (counts == 7).all()


def test_far_apart_scores_do_not_overflow():
    counts = picks(np.array([[0.0, 900.0, -900.0]]), 10, 1, np.random.default_rng(0))
    assert counts.tolist() == [[0, 10, 0]]


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_expected_union_is_that_of_all_outcomes(seed, B, E):
    p = np.random.default_rng(seed).random((B, 2, E))
    assert np.allclose(expected_union(p), [naive.union(p[:, layer].tolist()) for layer in range(2)])


def test_published_unions_of_a_uniform_gate():
    for k, unions in ((8, (8, 51.62, 82.42, 111.77, 125.94, 127.97)), (4, (4, 28.71, 50.98, 81.66, 111.22, 125.80))):
        for B, union in zip((1, 8, 16, 32, 64, 128), unions, strict=True):
            assert expected_union(np.full((B, 1, 128), k / 128))[0] == pytest.approx(union, abs=0.006)


def test_shares():
    assert np.allclose(task_shares(), [0.3085, 0.2382, 0.2352, 0.2181], atol=5e-5)
    language = language_shares()
    assert language.size == 68 and language.sum() == pytest.approx(1) and (np.diff(language) < 0).all()
    assert language[:2].sum() == pytest.approx(0.75) and language[:4].sum() == pytest.approx(0.876)
    assert np.allclose(zipf_shares(68, 1.946)[:4], [0.596, 0.155, 0.070, 0.040], atol=1e-3)
    assert zipf_shares(68, 2.012)[:4].sum() == pytest.approx(0.876, abs=1e-3)


@pytest.mark.more
def test_same_domain_batches_of_tasks_activate_17_to_21_percent_fewer():
    cuts, mixed = reductions(task_workload(), worlds=8, batches=16, layers=4)
    for B in cuts:
        low, high = interval(cuts[B])
        assert 17 <= low <= high <= 21, f"batch of {B}: {low:.1f} to {high:.1f} %"
    assert np.mean(mixed[32]) > 2 * 8 and np.mean(mixed[128]) < 100, "batches neither share all experts nor use all"


@pytest.mark.more
def test_same_language_batches_activate_3_to_10_percent_fewer():
    cuts, _ = reductions(language_workload(), worlds=6, batches=12, layers=4)
    for B in cuts:
        low, high = interval(cuts[B])
        assert 3 <= low <= high <= 10, f"batch of {B}: {low:.1f} to {high:.1f} %"


def test_idf_signatures_foretell_decode_better_than_counts():
    small = task_workload(shape=MoEShape(3, 128, 8), requests=80, prompt_tokens=128, decode_steps=64)
    rho, alike = qualities(small, worlds=6)
    mean = dict(zip(TRANSFORMS, rho.mean(axis=0), strict=True))
    assert mean["count-idf"] > mean["count"] > mean["gate-prob"] + 0.035
    assert (rho[:, 1] > rho[:, 0]).sum() >= 4
    assert 0.70 <= np.mean(alike) <= 0.92


@pytest.mark.slow
def test_order_of_transforms_over_ten_worlds():
    full = task_workload(shape=MoEShape(6, 128, 8), requests=200, prompt_tokens=256, decode_steps=128)
    rho, alike = qualities(full, worlds=10)
    mean = dict(zip(TRANSFORMS, rho.mean(axis=0), strict=True))
    for name in ("count", "count-idf", "sqrt-count"):
        assert mean[name] > mean["gate-prob"] + 0.035
    assert (rho[:, 1] > rho[:, 0]).sum() >= 7
    assert 0.70 <= np.mean(alike) <= 0.92


@pytest.mark.slow
@pytest.mark.parametrize(("config", "least", "most"), [(task_workload(), 17, 21), (language_workload(), 3, 10)])
def test_unions_of_all_layers(config, least, most):
    cuts, _ = reductions(config, worlds=20, batches=8, layers=16)
    for B in cuts:
        low, high = interval(cuts[B])
        assert least <= low <= high <= most, f"batch of {B}: {low:.1f} to {high:.1f} %"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: MoEShape(4, 8, 9), "experts_per_token is 9"),
        (lambda: MoEShape(0), "num_layers is 0"),
        (lambda: GateLaw(base_spread=-1.0), "base_spread is -1.0"),
        (lambda: GateLaw(generalist_height=math.nan), "generalist_height is nan"),
        (lambda: draw_world(MoEShape(1, 3, 1), GateLaw(), 1, np.random.default_rng(0)), "a layer has 3 experts"),
        (lambda: replace(SMALL, requests=0), "requests is 0"),
        (lambda: draw_workload(replace(SMALL, shares=(0.5, 0.4)), 0), "sum to 1"),
        (lambda: language_shares(4), "expected a whole number of 5 or more"),
        (lambda: zipf_shares(3, math.inf), "inf"),
        (lambda: picks(np.zeros((1, 3)), 1, 4, np.random.default_rng(0)), "choose 4 of 3"),
        (
            lambda: draw_activity(draw_workload(SMALL, 0)[0], np.array([3]), 1, 1, np.random.default_rng(0)),
            "of domain 3",
        ),
    ],
)
def test_errors(act, words):
    with pytest.raises(InputError, match=words):
        act()
