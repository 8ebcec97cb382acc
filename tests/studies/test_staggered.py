"""The staggering study: what it may be asked, its rows over seeds, the search for a rate, prompts, and exact laws."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies.staggered_answers import KNOWN, keys_of, made_up

import lbopt
from lbopt.exceptions import InputError
from lbopt.prefill import PassTime
from lbopt.studies.staggered import ITEMS, LATE, PLACES, Rows, StaggeredConfig, questions
from lbopt.studies.staggered.items import law
from lbopt.studies.staggered.places import AHEAD, JUDGED, SEEDS, TUNED, TUNING_SEED, UNITS, most_rate, prompts
from lbopt.studies.staggered.rows import averaged
from lbopt.studies.staggered.trial import NEAR, STEP, highest_rate


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"items": ("laod",)}, "unknown item 'laod': did you mean load?"),
        ({"places": ("short-4k",)}, "unknown place 'short-4k': did you mean short-5k or short-3k?"),
        ({"sending": "soon"}, "unknown sending 'soon': known: printed, ahead, both"),
        ({"instances": 0}, "instances is 0; expected 1 to 256"),
        ({"instances": 257}, "instances is 257; expected 1 to 256"),
        ({"requests": 499}, "requests is 499; expected at least 500"),
        ({"waits": 999}, "waits is 999; expected at least 1,000"),
        ({"seeds": 0}, "seeds is 0; expected at least 1"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
    ],
)
def test_what_cannot_be_asked(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        StaggeredConfig(**settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_asked_is_put_in_order() -> None:
    config = StaggeredConfig(items=("limit", "law"), places=("long-16k", "short-3k", "short-3k"), seeds=2, seed=7)
    assert (config.items, config.places, config.all_seeds) == (("law", "limit"), ("short-3k", "long-16k"), (7, 8))
    assert StaggeredConfig().items == tuple(ITEMS)
    json.dumps(config.to_dict())


@pytest.mark.parametrize("item", ITEMS)
def test_tasks_of_an_item(item: str) -> None:
    """One for each part and seed, seed by seed, none twice; the version is in each, so that a new one runs anew."""
    config = StaggeredConfig(seeds=2, seed=3)
    tasks = config.tasks(item)
    parts = list(ITEMS[item](config))
    assert [task.seed for task in tasks] == [3] * len(parts) + [4] * len(parts)
    assert len({task.key for task in tasks}) == len(tasks)
    assert {task.parameters["version"] for task in tasks} == {lbopt.__version__}
    module, name = tasks[0].function.split(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_tasks_follow_what_was_asked() -> None:
    config = StaggeredConfig(places=("short-5k",), instances=5, requests=600, waits=2000)
    assert {task.parameters["requests"] for task in config.tasks("law")} == {2000}
    assert {task.parameters["instances"] for task in config.tasks("law")} == set(law.FLEETS)
    for item in ("load", "limit", "split"):
        for task in config.tasks(item):
            given = task.parameters
            assert (given["place"], given["instances"], given["requests"]) == ("short-5k", 5, 600)
    assert config.tasks("fleet") == []  # which is asked of the shortest chunk alone


def test_readings_of_when_a_batch_is_sent() -> None:
    """As printed the tasks, keys and files are those of earlier versions; ahead and both ask of other rules."""
    printed, ahead, both = (StaggeredConfig(sending=of, seeds=1) for of in ("printed", "ahead", "both"))
    assert "sending" not in printed.to_dict() and StaggeredConfig.from_dict(printed.to_dict()) == printed
    assert StaggeredConfig.from_dict(both.to_dict()) == both
    for item in ("load", "fleet", "limit", "latency"):
        keys = [{task.key for task in config.tasks(item)} for config in (printed, ahead, both)]
        assert keys[0] | keys[1] == keys[2] and keys[0] != keys[1]
        assert all("rules" not in task.parameters for task in printed.tasks(item))
    asked = {of: {one.rule for one in questions(of) if one.item == "limit"} for of in ("printed", "ahead", "both")}
    assert asked["ahead"] == {"", *AHEAD} and asked["both"] == asked["printed"] | asked["ahead"]
    outcome = made_up("limit", "load", sending="ahead")
    assert {one.question.rule for one in outcome.judged()} == {"", *AHEAD}


def test_fleets_that_choices_were_made_on_are_not_those_of_the_verdict() -> None:
    assert set(TUNED).isdisjoint(JUDGED) and set(SEEDS).isdisjoint(range(TUNING_SEED, TUNING_SEED + 100))
    assert {(one.place.chunk, one.place.mean) for one in TUNED.values()}.isdisjoint(
        (one.place.chunk, one.place.mean) for one in JUDGED.values()
    )


@pytest.mark.jit
@pytest.mark.parametrize("item", KNOWN)
def test_rows_made_up_for_tests_are_those_of_the_item(item: str) -> None:
    """Keys in their order and quantities: what report tests go by must not drift from what is run."""
    config = StaggeredConfig(items=(item,), requests=500, waits=1000)
    task = min(config.tasks(item), key=lambda task: task.parameters.get("instances", 0))
    module, name = task.function.split(":")
    measured = getattr(importlib.import_module(module), name)(**task.parameters, seed=0)
    assert [list(keys) for keys, _ in measured] == [list(keys) for keys in keys_of(item, task.parameters)]
    assert [keys for keys, _ in measured] == keys_of(item, task.parameters)
    (one, *_) = made_up(item).rows[item][0]
    known = set(one[1])
    assert all(set(values) in (known, {"rate"}) for _, values in measured)
    assert json.loads(json.dumps(measured)) == [[keys, values] for keys, values in measured]  # as a store holds it


def rows(*these: tuple[dict[str, Any], dict[str, Any]]) -> Rows:
    found = Rows()
    found.add(these)
    return found


def test_a_value_is_that_of_exactly_these_keys() -> None:
    found = rows(({"place": "a", "contender": "jsq"}, {"ttft": 2.0, "rate": None}))
    found.add([({"contender": "pooled", "place": "a"}, {"ttft": 1.5})])
    assert found.value("ttft", contender="jsq", place="a") == 2.0
    assert found.value("ttft", contender="jsq") is None
    assert found.value("ttft", contender="jsq", place="a", load=1) is None
    assert found.value("rate", contender="jsq", place="a") is None
    assert found.change("ttft", "jsq", contender="pooled", place="a") == pytest.approx(-25.0)
    assert found.change("rate", "jsq", contender="pooled", place="a") is None
    assert found.change("ttft", "random", contender="pooled", place="a") is None


def test_nothing_changes_against_nothing() -> None:
    found = rows(({"contender": "jsq"}, {"wait": 0.0}), ({"contender": "pooled"}, {"wait": 1.0}))
    assert found.change("wait", "jsq", contender="pooled") is None


def test_rows_over_seeds() -> None:
    """A quantity is averaged over the seeds that have it, whichever seed has it first."""
    seeds = [
        rows(({"at": 1}, {"rate": None})),
        rows(({"at": 2}, {"rate": 5.0}), ({"at": 1}, {"rate": 2.0, "ttft": 0.5})),
        rows(({"at": 1}, {"rate": 4.0, "ttft": 0.7})),
    ]
    first, second = averaged(seeds)
    assert (first.keys, second.keys) == ({"at": 1}, {"at": 2})
    assert first.seeds == {"rate": 2, "ttft": 2}
    rate, ttft = first.values["rate"], first.values["ttft"]
    assert rate is not None and ttft is not None and rate.low is not None and rate.high is not None
    assert (rate.mean, ttft.mean) == (3.0, pytest.approx(0.6))
    half = 12.7062 * math.sqrt(2.0 / 2)  # Student with one degree of freedom; variance 2 over two seeds
    assert (rate.low, rate.high) == (pytest.approx(3 - half, rel=1e-4), pytest.approx(3 + half, rel=1e-4))
    alone = second.values["rate"]
    assert alone is not None and alone.low is None
    assert averaged([rows(({"at": 1}, {"rate": None}))])[0].values == {"rate": None}


def at_rate(ttft: Callable[[float], float]) -> Callable[[float], Any]:
    return lambda rate: SimpleNamespace(first_token_mean_seconds=ttft(rate), rate=rate)


@pytest.mark.parametrize(
    ("ttft", "expected"),
    [
        (lambda rate: rate / 100, 50.0),
        (lambda rate: 0.1, 125.0),  # never too slow: as far as it was to look
        (lambda rate: 0.1 if rate < 5.0001 else math.inf, 5.0),
        (lambda rate: 0.1 if rate < 60 else math.nan, 60.0),  # nothing measured keeps no limit
        (lambda rate: 1.0 if 30 <= rate <= 40 else 0.1, 30.0),  # too slow there, and well again above it
        (lambda rate: 1.0 - rate / 200 if rate > 20 else 0.3, 20.0),  # falls from 0.9: the first crossing counts
    ],
)
def test_the_highest_rate(ttft: Callable[[float], float], expected: float) -> None:
    found = highest_rate(at_rate(ttft), 0.5, 5.0, 125.0)
    assert found is not None
    rate, metrics = found
    assert expected * (1 - 2 * NEAR) <= rate <= expected * (1 + 1e-9)
    assert metrics.rate == rate, "what is told is of another rate"
    assert metrics.first_token_mean_seconds <= 0.5


def test_no_rate_is_low_enough() -> None:
    assert highest_rate(at_rate(lambda rate: 1.0), 0.5, 5.0, 125.0) is None
    assert highest_rate(at_rate(lambda rate: math.nan), 0.5, 5.0, 125.0) is None


@given(st.floats(1.0, 100.0), st.floats(0.01, 0.9))
def test_every_step_below_the_highest_rate_keeps_the_limit(limit: float, dip: float) -> None:
    """Whatever the function: each step that was climbed was looked at, and the next one exceeds the limit."""
    seen: dict[float, float] = {}

    def ttft(rate: float) -> float:
        seen[rate] = rate + 40 * dip * math.sin(rate / 7)  # goes up and down
        return seen[rate]

    found = highest_rate(at_rate(ttft), limit, 1.0, 200.0)
    if found is None:
        assert ttft(1.0) > limit
        return
    rate, _ = found
    assert all(value <= limit for at, value in seen.items() if at <= rate)
    beyond = [at for at, value in seen.items() if value > limit]
    assert rate == 200.0 or min(beyond) <= rate * (1 + NEAR) * (1 + 1e-9)
    climbed = sorted(at for at in seen if at <= rate)
    assert all(b / a <= STEP * (1 + 1e-9) for a, b in pairwise(climbed))


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_prompts_have_the_published_mean_and_range(name: str, spread: float) -> None:
    place = PLACES[name]
    drawn = prompts(place, 200_000, seed=1, spread=spread)
    assert drawn.mean() == pytest.approx(place.mean, rel=0.01)
    assert drawn.min() >= place.shortest
    assert drawn.max() <= place.longest
    assert drawn.std() > 0.2 * place.mean
    np.testing.assert_array_equal(drawn, prompts(place, 200_000, seed=1, spread=spread))
    assert (drawn != prompts(place, 200_000, seed=2, spread=spread)).any()


def test_prompts_without_spread_are_all_alike() -> None:
    assert set(prompts(PLACES["long-16k"], 100, seed=0, spread=0.0)) == {6700}


def test_full_passes_saturate() -> None:
    """One pass of eight full chunks of 3072 tokens takes 0.0943 s + 3072 * 0.0801 ms."""
    place = PLACES["short-3k"]
    assert most_rate(place, PassTime()) == pytest.approx(8 * 3072 / 1000 / (0.0943 + 3072 * 80.1e-6))
    assert UNITS == 8


@pytest.mark.parametrize(
    ("policy", "load", "instances", "wait"),
    [
        ("random", 0.05, 10, 0.0250),
        ("random", 0.5, 1, 0.2259),
        ("random", 2.0, 32, 0.4683),
        ("random", 8.0, 10, 0.5000),
        ("spacing", 0.05, 10, 0.0025),
        ("spacing", 0.5, 10, 0.0226),
        ("spacing", 2.0, 10, 0.0468),
        ("spacing", 8.0, 10, 0.0500),
        ("tick", 0.05, 10, 0.0500),
        ("tick", 8.0, 4, 0.1250),
    ],
)
def test_the_exact_waiting_law(policy: str, load: float, instances: int, wait: float) -> None:
    assert law.expected(policy, load, instances) == pytest.approx(wait, abs=5.1e-5)


@pytest.mark.parametrize("policy", ["round-robin", "jsq", "pooled", "spacing-bypass"])
def test_of_other_policies_nothing_is_known_exactly(policy: str) -> None:
    assert law.expected(policy, 1.0, 4) is None


@pytest.mark.jit
def test_runs_keep_the_exact_law() -> None:
    found = law.measure(instances=4, requests=40_000, version="0", seed=2)
    known = [(values["wait"], values["expected"]) for _, values in found if values["expected"] is not None]
    assert len(known) == 3 * len(law.LOADS)
    for wait, expected in known:
        assert wait == pytest.approx(expected, rel=0.08)  # at 0.05 requests a pass few wait at all


def test_late_rules_are_none_of_the_baselines() -> None:
    assert {"random", "round-robin", "jsq", "jsq-tokens"}.isdisjoint(LATE)
