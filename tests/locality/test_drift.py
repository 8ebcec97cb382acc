"""The watch on drift: charts as their naive twin draws them, alarms on other traffic, and none on the same."""

import threading

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.locality import MoEShape, draw_activity, draw_workload, fit_routing, task_workload
from lbopt.locality.drift import BLOCK, DriftWatch, centroid_groups, centroid_kinds, features
from lbopt.locality.routing_table import DriftReference
from lbopt.locality.workload import draw_domains

SHAPE = MoEShape(3, 32, 4)


@pytest.fixture(scope="module")
def town():
    """A world, its table, and what the table sees of fresh requests of the same and of other mixes."""
    config = task_workload(shape=SHAPE, requests=600, prompt_tokens=128, decode_steps=16)
    world, activity = draw_workload(config, 11)
    table = fit_routing(activity, 8, starts=2).table
    rng = np.random.default_rng(12)
    shares = np.array(config.shares)
    seen = {"same": look(table, world, shares, 1500, rng), "one": look(table, world, np.eye(4)[1], 300, rng)}
    strangers = draw_workload(config, 999)[0]
    seen["new"] = look(table, strangers, shares, 300, rng)
    return table, seen


def look(table, world, shares, number, rng):
    """What a router would tell the watch of requests of a mix."""
    counts = draw_activity(world, draw_domains(shares, number, rng), 128, 1, rng).counts
    near = table.similarities(counts)
    top = near.max(axis=1)
    kept = counts[:, table.layers]
    strange = np.where(table.drift.used, 0, kept).sum(axis=(1, 2)) / kept.sum(axis=(1, 2))
    within = (near >= top[:, None] - 0.1).sum(axis=1)
    return list(zip(top.tolist(), within.tolist(), strange.tolist(), near.argmax(axis=1).tolist(), strict=True))


def naive_levels(watch, reference, rows):
    """Charts over their thresholds after `rows`, in loops over single numbers."""
    values, nearest = features(reference, 0.1)
    K, N = reference.cosines.shape[1], len(values)
    mean = [sum(v[j] for v in values) / N for j in range(3)]
    spread = [max((sum((v[j] - mean[j]) ** 2 for v in values) / N) ** 0.5, (0.005, 0.05, 0.002)[j]) for j in range(3)]
    p = [sum(1 for n in nearest if n == k) / N for k in range(K)]
    up, down, m = [0.0] * 3, [0.0] * 3, list(p)
    for start in range(0, len(rows) - BLOCK + 1, BLOCK):
        block = rows[start : start + BLOCK]
        for j in range(3):
            x = sum(np.log(r[1]) if j == 1 else r[j] for r in block) / BLOCK
            z = (x - mean[j]) / (spread[j] / BLOCK**0.5)
            up[j], down[j] = max(0.0, up[j] + z - 1.25), max(0.0, down[j] - z - 1.25)
        for k in range(K):
            m[k] = 0.9 * m[k] + 0.1 * sum(1 for r in block if r[3] == k) / BLOCK
    q = sum((m[k] - p[k]) ** 2 / (0.5 * p[k] + 0.5 / K) for k in range(K))
    charts = [max(up[0], down[0]), max(up[1], down[1]), up[2], q, naive_mix(watch, [r[3] for r in rows], p, N)]
    return [chart / threshold for chart, threshold in zip(charts, watch.thresholds, strict=True)]


