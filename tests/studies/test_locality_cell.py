"""One world of the locality study: same requests for all rules, other prompts to learn from, and who is counted."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lbopt.hardware import ExpertStepTime
from lbopt.instances.families.experts import expert_workload
from lbopt.locality import ExpertActivity, expected_union
from lbopt.model import Fleet
from lbopt.simulator import SimulationSetting, TraceTimes, simulate, simulate_decoders
from lbopt.studies.locality import PlannedRun, cell, eldr_at

SECONDS, WARM_UP, PROMPTS, SEED = 6.0, 2.0, 100, 3


def law(workload="task"):
    given = expert_workload(f"moe-{workload}")
    return replace(given, shape=replace(given.shape, num_layers=2))


@pytest.fixture(scope="module")
def world():
    return cell._World(law(), SEED, PROMPTS, SECONDS, 60.0)


def test_a_rate_moves_the_same_requests_nearer_together(world):
    slow, fast = world.requests(20.0), world.requests(60.0)
    assert 20 * SECONDS * 0.5 < len(slow) < len(fast) and fast.arrival[-1] < SECONDS
    n = len(slow)
    assert np.allclose(slow.arrival, 3 * fast.arrival[:n], atol=1e-9)
    assert (slow.prompt == fast.prompt[:n]).all() and (slow.experts.profile == fast.experts.profile[:n]).all()
    assert len(fast) / SECONDS == pytest.approx(60, rel=0.2)


def test_tables_are_fitted_to_other_prompts_of_the_same_world(world):
    live, learned = cell._experts(world.requests(60.0)), world.experts
    assert not {row.tobytes() for row in live.chosen} & {row.tobytes() for row in learned.chosen}
    # of one world: the same experts are busy
    busy = [experts.chosen.sum(axis=0).ravel() for experts in (live, learned)]
    assert np.corrcoef(*busy)[0, 1] > 0.9


@pytest.mark.parametrize("fleet", ["decoders", "barrier"])
@pytest.mark.parametrize("policy", ["round-robin", "eldr"])
def test_who_is_counted(world, fleet, policy):
    run = PlannedRun(fleet, 4, 60.0, policy)
    found = cell._run(run, world, WARM_UP)
    trace, rule = world.requests(60.0), cell._router(run, world)
    setting = SimulationSetting(Fleet(4, cell.SLOTS), TraceTimes(), step_time=ExpertStepTime.of_eldr())
    late = trace.arrival >= WARM_UP
    assert 0 < late.sum() < len(trace)
    more = {"seed": SEED, "training": world.training}
    if fleet == "decoders":
        whole = simulate_decoders(trace, rule, setting, **more)
        part = simulate_decoders(trace, rule, setting, **more, window=(WARM_UP, trace.arrival[-1]))
        tpot, experts = (whole.finish - whole.start) / 512, part.experts.sum() / part.steps.sum()
        running = part.running.sum() / part.steps.sum()
        assert part.steps.sum() < whole.steps.sum()
    else:
        whole = simulate(trace, rule, setting, **more)
        tpot = (whole.requests["finish_clock"] - whole.requests["start_clock"]) / 512
        rows = [r for r, t in enumerate(whole.steps["clock"]) if WARM_UP <= t < trace.arrival[-1]]
        experts, running = whole.steps["experts"][rows].mean(), whole.steps["active"][rows].mean() / 4
        loads = simulate(trace, rule, setting, **more, keep_loads=True).steps["barrier_loads"][rows]
        assert found["busiest_over_mean"] == pytest.approx(np.mean([max(one) / np.mean(one) for one in loads]))
    assert found["p50"] == pytest.approx(np.median(tpot[late]))
    assert found["p99"] == pytest.approx(np.quantile(tpot[late], 0.99))
    assert found["experts"] == pytest.approx(experts) and found["running"] == pytest.approx(running)
    assert found["busiest_over_mean"] >= 1


def test_rules_of_a_world_are_what_their_names_say(world):
    rules = {name: cell._router(PlannedRun("decoders", 4, 60.0, name), world) for name in ("jsq", eldr_at(0.3))}
    assert rules["jsq"].name == "jsq" and rules[eldr_at(0.3)].name == "eldr:tau=0.3"
    table = cell._router(PlannedRun("decoders", 4, 60.0, eldr_at(0.1, "vanilla", "gate-prob")), world).guide.table
    assert table.transform == "gate-prob" and table.num_workers == 4
    sizes = [np.bincount(world.fit("count-idf").for_workers(4, balanced=b).labels) for b in (True, False)]
    assert sizes[0].max() == 25 < sizes[1].max()


def activity(decode, domain):
    decode = np.asarray(decode, dtype=np.float64)
    return ExpertActivity((decode * 8).astype(np.int64), None, None, decode, np.asarray(domain))


def test_fewer_experts_in_a_batch_of_one_domain():
    # domain d uses expert d alone: a batch of one domain uses one expert, any mixed batch of 3 of 2 + 2 prompts two
    decode = np.eye(2)[[0, 0, 1, 1]][:, np.newaxis, :]
    assert cell._fewer(activity(decode, [0, 0, 1, 1]), 2, np.random.default_rng(0)) > 0
    assert cell._fewer(activity(decode, [0, 0, 1, 1]), 3, np.random.default_rng(0)) is None
    one = np.repeat(decode[:1], 5, axis=0)
    assert cell._fewer(activity(one, [0] * 5), 3, np.random.default_rng(0)) == 0
    assert expected_union(decode).tolist() == [2]
    decode = np.eye(3)[[0, 0, 0, 1, 2, 2]][:, np.newaxis, :]  # one domain of three prompts: no other is large enough
    share = cell._fewer(activity(decode, [0, 0, 0, 1, 2, 2]), 3, np.random.default_rng(0))
    mixed = (1 * 1 + 2 * 13 + 3 * 6) / 20  # of 20 triples one is of one domain, and six are of three
    assert share == pytest.approx(1 - 1 / mixed, abs=0.08)


def test_the_answer_of_a_world():
    runs = [PlannedRun("decoders", 4, 60.0, name).key for name in ("round-robin", "eldr")]
    asked = {"workload": "task", "runs": runs, "seconds": SECONDS, "warm_up": WARM_UP, "prompts": PROMPTS, "layers": 2}
    answer = cell.measure(**asked, signatures=True, version="any", seed=SEED)
    assert answer == cell.measure(**asked, signatures=True, version="other", seed=SEED)
    assert list(answer["runs"]) == runs
    assert answer["runs"][runs[1]]["experts"] < answer["runs"][runs[0]]["experts"]
    told = answer["signatures"]
    assert set(told["rho"]) == {"count", "count-idf", "sqrt-count", "binary", "gate-prob"}
    assert 1 <= told["kept"] <= told["layers"] == 2
    bands = [told["bands"][f"{width:g}"] for width in cell.WIDTHS_OF_BANDS]
    assert bands == sorted(bands) and bands[0] >= 1
    assert told["fewer"]["128"] is None and 0 < told["fewer"]["32"] < 1
    assert not any(math.isnan(value) for value in answer["runs"][runs[0]].values())
    more = cell.measure(
        **{**asked, "runs": [], "layers": 5, "workload": "language"}, signatures=True, version="", seed=0
    )
    assert more["signatures"]["kept"] < 5 and 0 < more["signatures"]["mask_gain"] < 0.1
