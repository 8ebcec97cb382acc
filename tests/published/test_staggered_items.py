"""Four questions of the staggering study: what changes, what fails, what decodes and what is cached."""

import importlib
import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.hardware import make_step_time
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.prefill import PassTime
from lbopt.simulator import SimulationSetting, TraceTimes, simulate
from lbopt.studies.staggered import ITEMS, Rows, StaggeredConfig, questions
from lbopt.studies.staggered.places import PLACES, UNITS, most_rate
from tools.studies.reproduction.cell import measured
from tools.studies.staggered import adapting, cache, decode, watchdog

OURS = ("adapting", "watchdog", "decode", "cache")


def by_keys(rows, *names):
    return {tuple(keys[name] for name in names): values for keys, values in rows}


@pytest.mark.parametrize("instances", [1, 3, 256])
@pytest.mark.parametrize("item", OURS)
def test_every_part_can_be_asked(item, instances):
    """The parts of a question are arguments of the function that answers it."""
    module, name = f"tools.studies.staggered.{item}", "measure"
    signature = inspect.signature(getattr(importlib.import_module(module), name))
    tasks = StaggeredConfig(items=(item,), instances=instances, seeds=1).tasks(item)
    assert len({task.key for task in tasks}) == len(tasks) > 0
    for task in tasks:
        signature.bind(**task.parameters, seed=task.seed)


def test_without_a_second_instance_none_can_leave():
    asked = {part["change"] for part in ITEMS["adapting"](StaggeredConfig(instances=1))}
    assert asked == {name for name in adapting.CHANGES if "instance" not in name}


# What changes.


