"""Step times of the locality study: the range of the assumed constants, the other models, and a prefill ahead."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hardware import ExpertStepTime
from lbopt.instances.families.experts import expert_workload
from lbopt.studies.locality import LocalityConfig, LocalityOutcome, PlannedRun, cell, questions
from lbopt.studies.locality.laws import GRID, MODELS, OTHER_SECONDS, SECONDS_PER_REQUEST, law_of, with_constants
from lbopt.studies.locality.plan import BALANCERS, CACHE_LAWS, CACHE_RATE, CONSTANTS, WORKERS
from lbopt.studies.locality.questions import at_laws, change

DEFAULT = ExpertStepTime.of_eldr()


def test_other_constants_change_the_law_in_these_alone() -> None:
    assert law_of("").step == DEFAULT
    assert with_constants(DEFAULT.other_seconds, DEFAULT.seconds_per_request) == ""
    for other, request in GRID:
        name = with_constants(other, request)
        assert " " not in name, "a key of a run has one word for it"
        step = law_of(name).step
        assert (step.other_seconds, step.seconds_per_request) == (pytest.approx(other), pytest.approx(request))
        kept = replace(step, other_seconds=DEFAULT.other_seconds, seconds_per_request=DEFAULT.seconds_per_request)
        assert kept == DEFAULT
    assert len({with_constants(*pair) for pair in GRID}) == len(GRID) == len(OTHER_SECONDS) * len(SECONDS_PER_REQUEST)
    assert OTHER_SECONDS[0] < DEFAULT.other_seconds < OTHER_SECONDS[1]
    assert SECONDS_PER_REQUEST[0] < DEFAULT.seconds_per_request < SECONDS_PER_REQUEST[-1]


def test_models_by_hand() -> None:
    """Bytes of an expert at 3.71 TB/s; the fixed part of a layer is that of 14.27 experts where it is not another's."""
    rate = 3.71e12
    for name, numbers, size, layers in (
        ("gpt-oss", 3 * 2880 * 2880, 0.53125, 36),
        ("gemma", 3 * 2816 * 704, 2, 30),
        ("qwen-235b", 3 * 4096 * 1536, 2 / 4 * 1.09, 94),
    ):
        step = law_of(name).step
        assert step.seconds_per_expert == pytest.approx(numbers * size / rate)
        assert step.layers == layers
        assert step.experts_per_token == law_of(name).experts_per_token
        if name != "qwen-235b":
            assert step.layer_seconds / step.seconds_per_expert == pytest.approx(14.27027, abs=1e-5)
    assert law_of("qwen-235b").step.layer_seconds == DEFAULT.layer_seconds
    assert law_of("gpt-oss+prefill") == law_of("gpt-oss")


def test_measured_constants_may_follow() -> None:
    step = law_of("other=2ms,request=5us,layer=15us,expert=3us,token=33ns").step
    assert (step.other_seconds, step.seconds_per_request) == (pytest.approx(2e-3), pytest.approx(5e-6))
    assert (step.layer_seconds, step.seconds_per_expert) == (pytest.approx(15e-6), pytest.approx(3e-6))
    assert step.seconds_per_token == pytest.approx(33e-9)
    assert (step.layers, step.experts_per_token) == (DEFAULT.layers, DEFAULT.experts_per_token)
    assert law_of("other=2ms,request=5us,expert=3us").step.layer_seconds == DEFAULT.layer_seconds
    other = law_of("gpt-oss,other=2ms,request=5us")
    assert replace(other, step=MODELS["gpt-oss"].step) == MODELS["gpt-oss"], "the gate and all else are the model's"
    assert other.step.seconds_per_expert == MODELS["gpt-oss"].step.seconds_per_expert
    assert other.step.other_seconds == pytest.approx(2e-3)
    with pytest.raises(InputError, match=r"step time 'other=-1ms,request=5us': "):
        law_of("other=-1ms,request=5us")


@pytest.mark.parametrize(
    "name",
    [
        "gpt",
        "other=6ms",
        "other=6s,request=50us",
        "other=xms,request=1us",
        "other=6ms,request=1us,head=2us",
        "gpt-oss,other=1ms",
    ],
)
def test_a_law_that_nobody_knows(name: str) -> None:
    with pytest.raises(
        InputError, match=r"no step time is called .*; expected other=6ms,request=50us, or one of gpt-oss"
    ):
        law_of(name)