def naive_mix(watch, nearest, p, N):
    """The greatest chart of the mix after requests with these nearest centroids; every centroid is a kind."""
    K = len(p)
    assert (watch._kinds == np.eye(K)).all()
    p = [(x * N + 0.5) / (N + 0.5 * K) for x in p]
    groups = [[k for k in range(K) if watch._groups[k, m]] for m in range(watch._groups.shape[1])]
    sums, recent = [0.0] * (len(groups) + 1), list(p)
    for start in range(0, len(nearest) - BLOCK + 1, BLOCK):
        block = nearest[start : start + BLOCK]
        for m, group in enumerate(groups):
            of = sum(p[k] for k in group)
            q, n = of + 0.3 * (1 - of), sum(1 for k in block if k in group)
            sums[m] = max(0.0, sums[m] + n * np.log(q / of) + (BLOCK - n) * np.log((1 - q) / (1 - of)))
        over = [max(0.0, recent[k] - p[k] - (p[k] * (1 - p[k]) * 0.1 / 1.9 / BLOCK) ** 0.5) for k in range(K)]
        if sum(over) > 0:
            sums[-1] += sum(np.log(0.7 + 0.3 * over[k] / sum(over) / p[k]) for k in block)
        sums[-1] = max(0.0, sums[-1])
        recent = [0.9 * recent[k] + 0.1 * block.count(k) / BLOCK for k in range(K)]
    return max(s / unit for s, unit in zip(sums, watch._law.mix.scale, strict=True))


def test_charts_are_their_naive_twins(town):
    table, seen = town
    watch = DriftWatch(table.drift, 0.1, seed=1)
    rows = [*seen["same"][:110], *seen["one"][:60], *seen["new"][:40]]
    for row in rows:
        watch.observe(*row)
    reading = watch.reading()
    assert list(reading.levels.values()) == pytest.approx(naive_levels(watch, table.drift, rows), rel=1e-6)
    assert reading.requests == len(rows)


@pytest.mark.parametrize(("mix", "within"), [("one", 500), ("new", 150)])
def test_another_mix_sounds_the_alarm(town, mix, within):
    table, seen = town
    rng = np.random.default_rng(3)
    watch = DriftWatch(table.drift, 0.1)
    for _ in range(5):
        watch.reset()
        for i in rng.integers(1500, size=1000):
            watch.observe(*seen["same"][i])
        assert watch.alarm is None
        for i in rng.integers(300, size=within):
            watch.observe(*seen[mix][i])
        assert watch.alarm is not None and 1000 < watch.alarm.request <= 1000 + within
        assert watch.alarm.level >= 1 and watch.reading().alarm == watch.alarm
    sounded = watch.alarm
    for i in rng.integers(1500, size=500):
        watch.observe(*seen["same"][i])
    assert watch.alarm == sounded  # it stays until it is reset
    watch.reset()
    assert watch.alarm is None and watch.reading().requests == 0


@pytest.mark.more
def test_the_same_mix_is_no_alarm(town):
    """Twenty runs of 5,000 requests; a chart whose threshold is a tenth of its own would sound in most of them."""
    table, seen = town
    rng = np.random.default_rng(4)
    watch, jumpy, alarms, early = DriftWatch(table.drift, 0.1), DriftWatch(table.drift, 0.1), 0, 0
    jumpy.thresholds = jumpy.thresholds / 10
    for _ in range(20):
        watch.reset()
        jumpy.reset()
        for i in rng.integers(1500, size=5000):
            watch.observe(*seen["same"][i])
            jumpy.observe(*seen["same"][i])
        alarms += watch.alarm is not None
        early += jumpy.alarm is not None
    assert (alarms, early >= 10) == (0, True), (alarms, early)


@pytest.mark.more
def test_rarer_alarms_need_higher_thresholds(town):
    table, _ = town
    loose, strict = (DriftWatch(table.drift, 0.1, horizon=1000, false_alarms=share) for share in (0.2, 0.001))
    longer = DriftWatch(table.drift, 0.1, horizon=5000, false_alarms=0.2)
    assert loose.thresholds[2] == strict.thresholds[2] == 4.0  # no stream had a strange expert
    others = [0, 1, 3, 4]
    assert (loose.thresholds < strict.thresholds)[others].all() and (loose.thresholds <= longer.thresholds).all()
    again = DriftWatch(table.drift, 0.1, horizon=1000, false_alarms=0.2)
    assert np.array_equal(loose.thresholds, again.thresholds)