@pytest.mark.parametrize("change", adapting.CHANGES)
def test_the_heavier_half_is_at_the_load(change):
    """Tokens a second of an instance that is there, in both halves, over those of a saturated one."""
    where = adapting.course(change, "short-3k", 3, 20_000, seed=1)
    what, n = adapting.CHANGES[change], len(where.requests)
    arrival, length = where.requests.arrival, where.requests.length
    place = PLACES["short-3k"]
    most = most_rate(place, PassTime()) * place.mean
    shares = []
    for half, part in enumerate((slice(0, n // 2), slice(n // 2, n))):
        rate = length[part].sum() / (arrival[part][-1] - arrival[part][0])
        shares.append(rate / most / where.healthy[half])
    assert max(shares) == pytest.approx(adapting.LOAD, rel=0.03)
    expected = what.prompts[0] * what.traffic[0] / (what.prompts[1] * what.traffic[1])
    assert shares[0] / shares[1] == pytest.approx(expected * where.healthy[1] / where.healthy[0], rel=0.04)
    assert where.at == arrival[n // 2]


def test_an_interval_that_follows_the_fleet_beats_one_that_does_not():
    """With an instance more the old interval is too long, and its instances idle; the window goes with the fleet."""
    rows = by_keys(
        adapting.measure(change="an instance joins", place="short-3k", instances=3, requests=2000, version="", seed=0),
        "contender",
    )
    old, new = rows["static, of the first half",], rows["static, of the second half",]
    window = rows["window 50",]
    assert window["ttft_after"] < 0.95 * old["ttft_after"]
    assert window["ttft_after"] == pytest.approx(new["ttft_after"], rel=0.03)
    assert window["interval_after"] / window["interval_before"] == pytest.approx(2 / 3, rel=0.1)
    assert rows["pooled",]["settling"] is None


def test_a_longer_window_settles_later():
    rows = by_keys(
        adapting.measure(change="prompts halve", place="short-3k", instances=3, requests=6000, version="", seed=0),
        "contender",
    )
    passes = [rows[f"window {window}",]["settling_passes"] for window in (5, 50, 500)]
    assert passes == sorted(passes)
    assert rows["window 50",]["straight_passes"] <= passes[1] <= 2 * 50
    assert rows["window 5",]["jitter"] > 2 * rows["window 50",]["jitter"]


# What fails.


def stall_by_counting(arrival, delivered):
    """The longest time without a first token while somebody waits, moment by moment."""
    moments = sorted({*arrival, *delivered})
    longest, since = 0.0, None
    for now in moments:
        if since is not None:
            longest = max(longest, now - since)
        if now in delivered:
            since = None
        waits = sum(at <= now for at in arrival) > sum(at <= now for at in delivered)
        if since is None and waits:
            since = now
    return longest


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=12))
def test_stall_against_counting(requests):
    arrival = np.sort([float(at) for at, _ in requests])
    delivered = np.sort([at + float(took) for at, took in requests])
    assert watchdog.longest_stall(arrival, delivered) == stall_by_counting(arrival.tolist(), delivered.tolist())


def failing(faults):
    rows = watchdog.measure(faults=faults, instances=3, requests=200, version="", seed=0)
    return by_keys(rows, "polls", "multiple")


def test_without_faults_the_printed_multiple_is_silent():
    found = failing("none")
    assert found["on", 5]["alarms"] == found["off", 10]["alarms"] == 0
    assert found["on", 5]["ttft"] == found["on", 10]["ttft"], "a watchdog that never rings does nothing"
    assert all(values["twice"] == 0 for (_, multiple), values in found.items() if multiple >= 5)
    assert found["on", 2]["twice"] <= found["on", 2]["requeued"], "a false alarm costs work, and no more"


def test_what_polls_and_alarms_are_for():
    """Ends that get lost: polls make them good; without polls the watchdog does, the later the longer it waits."""
    found = failing("one end in ten lost")
    assert found["on", 5]["alarms"] < found["off", 5]["alarms"]
    assert found["off", 2]["ttft"] < found["off", 5]["ttft"] < found["off", 10]["ttft"]
    assert found["off", 10]["false_alarms"] == 0 < found["off", 10]["alarms"]


def test_who_is_cut_off_works_twice():
    for values in failing("one instance cut off").values():
        assert values["twice"] <= values["requeued"]
        assert values["requeued"] > 0
    for (_, multiple), values in failing("one instance crashes").items():
        assert values["requeued"] > 0
        assert multiple == 2 or values["twice"] == 0, "what crashed has forgotten it"


def test_a_dead_instance_gets_next_to_nothing():
    """One batch, if it was ready when it died; what it had is served by the others."""
    for (_, multiple), values in failing(watchdog.DEATH).items():
        assert values["came"] > 40
        assert values["to_dead"] <= 10 / values["came"]
        assert values["ttft_meanwhile"] < 1.5 + multiple


# What decodes.


@pytest.mark.parametrize("fixed", [0.010, 0.020, 0.040])
def test_alpha_makes_the_printed_gain(fixed):
    """With the printed worst loads the step is 15 % longer before than after, at any t0 that leaves room for alpha."""
    alpha, beta = decode.seconds_per_request(fixed), 26e-9
    before, after = (fixed + beta * tokens + alpha * tokens / 2500 for tokens in (150e3, 100e3))
    assert before / after == pytest.approx(1.15)
    assert alpha > 0
    assert decode.seconds_per_request(0.005) == 0


def small_run(policy):
    rng = np.random.default_rng(5)
    n = 400
    trace = Trace(prompt=rng.integers(1, 60, n), output=rng.integers(1, 40, n), arrival=np.cumsum(rng.random(n)))
    law = make_step_time("affine:fixed=0.04,per_token=0")
    setting = SimulationSetting(Fleet(4, 30), TraceTimes(0.3), step_time=law)
    return simulate(trace, policy, setting, seed=1, keep_loads=True)


def test_quantities_of_a_run_against_loops():
    """Requests, tokens and the time of every step, counted request by request."""
    run = small_run(make_policy("random"))
    window = measured(run)
    fixed, alpha, beta = 0.02, decode.seconds_per_request(0.02), 26e-9
    spread, steps, active = [], [], 0
    for step in range(window.first - 1, window.last):
        counts, tokens = [0] * 4, [0] * 4
        for r in range(len(run.trace)):
            begun = step - int(run.requests["start_step"][r])
            if 0 <= begun < run.trace.output[r]:
                g = int(run.requests["worker"][r])
                counts[g] += 1
                tokens[g] += int(run.trace.prompt[r]) + begun
        assert tokens == run.steps["barrier_loads"][step].tolist()
        spread.append(math.dist(tokens, [sum(tokens) / 4] * 4) / 2)
        steps.append(fixed + max(alpha * b + beta * k for b, k in zip(counts, tokens, strict=True)))
        active += sum(counts)
    found = decode.values_of(run)
    assert found["sd_tokens"] == pytest.approx(np.mean(spread))
    assert found["step_ms_20"] == pytest.approx(1e3 * np.mean(steps))
    assert found["throughput_20"] == pytest.approx(active / sum(steps))
    assert (decode.running(run).sum(axis=1) == run.steps["active"]).all()


@pytest.mark.jit
@pytest.mark.parametrize("name", decode.EXACT)
def test_exact_programs_live_in_the_simulator(name):
    """Everybody is placed as soon as he comes, and on four units next to nothing is left open."""
    run = small_run(make_policy(decode.spec_of(name)))
    assert (run.requests["start_step"] == run.requests["reveal_step"]).all()
    decided = sum(run.tally.values())
    assert decided > 50
    assert run.tally.get("open", 0) < 0.1 * decided


@pytest.mark.jit
def test_the_rules_are_held_against_each_baseline(monkeypatch):
    monkeypatch.setattr(decode, "RULES", (*decode.BASELINES, decode.THEIRS))
    rows = decode.measure(arrivals="one by one", requests=2000, version="", seed=0)
    found = by_keys(rows, "contender")
    assert found["iqr",]["sd_tokens"] < 0.8 * found["random",]["sd_tokens"]
    assert found["iqr",]["sd_over_random"] == found["iqr",]["sd_tokens"] / found["random",]["sd_tokens"]
    kept = Rows()
    kept.add(rows)
    asked = [one for one in questions() if one.item == "decode" and "one by one" in one.quantity]
    assert {one.against for one in asked} == set(decode.BASELINES)
    for one in asked:
        name = one.quantity.rpartition(" ")[0]
        column = f"throughput_{int(name.rpartition(' ')[2]):02d}" if one.printed.text == "+15" else "sd_tokens"
        expected = 100 * (found["iqr",][column] / found[one.against,][column] - 1)
        assert one.figure(kept) == pytest.approx(expected)


# What is cached.


def test_prefixes_are_resident_where_they_are_said_to_be():
    """On two units of each instance or nowhere, as long on each, and never the whole prompt."""
    length, hits = cache.cached_prompts(PLACES["short-3k"], 0.6, 3, 4000, seed=2)
    assert hits.shape == (4000, 3, UNITS)
    assert (hits < length[:, None, None]).all()
    longest = hits.max(axis=(1, 2))
    some = longest > 0
    assert some.mean() == pytest.approx(0.6, abs=0.03)
    assert ((hits[some] > 0).sum(axis=2) == cache.COPIES).all()
    assert np.isin(hits, [0]).sum() + (hits == longest[:, None, None])[some].sum() == hits.size
    assert (np.bincount(longest[some & (longest < length - 1)]) > 0).sum() <= cache.SYSTEMS


def test_who_looks_at_the_cache_hits_more():
    """By chance a request hits on 2 of 8 units; a rule that looks does so most of the time, and computes less."""
    rows = cache.measure(place="short-3k", shared=0.9, instances=3, requests=3000, version="", seed=0)
    found = by_keys(rows, "load", "allocation")
    for load in cache.LOADS:
        basic, mended = found[load, "basic"], found[load, "cache, mended"]
        assert basic["hit"] / basic["possible"] == pytest.approx(cache.COPIES / UNITS, abs=0.03)
        assert mended["hit"] > 0.6 * mended["possible"]
        assert mended["utilisation"] < basic["utilisation"]
        assert mended["ttft"] < basic["ttft"]
    for values in found.values():
        assert values["hit"] <= values["possible"]
        assert values["fullest_over_mean"] >= 1