def world_of(changes: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """A world in which eldr's P50 and P99 exceed all balancers' by these percentages, by the name of the law."""
    runs = {}
    for law, (p50, p99) in changes.items():
        for policy in (*BALANCERS, "eldr"):
            factors = (1 + p50 / 100, 1 + p99 / 100) if policy == "eldr" else (1.0, 1.0)
            run = PlannedRun("decoders", WORKERS, 60.0, policy, law)
            runs[run.key] = {"p50": 0.02 * factors[0], "p99": 0.03 * factors[1]}
    return {"runs": runs, "signatures": {}}


def test_the_assumed_constants_are_given_step_times() -> None:
    """P50 is −8 everywhere; the sign of P99 turns at 4.5 ms, whatever a request takes."""
    pairs = {with_constants(*pair): pair for pair in ((DEFAULT.other_seconds, DEFAULT.seconds_per_request), *GRID)}
    assert tuple(pairs) == CONSTANTS
    percent = {law: (-8.0, 1e3 * other - 4.5) for law, (other, _) in pairs.items()}
    worlds = [world_of({law: (p50 + e, p99 + e) for law, (p50, p99) in percent.items()}) for e in (-0.05, 0.05)]
    found = LocalityOutcome(LocalityConfig(items=("constants",), rates=(60.0,)), {"task": worlds}).at_laws()
    assert len(found) == 2 * len(pairs), "language has no worlds"
    p50, p99 = found[: len(pairs)], found[len(pairs) :]
    assert {one.judged.verdict for one in p50} == {"agrees"}
    assert [(one.law, one.judged.ours.mean) for one in p99] == [(law, pytest.approx(percent[law][1])) for law in pairs]


def test_statements_under_step_times_that_are_given() -> None:
    names = ("other=2ms,request=5us", "gpt-oss,other=2ms,request=5us")
    worlds = [world_of({"": (-1.0, -1.0), names[0]: (-8 + e, -4 + e), names[1]: (-3 + e, 2 + e)}) for e in (-0.1, 0.1)]
    found = at_laws(questions(), {"task": worlds}, (60.0,), names)
    assert [(one.law, one.judged.question.quantity[:3]) for one in found] == [
        (names[0], "P50"),
        (names[1], "P50"),
        (names[0], "P99"),
        (names[1], "P99"),
    ]
    assert [one.judged.ours.mean for one in found] == pytest.approx([-8, -3, -4, 2])
    assert at_laws(questions(), {"task": worlds}, (60.0,), ("other=3ms,request=5us",)) == []
    assert at_laws(questions(), {"task": worlds}, (60.0,), ()) == []


def test_given_step_times_are_run_at_all_rates_and_kept_out_of_old_files() -> None:
    name = "other=2ms,request=5us"
    config = LocalityConfig(items=("band",), rates=(20.0, 60.0), laws=(name, name))
    plain = LocalityConfig(items=("band",), rates=(20.0, 60.0))
    more = set(config.runs) - set(plain.runs)
    assert config.laws == (name,)
    assert len(more) == 2 * (len(BALANCERS) + 1)
    assert {run.law for run in more} == {name}
    assert all(PlannedRun.of_key(run.key) == run for run in config.runs)
    assert "laws" not in plain.to_dict()
    assert LocalityConfig.from_dict(plain.to_dict()) == plain
    assert LocalityConfig.from_dict(config.to_dict()) == config
    for wrong in ("", "other=2ms, request=5us", "mistral"):
        with pytest.raises(InputError):
            LocalityConfig(laws=(wrong,))


SECONDS, WARM_UP, PROMPTS, SEED = 6.0, 2.0, 100, 3


@pytest.fixture(scope="module")
def world() -> cell._World:
    given = expert_workload("moe-task")
    return cell._World(replace(given, shape=replace(given.shape, num_layers=2)), SEED, PROMPTS, SECONDS, 60.0)


def test_a_prefill_delays_each_request_by_its_queue_and_its_prompt(world: cell._World) -> None:
    came, ready = world.requests(60.0), world.prefilled(60.0)
    free = [0.0] * cell.PREFILL_WORKERS
    wanted = []
    for time, tokens in zip(came.arrival, came.prompt, strict=True):
        at = min(range(len(free)), key=free.__getitem__)
        free[at] = max(time, free[at]) + 16.5e-3 + 25e-6 * tokens
        wanted.append(free[at])
    wanted = [at - min(wanted) for at in wanted]  # a trace begins with its first request
    np.testing.assert_allclose(ready.arrival, np.sort(wanted), atol=1e-9)
    order = np.argsort(wanted, kind="stable")
    np.testing.assert_array_equal(ready.prompt, came.prompt[order])
    np.testing.assert_array_equal(ready.experts.profile, came.experts.profile[order])
    assert (np.diff(ready.arrival) >= 0).all()


@pytest.mark.jit
def test_a_run_takes_the_step_time_of_its_law() -> None:
    """A slower step for the same requests; four experts a token are fewer; no wait is longer than a step."""
    laws = ("", with_constants(12e-3, 100e-6), "gpt-oss", *CACHE_LAWS.values())
    runs = {law: PlannedRun("decoders", 4, 40.0, "eldr", law) for law in laws}
    asked = {"seconds": SECONDS, "warm_up": WARM_UP, "prompts": PROMPTS, "layers": 2, "version": "0", "seed": SEED}
    law = asdict(expert_workload("moe-task").law)
    keys = [run.key for run in runs.values()]
    found = cell.measure(workload="task", law=law, runs=keys, signatures=False, **asked)["runs"]
    usual, slow, four = (found[runs[name].key] for name in laws[:3])
    assert slow["p50"] > usual["p50"] + 6e-3
    assert four["experts"] < 0.8 * usual["experts"]
    for one in found.values():
        assert 0 < one["wait"] < one["p99"] + 1e-3
    on, off = (found[runs[name].key] for name in CACHE_LAWS.values())
    assert on["p50"] != off["p50"]
    assert on["p50"] == pytest.approx(off["p50"], rel=0.1)


def test_the_wait_outside_of_the_balancers_spread() -> None:
    """0 among them; else how far above the greatest or below the least, in ms, the mean over rates."""
    (asked,) = (one for one in questions() if (one.item, one.workload) == ("first-token", "task"))
    waits = dict(zip(BALANCERS, (8e-3, 9e-3, 7e-3, 8.5e-3), strict=True))

    def answer(*own: float) -> dict[str, Any]:
        rates = (20.0, 60.0)[: len(own)]
        return {
            "runs": {
                PlannedRun("decoders", WORKERS, rate, name).key: {"wait": wait}
                for rate, eldr in zip(rates, own, strict=True)
                for name, wait in {**waits, "eldr": eldr}.items()
            }
        }

    for own, wanted in ((8e-3, 0.0), (9.5e-3, 0.5), (6e-3, -1.0), (7e-3, 0.0)):
        assert asked.figure(answer(own), (20.0,)) == pytest.approx(wanted)
    assert asked.figure(answer(9.5e-3, 6e-3), (20.0, 60.0)) == pytest.approx(-0.25)
    assert asked.figure({"runs": {}}, (20.0,)) is None
    old = answer(8e-3)
    del old["runs"][PlannedRun("decoders", WORKERS, 20.0, "jsq").key]["wait"]
    assert asked.figure(old, (20.0,)) is None, "answers of version 0.1.0 have no waits"


def test_figures_of_the_cache_are_of_its_runs() -> None:
    asked = [one for one in questions() if one.item == "cache"]
    assert len(asked) == 4
    answer: dict[str, Any] = {"runs": {}}
    for number, law in enumerate(CACHE_LAWS.values()):
        for policy, value in (("round-robin", 10.0), ("eldr", 9.0 - number)):
            run = PlannedRun("decoders", WORKERS, CACHE_RATE, policy, law)
            answer["runs"][run.key] = {"p50": value, "p99": 2 * value + (policy == "eldr")}
    assert [one.figure(answer, ()) for one in asked] == pytest.approx([-10, -5, -20, -15])
    other = PlannedRun("decoders", WORKERS, CACHE_RATE, "eldr", "gpt-oss")
    assert change(answer, other, "p50") == pytest.approx(-10)


def test_a_model_is_asked_for_its_own_runs() -> None:
    for name in MODELS:
        item, workers = ("large", 8) if name == "qwen-235b" else ("models", WORKERS)
        asked = [one for one in questions() if one.item == item and (item == "large" or name in _said(one.quantity))]
        assert len(asked) == (2 if item == "large" else 4)
        rates = (24.0, 40.0, 56.0) if item == "large" else (20.0,)
        answer: dict[str, Any] = {"runs": {}}
        for rate in rates:
            for policy in (*BALANCERS, "eldr"):
                value = {"p50": 9.0, "p99": 9.5} if policy == "eldr" else {"p50": 10.0, "p99": 10.0}
                answer["runs"][PlannedRun("decoders", workers, rate, policy, name).key] = value
        for one in asked:
            value = one.figure(answer, rates)
            assert value == pytest.approx(-10.0 if "P50" in one.quantity else -5.0)
            assert math.isinf(one.printed.low) is False


def _said(quantity: str) -> str:
    return {"GPT-OSS-120B": "gpt-oss", "Gemma-4-26B": "gemma"}.get(quantity.split(":")[0], "")