@pytest.mark.more
def test_a_quarter_that_moves_to_a_known_kind_is_found(town):
    """By the chart of the mix, within 500 requests as a rule; the other charts alone take thousands."""
    table, seen = town
    rng = np.random.default_rng(6)
    watch = DriftWatch(table.drift, 0.1)
    late = []
    for _ in range(10):
        watch.reset()
        for i in rng.integers(1500, size=500):
            watch.observe(*seen["same"][i])
        while watch.alarm is None and watch.reading().requests < 2500:
            mix = "one" if rng.random() < 0.25 else "same"
            watch.observe(*seen[mix][rng.integers(len(seen[mix]))])
        late.append(watch.reading().requests - 500)
        assert watch.alarm.statistic == "mix"
    assert np.median(late) <= 500 and max(late) <= 1000, late


def test_kinds_and_groups_of_centroids():
    """Six centroids of three pairs: pairs are groups, and forty of them are joined to 32 kinds."""
    rng = np.random.default_rng(0)
    near = rng.random((300, 3))
    cosines = np.repeat(near, 2, axis=1) + 0.05 * rng.random((300, 6))
    shares = np.full(6, 1 / 6)
    members = centroid_groups(cosines, shares)
    found = {frozenset(np.flatnonzero(group).tolist()) for group in members.T}
    assert {frozenset(pair) for pair in ((0, 1), (2, 3), (4, 5))} <= found
    assert {frozenset([k]) for k in range(6)} <= found and len(found) == members.shape[1]
    assert ((shares @ members) <= 0.5).all()
    assert (centroid_kinds(cosines) == np.eye(6)).all()
    many = np.repeat(rng.random((300, 20)), 2, axis=1) + 0.01 * rng.random((300, 40))
    kinds = centroid_kinds(many)
    assert kinds.shape == (40, 32) and (kinds.sum(axis=1) == 1).all()
    joined = np.flatnonzero(kinds.sum(axis=0) == 2)
    assert len(joined) == 8  # of the twenty pairs
    assert all(a // 2 == b // 2 for a, b in (np.flatnonzero(kinds[:, kind]) for kind in joined))


@pytest.mark.parametrize("K", [1, 2])
def test_one_or_two_workers_have_a_mix_too(K):
    rng = np.random.default_rng(1)
    reference = DriftReference(rng.uniform(0.2, 0.9, (100, K)), np.zeros(100), np.ones((1, 8), bool))
    watch = DriftWatch(reference, 0.1, horizon=500)
    values, nearest = features(reference, 0.1)
    for i in rng.integers(100, size=100):
        watch.observe(values[i, 0], int(np.exp(values[i, 1]) + 0.5), 0.0, int(nearest[i]))
    assert watch.alarm is None and np.isfinite(list(watch.reading().levels.values())).all()


@pytest.mark.more
def test_threads_lose_no_request(town):
    table, seen = town
    watch = DriftWatch(table.drift, 0.1)

    def work():
        for row in seen["same"][:1000]:
            watch.observe(*row)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watch.reading().requests == 4000


def test_strange_experts_alone_sound_the_alarm():
    """Requests as similar as ever, a tenth of whose choices are at experts that nobody used."""
    rng = np.random.default_rng(5)
    reference = DriftReference(rng.uniform(0.5, 0.9, (400, 4)), rng.uniform(0, 0.002, 400), np.ones((1, 8), bool))
    values, nearest = features(reference, 0.1)
    watch = DriftWatch(reference, 0.1)
    for i in rng.integers(400, size=200):
        watch.observe(values[i, 0], int(np.exp(values[i, 1]) + 0.5), 0.1, int(nearest[i]))
    assert watch.alarm.statistic == "strange"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"false_alarms": 0.0}, "false_alarms is 0.0; expected a share between 0.00025 and 1"),
        ({"horizon": 3}, "horizon is 3"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_errors(town, given, words):
    with pytest.raises(InputError, match=words):
        DriftWatch(town[0].drift, 0.1, **given)
