"""The locality study: what it may be asked, the runs of every question, and a world as it is run."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies.locality_answers import answer_of, made_up

from lbopt.exceptions import InputError
from lbopt.instances.families.experts import expert_workload
from lbopt.policies import make_policy
from lbopt.studies.locality import (
    BALANCERS,
    ITEMS,
    WORKLOADS,
    LocalityConfig,
    LocalityOutcome,
    PlannedRun,
    cell,
    eldr_at,
    questions,
)
from lbopt.studies.locality.laws import GRID, MODELS, with_constants
from lbopt.studies.locality.plan import CACHE_LAWS, FLEETS, USUAL_ITEMS, plan_of
from lbopt.studies.locality.questions import change

RATES = [(20.0, 40.0, 60.0, 80.0, 100.0), (60.0,), (25.0,), (12.5, 1000 / 3)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"items": ("routrs",)}, "unknown item 'routrs': did you mean routers?"),
        ({"workloads": ("tsk",)}, "unknown workload 'tsk': did you mean task?"),
        ({"rates": (60.0, 0.0)}, "rates are 0.0, 60.0; expected requests a second"),
        ({"rates": (math.nan,)}, "rates are nan"),
        ({"rates": ()}, "rates are none"),
        ({"warm_up": 120.0}, "the warm-up takes 120 s of 120 s; expected less than all"),
        ({"warm_up": -1.0}, "the warm-up takes -1 s of 120 s"),
        ({"seconds": math.inf}, "the warm-up takes 30 s of inf s"),
        ({"prompts": 99}, "prompts is 99; expected at least 100"),
        ({"seeds": 0}, "seeds is 0; expected at least 1"),
        ({"layers": 0}, "layers is 0; expected at least 1"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
    ],
)
def test_what_cannot_be_asked(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        LocalityConfig(**settings)
    assert said in str(caught.value)


def test_what_is_asked_is_put_in_order() -> None:
    config = LocalityConfig(items=("pool", "band"), workloads=("task", "task"), rates=(60, 20, 60), seeds=2, seed=7)
    assert config.items == ("band", "pool")
    assert (config.workloads, config.rates, config.all_seeds) == (("task",), (20.0, 60.0), (7, 8))
    assert LocalityConfig().items == USUAL_ITEMS == tuple(ITEMS)[: len(USUAL_ITEMS)]


@pytest.mark.parametrize("rates", RATES)
def test_every_question_is_answered_by_the_runs_of_its_item(rates: tuple[float, ...]) -> None:
    """Each question is answered from a world with the runs of its item alone."""
    for asked in questions():
        config = LocalityConfig(items=(asked.item,), rates=rates)
        value = asked.figure(answer_of(config, 3), config.rates)
        assert value is not None, asked
        assert math.isfinite(value)


@pytest.mark.parametrize("rates", RATES)
def test_every_question_of_a_whole_study_is_judged(rates: tuple[float, ...]) -> None:
    outcome = made_up(*ITEMS, rates=rates)
    assert [judged.question.quantity for judged in outcome.judged()] == [asked.quantity for asked in questions()]
    assert all(len(judged.values) == 3 for judged in outcome.judged())


def test_questions_have_a_name_of_their_own_and_a_range() -> None:
    names = [(asked.item, asked.workload, asked.quantity) for asked in questions()]
    assert len(set(names)) == len(names)
    for asked in questions():
        assert asked.item in ITEMS
        assert asked.workload in WORKLOADS
        assert asked.printed.low < asked.printed.high
        assert asked.printed.text
        assert asked.printed.place
        assert asked.printed.why


def test_no_figure_of_ours_is_counted_twice() -> None:
    """Answers that are all different: two counted questions with the same values would be one figure."""
    judged = [one for one in made_up(*ITEMS).judged() if one.question.item != "signatures"]
    same: dict[tuple[str, tuple[float, ...]], list[str]] = {}
    for one in judged:
        same.setdefault((one.question.workload, one.values), []).append(one.question.repeats)
    assert all(found.count("") == 1 for found in same.values())
    assert [found for found in same.values() if len(found) > 1] == [["", "band"]] * 4


def test_a_question_about_another_item_is_not_asked() -> None:
    assert {judged.question.item for judged in made_up("band", "clusters").judged()} == {"band", "clusters"}
    assert made_up("barrier").judged() == []


@given(
    st.sampled_from(FLEETS),
    st.integers(1, 500),
    st.integers(1, 8000).map(lambda quarters: quarters / 4),
    st.builds(eldr_at, st.sampled_from([0.0, 0.05, 0.1, 1.0]), st.sampled_from(["balanced", "vanilla"])),
    st.sampled_from(["", *MODELS, *CACHE_LAWS.values(), *(with_constants(*pair) for pair in GRID)]),
)
def test_a_run_is_read_back_from_its_key(fleet: str, workers: int, rate: float, policy: str, law: str) -> None:
    run = PlannedRun(fleet, workers, rate, policy, law)
    assert PlannedRun.of_key(run.key) == run


@given(st.floats(1e-3, 1e6, exclude_max=True))
def test_a_key_is_the_key_of_what_it_is_read_as(rate: float) -> None:
    """A rate of many digits is rounded once, and then stays: answers are found under the keys that were asked."""
    run = PlannedRun("decoders", 16, rate, "jsq")
    assert PlannedRun.of_key(run.key).key == run.key


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_plans_rules_that_exist_each_once(item: str) -> None:
    runs = plan_of((item,), (20.0, 60.0))
    assert len({run.key for run in runs}) == len(runs)
    for run in runs:
        assert make_policy(run.policy).admission == "immediate"
        assert replace(run, policy="round-robin") in runs, "nothing to compare it with"


def test_runs_of_two_items_are_made_once() -> None:
    band, clusters = (set(plan_of((item,), (60.0,))) for item in ("band", "clusters"))
    assert band & clusters
    assert len(plan_of(("band", "clusters"), (60.0,))) == len(band | clusters)


def test_names_of_eldr() -> None:
    assert eldr_at(0.1) == "eldr"
    assert eldr_at(0.0) == "eldr:tau=0"
    assert eldr_at(0.1, "vanilla") == "eldr:clusters=vanilla"
    assert eldr_at(0.3, "vanilla", "gate-prob") == "eldr:tau=0.3,clusters=vanilla,transform=gate-prob"


def answer_with(**p50: float) -> dict[str, Any]:
    """A world in which only these rules ran, at 60 requests/s."""
    names = {name.replace("_", "-"): value for name, value in p50.items()}
    return {"runs": {PlannedRun("decoders", 16, 60.0, name).key: {"p50": value} for name, value in names.items()}}


def test_the_best_balancer_is_the_one_with_the_least_time() -> None:
    answer = answer_with(round_robin=10.0, random=12.0, power_of_two=9.0, jsq=8.0, eldr=6.0)
    (asked,) = (
        one for one in questions() if (one.workload, one.quantity) == ("task", "P50 of eldr against the best balancer")
    )
    assert asked.figure(answer, (60.0,)) == pytest.approx(-25.0)
    for name in BALANCERS:
        less = {key: value for key, value in answer["runs"].items() if not key.endswith(f" {name}")}
        assert asked.figure({"runs": less}, (60.0,)) is None


def test_a_change_is_of_the_same_world() -> None:
    """The mean of the changes of worlds, which is not the change of the means."""
    worlds = [answer_with(round_robin=10.0, eldr=5.0), answer_with(round_robin=2.0, eldr=2.0)]
    run = PlannedRun("decoders", 16, 60.0, "eldr")
    assert [change(world, run, "p50") for world in worlds] == pytest.approx([-50.0, 0.0])
    outcome = LocalityOutcome(LocalityConfig(items=("band",)), {"task": worlds})
    found = outcome.change("task", run, "p50")
    assert found is not None
    assert found.mean == pytest.approx(-25.0)
    mean = outcome.mean("task", run, "p50")
    assert mean is not None
    assert mean.mean == pytest.approx(3.5)
    assert outcome.change("language", run, "p50") is None
    assert outcome.change("task", PlannedRun("decoders", 8, 60.0, "eldr"), "p50") is None


TINY = {"seconds": 6.0, "warm_up": 2.0, "prompts": 120, "layers": 2, "version": "0", "seed": 5}


def tiny(workload: str, *runs: PlannedRun, signatures: bool = False) -> dict[str, Any]:
    law = asdict(expert_workload(f"moe-{workload}").law)
    return cell.measure(workload=workload, law=law, runs=[run.key for run in runs], signatures=signatures, **TINY)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """What the simulations of a world were given: requests, and requests to learn from."""
    seen: list[tuple[Any, Any]] = []

    def watched(simulation: Any) -> Any:
        def run(trace: Any, *positional: Any, training: Any = None, **named: Any) -> Any:
            seen.append((trace, training))
            return simulation(trace, *positional, training=training, **named)

        return run

    for name in ("simulate", "simulate_decoders"):
        monkeypatch.setattr(cell, name, watched(getattr(cell, name)))
    return seen


@pytest.mark.jit
def test_all_rules_of_a_world_get_the_same_requests(traces: list[tuple[Any, Any]]) -> None:
    runs = [
        PlannedRun(fleet, workers, rate, policy)
        for fleet, workers in (("decoders", 16), ("decoders", 8), ("barrier", 16))
        for rate in (20.0, 30.0)
        for policy in ("round-robin", "eldr", "domain")
    ]
    tiny("task", *runs)
    assert len(traces) == len(runs)
    of_rate = {run.rate: trace for run, (trace, _) in zip(runs, traces, strict=True)}
    for run, (trace, training) in zip(runs, traces, strict=True):
        assert trace.digest == of_rate[run.rate].digest
        assert training.digest == traces[0][1].digest
    slow, fast = of_rate[20.0], of_rate[30.0]  # the same prompts in the same order, nearer together
    count = len(slow)
    assert count < len(fast)
    np.testing.assert_array_equal(fast.prompt[:count], slow.prompt)
    np.testing.assert_array_equal(fast.experts.profile[:count], slow.experts.profile)
    np.testing.assert_allclose(fast.arrival[:count] * 1.5, slow.arrival)
    assert TINY["seconds"] < slow.arrival[-1] < TINY["seconds"] + cell.COOL_DOWN
    training = traces[0][1]  # tables are fitted to other prompts, in the same gates
    assert not (training.experts.chosen[:, None] == slow.experts.chosen[None]).all(axis=(2, 3)).any()


@pytest.mark.more
@pytest.mark.jit
def test_the_widest_band_spreads_as_evenly_as_the_shortest_queue() -> None:
    names = ("round-robin", "jsq", eldr_at(0.0), eldr_at(1.0))
    runs = {name: PlannedRun("decoders", 8, 60.0, name) for name in names}
    found = {name: tiny("task", *runs.values())["runs"][run.key] for name, run in runs.items()}
    nearest, widest, shortest = found[eldr_at(0.0)], found[eldr_at(1.0)], found["jsq"]
    assert widest["busiest_over_mean"] == pytest.approx(shortest["busiest_over_mean"], rel=0.05)
    assert widest["p99"] == pytest.approx(shortest["p99"], rel=0.05)
    assert nearest["busiest_over_mean"] > 1.2 * widest["busiest_over_mean"]
    assert nearest["experts"] < widest["experts"] < 1.02 * shortest["experts"]
    for values in found.values():
        assert 0 < values["p50"] <= values["p99"]
        assert values["busiest_over_mean"] >= 1


@pytest.mark.jit
def test_signatures_of_a_world() -> None:
    run = PlannedRun("decoders", 16, 60.0, "round-robin")
    found = tiny("task", run, signatures=True)["signatures"]
    assert set(found["rho"]) == {"count", "count-idf", "sqrt-count", "binary", "gate-prob"}
    assert all(-1 <= value <= 1 for value in found["rho"].values())
    assert 1 <= found["kept"] <= found["layers"] == TINY["layers"]
    assert found["mask_gain"] >= 0
    assert found["fewer"]["128"] is None, "120 prompts have no domain of 128"
    assert 0 < found["fewer"]["32"] < 1
    widths = sorted(found["bands"], key=float)
    sizes = [found["bands"][width] for width in widths]
    assert sizes == sorted(sizes)
    assert 1 <= sizes[0] <= sizes[-1] <= 16
    assert tiny("task", run)["signatures"] == {}


@pytest.mark.jit
def test_a_world_follows_from_its_seed() -> None:
    runs = [PlannedRun("decoders", 16, 20.0, name) for name in ("random", "eldr")]
    assert tiny("language", *runs) == tiny("language", *runs)
