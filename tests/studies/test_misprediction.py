"""The misprediction study: no error is the exact oracle, errors cost something, and the gap study agrees."""

import csv
import json
import math
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from lbopt.exceptions import InputError
from lbopt.model import objective
from lbopt.policies import make_policy
from lbopt.policies.decide import decide
from lbopt.report.misprediction_report import (
    lead,
    misprediction_csv,
    misprediction_figure,
    misprediction_long_run_csv,
    misprediction_tables,
)
from lbopt.report.study_report import write_study_folder
from lbopt.simulator import FrozenView, simulate
from lbopt.statistics import over_seeds
from lbopt.studies.misprediction import MispredictionConfig, run_misprediction, study
from lbopt.studies.misprediction.forecasts import cases_of, variants_of
from lbopt.studies.misprediction.study import METRICS
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario

RULE = "br-h:stage_switch=0,gamma=0.6,beta=100"
NAME = make_policy(f"{RULE},horizon=6").name
FILES = {"misprediction.csv", "long_runs.csv", "steps.jsonl", "misprediction.png", "misprediction.svg", "run.json"}


def config(**changes):
    """Three workers of six slots, 300 requests, six states, two seeds; no error is one of the errors."""
    scenario = {"requests": RequestSource(trace="burstgpt-like", count=300), "num_workers": 3, "slots_per_worker": 6}
    names = {field.name for field in fields(Scenario)}
    scenario |= {name: changes.pop(name) for name in list(changes) if name in names}
    given = {
        "policies": (RULE,),
        "horizon": 6,
        "noise": (0.0, 0.5),
        "bias": (1.0, 0.5, 3.0),
        "shuffled": (0.0, 1.0),
        "states": 6,
        "seed": 1,
        "seeds": 2,
        "time_limit": 20.0,
    }
    return MispredictionConfig(scenario=Scenario(**scenario), **(given | changes))


@cache
def outcome():
    """The finished study of `config()`; nobody may change it."""
    return run_misprediction(config())


@cache
def costs():
    return {cost.case.forecast: cost for cost in outcome().costs()}


def numbers(found):
    """Everything in an outcome but the times of this machine."""
    decided = [{name: d.objective for name, d in s.decisions.items()} for s in found.solved]
    runs = [(r.policy, r.seed, r.steps, r.metrics.to_dict()) for r in found.long_runs]
    return json.dumps([decided, [s.best for s in found.solved], runs, found.notes, found.trace])


def decided(forecast):
    name = forecast if forecast == "br-0" else f"{NAME} | {forecast}"
    return [s.decisions[name].objective for s in outcome().solved]


def ran(forecast):
    name = forecast if forecast == "br-0" else f"{NAME} | {forecast}"
    return {r.seed: r.metrics.to_dict() for r in outcome().long_runs if r.policy == name}


# ---------------------------------------------------------------- a finished study


@pytest.mark.more
@pytest.mark.parametrize("none", ["noise 0", "bias 1", "shuffled 0"])
def test_no_error_is_the_exact_oracle_number_for_number(none):
    assert decided(none) == decided("exact")
    assert ran(none) == ran("exact")


def test_every_case_decides_every_state_and_runs_once_a_seed():
    cases = cases_of(config())
    assert len({case.name for case in cases}) == len(cases) == 1 + 3 + 7 + 1 + 16
    assert len(outcome().solved) == 6
    assert all(list(s.decisions) == [case.name for case in cases] for s in outcome().solved)
    assert [(r.policy, r.seed) for r in outcome().long_runs] == [(case.name, s) for s in (1, 2) for case in cases]
    assert not outcome().interrupted


def test_forecasts_that_err_lead_to_other_runs():
    """Runs differ by what is foreseen, among errors, gates, refreshes, predictors, and what they learnt from."""
    same_as_exact = {"exact", "noise 0", "bias 1", "shuffled 0"}
    others = [case.forecast for case in cases_of(config())[1:] if case.forecast not in same_as_exact]
    found = {json.dumps(ran(forecast)): forecast for forecast in ["exact", *others]}
    assert len(found) >= len(others) - 2  # some may agree by chance
    assert ran("survival") != ran("survival of azure-like")
    assert ran("survival") != ran("survival, no gate")
    assert ran("survival") != ran("survival, fresh")
    assert ran("memorised") != ran("survival")


def test_no_decision_is_below_a_proved_optimum():
    proved = [s for s in outcome().solved if s.standing == "proved"]
    assert proved
    assert all(d.objective >= s.best for s in proved for d in s.decisions.values())


def test_gaps_by_hand():
    """Mean, median, P95 and share of optima from the states themselves, open ones left out."""
    closed = [i for i, s in enumerate(outcome().solved) if s.standing != "open"]
    for forecast in ("exact", "bias 0.5"):
        gaps = np.array([decided(forecast)[i] - outcome().solved[i].best for i in closed])
        row = costs()[forecast].gap
        assert (row.states, row.proved + row.claimed) == (6, len(closed))
        assert row.gap_mean_tokens == pytest.approx(gaps.mean())
        assert row.gap_median_tokens == pytest.approx(np.median(gaps))
        assert row.gap_p95_tokens == pytest.approx(np.quantile(gaps, 0.95))
        assert row.optimal_share == pytest.approx((gaps == 0).mean())


def test_a_decision_is_what_the_policy_decides_with_that_text():
    """The exact oracle, and a bias, through the ordinary table of policies."""
    for forecast, text in (("exact", "oracle"), ("bias 0.5", "oracle:bias=0.5")):
        policy = make_policy(f"{RULE},horizon=6,predictor={text}")
        view = FrozenView()
        for solved, value in zip(outcome().solved, decided(forecast), strict=True):
            assert solved.state.problem.horizon == 6
            assert value == objective(solved.state.problem, decide(policy, view.observe(solved.state, policy)))


@pytest.mark.more
def test_a_long_run_is_a_simulation_with_that_text():
    asked = config()
    for seed in (1, 2):
        requests = asked.scenario.requests.draw_for(seed, num_seeds=2)
        learnt = asked.scenario.requests.training_for(seed, num_seeds=2)
        elsewhere = replace(asked.scenario.requests, train_on="azure-like").training_for(seed)
        for forecast, text, training in (
            ("noise 0.5", f"oracle:noise=0.5;seed={seed}", None),
            ("survival", "survival", learnt),
            ("survival, no gate", "survival,gate=0", learnt),
            ("survival, fresh", "survival,refresh=1", learnt),
            ("memorised of azure-like", "memorised", elsewhere),
            ("survival, held", "survival,hold_anchor=yes", learnt),
            ("exact, stale", "oracle,refresh=10", None),
        ):
            policy = make_policy(f"{RULE},horizon=6,predictor={text}")
            run = simulate(requests, policy, asked.scenario.setting, seed=seed, training=training)
            assert run.metrics().to_dict() == ran(forecast)[seed], forecast
        for name, text in (("br-0", "br-0"), ("no window", f"{RULE},horizon=0")):
            run = simulate(requests, make_policy(text), asked.scenario.setting, seed=seed)
            assert run.metrics().to_dict() == ran(name)[seed]


def test_differences_are_paired():
    for name in METRICS:
        for forecast in ("survival", "shuffled 1"):
            cost = costs()[forecast].metrics[name]
            own, exact, blind, myopic = (
                [ran(f)[s][name] for s in (1, 2)] for f in (forecast, "exact", "no window", "br-0")
            )
            assert cost.to_no_window == over_seeds([a - b for a, b in zip(own, blind, strict=True)])
            assert cost.value == over_seeds(own)
            assert cost.to_exact == over_seeds([a - b for a, b in zip(own, exact, strict=True)])
            assert cost.to_myopic == over_seeds([a - b for a, b in zip(own, myopic, strict=True)])
    assert costs()["exact"].metrics["imbalance_tokens"].to_exact is None
    assert costs()["no window"].metrics["imbalance_tokens"].to_no_window is None
    assert costs()["br-0"].metrics["imbalance_tokens"].to_myopic is None


@pytest.mark.more
def test_the_same_seed_gives_the_same_numbers_and_another_others():
    assert numbers(run_misprediction(config())) == numbers(outcome())
    other = run_misprediction(config(seed=2, seeds=1))
    assert numbers(other) != numbers(outcome())
    runs = {r.policy: r.metrics.to_dict() for r in other.long_runs}
    assert runs[f"{NAME} | noise 0.5"] == ran("noise 0.5")[2]  # a seed's run does not depend on the others


def test_nothing_ends_is_a_gate_that_is_shut():
    """What survival leaves when its gate is shut and it is fresh: a forecast that everybody outlives the window."""
    asked = config()
    requests = asked.scenario.requests.draw_for(1, num_seeds=2)
    learnt = replace(asked.scenario.requests, count=None).training_for(1)
    long = replace(learnt, output=learnt.output + 100_000)  # nobody ends within the window
    policy = make_policy(f"{RULE},horizon=6,predictor=survival,gate=1,refresh=1")
    run = simulate(requests, policy, asked.scenario.setting, seed=1, training=long)
    assert run.metrics().to_dict() == ran("nothing ends")[1]


@pytest.mark.more
def test_br_h_without_a_window_is_br_0():
    """With alpha = 1, beta = G and the usual options: number for number, in states and long runs."""
    found = run_misprediction(config(policies=("br-h:beta=3",), noise=(), bias=(), shuffled=(), states=3, seeds=1))
    blind = "br-h:horizon=6,beta=3.0 | no window"
    assert all(s.decisions[blind].objective == s.decisions["br-0"].objective for s in found.solved)
    runs = {r.policy: r.metrics.to_dict() for r in found.long_runs}
    assert runs[blind] == runs["br-0"]


@pytest.mark.more
def test_two_rules_and_bf_io():
    """Each rule has its own rows; the exact rule with the exact forecast has no gap where states close."""
    requests = RequestSource(trace="burstgpt-like", count=100)
    asked = config(requests=requests, policies=(RULE, "bf-io"), noise=(), bias=(0.25,), shuffled=(), states=4, seeds=1)
    found = run_misprediction(asked)
    by_case = {cost.case.name: cost for cost in found.costs()}
    assert by_case["bf-io:horizon=6 | exact"].gap.gap_max_tokens == 0
    assert by_case["bf-io:horizon=6 | bias 0.25"].gap.gap_max_tokens > 0
    assert len(misprediction_tables(found)) == 4
    assert [axes.get_title(loc="left") for axes in misprediction_figure(found).axes] == [
        NAME,
        "",
        "bf-io:horizon=6",
        "",
    ]
    assert by_case[f"{NAME} | exact"].metrics["imbalance_tokens"].value.low is None


@pytest.mark.more
def test_a_file_keeps_its_first_fifth_for_learning(tmp_path):
    """Also where it is resampled: what is run must not have been learnt by heart."""
    rng = np.random.default_rng(3)
    path = tmp_path / "own.csv"
    rows = zip(rng.integers(1, 90, 200), rng.integers(1, 60, 200), strict=True)
    path.write_text("p,o\n" + "".join(f"{p},{o}\n" for p, o in rows))
    for draw, seeds in (("order", 1), ("resample", 2)):
        source = RequestSource(trace=str(path), draw=draw, prompt_column="p", output_column="o")
        asked = config(requests=source, seeds=seeds, seed=0, noise=(1.0,), bias=(2.0,), shuffled=(1.0,))
        assert asked.scenario.requests.train_share == 0.2
        found = run_misprediction(asked)
        assert (found.trace["training_requests"], found.trace["requests"]) == (40, 160)
        assert len(found.long_runs) == seeds * len(cases_of(asked))
    assert config(requests=replace(source, train_on="azure-like")).scenario.requests.train_share is None


# ---------------------------------------------------------------- interruption


@pytest.mark.some(1)
@pytest.mark.parametrize(("place", "states", "runs"), [("solve_state", 2, 0), ("long_run", 6, 2)])
def test_ctrl_c_keeps_what_is_done(tmp_path, monkeypatch, place, states, runs):
    real, calls = getattr(study, place), []

    def pressed(*given, **options):
        calls.append(given)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return real(*given, **options)

    monkeypatch.setattr(study, place, pressed)
    found = run_misprediction(config())
    assert found.interrupted
    assert (len(found.solved), len(found.long_runs)) == (states, runs)
    write_study_folder("misprediction", found, tmp_path / "out", "lbopt study misprediction")
    account = json.loads((tmp_path / "out" / "run.json").read_text())
    assert account["interrupted"] is True
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES - (set() if runs else {"long_runs.csv"})
    assert len(misprediction_tables(found)) == (2 if runs else 1)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": ()}, "no policy was named"),
        ({"policies": ("br-0",)}, "policy 'br-0' does not look ahead"),
        ({"policies": ("br-h:horizon=0",)}, "policy 'br-h:horizon=0' does not look ahead"),
        ({"policies": ("br-g",)}, "unknown policy 'br-g': did you mean"),
        ({"policies": ("br-h:gama=1",)}, "policy 'br-h' has no option 'gama'"),
        ({"policies": ("br-h:predictor=survival",)}, "policy 'br-h:predictor=survival' names its own predictor"),
        ({"policies": ("br-h", "br-h")}, "policy 'br-h:horizon=6' is named twice"),
        ({"policies": ("br-h:horizon=501",)}, "policy 'br-h:horizon=501' looks 501 steps ahead; expected at most 500"),
        ({"seed": 2**31}, "seed is 2147483648; expected less than 2**31"),
        ({"behaviour": "br-g"}, "unknown policy 'br-g'"),
        ({"horizon": 0}, "horizon is 0; expected 1 to 500 steps to look ahead"),
        ({"horizon": 501}, "horizon is 501"),
        ({"noise": (-0.5,)}, "noise is -0.5; expected a standard deviation"),
        ({"noise": (math.nan,)}, "noise is nan"),
        ({"bias": (0.0,)}, "bias is 0.0; expected a factor"),
        ({"shuffled": (1.5,)}, "shuffled is 1.5; expected a share"),
        ({"other_trace": "burstgpt-like"}, "the other trace is 'burstgpt-like', which is the trace itself"),
        ({"states": 0}, "states is 0"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"new": "dies"}, "unknown new 'dies'"),
    ],
    ids=str,
)
def test_what_cannot_be_studied_is_refused(changes, message):
    with pytest.raises(InputError) as caught:
        config(**changes)
    assert str(caught.value).startswith(message)


def test_a_file_too_short_to_learn_from_is_refused(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("p,o\n3,4\n5,6\n7,8\n")
    source = RequestSource(trace=str(path), prompt_column="p", output_column="o")
    with pytest.raises(InputError, match="predictors have nothing to learn from"):
        run_misprediction(config(requests=source, seeds=1))


def test_another_trace_that_is_not_there_is_refused_before_anything_long(monkeypatch):
    monkeypatch.setattr(study, "gather_states", lambda *given: pytest.fail("work was done"))
    with pytest.raises(InputError, match="nowhere"):
        run_misprediction(config(other_trace="nowhere.csv"))


# ---------------------------------------------------------------- report


def test_the_folder_is_complete_and_pandas_reads_it(tmp_path):
    write_study_folder("misprediction", outcome(), tmp_path / "out", "lbopt study misprediction")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    table = pd.read_csv(tmp_path / "out" / "misprediction.csv")
    assert list(table["forecast"]) == [case.forecast for case in cases_of(config())]
    for forecast, cost in costs().items():
        row = table[table["forecast"] == forecast].iloc[0]
        assert row["gap_mean_tokens"] == pytest.approx(cost.gap.gap_mean_tokens, nan_ok=True)
        assert row["imbalance_tokens"] == cost.metrics["imbalance_tokens"].value.mean
    runs = pd.read_csv(tmp_path / "out" / "long_runs.csv")
    assert len(runs) == len(outcome().long_runs)
    assert set(runs["seed"]) == {1, 2}
    with (tmp_path / "out" / "misprediction.csv").open(newline="") as stream:
        trained = {row["forecast"]: (row["trained_on"], row["gate"], row["refresh"]) for row in csv.DictReader(stream)}
    assert trained["survival"] == ("burstgpt-like", "0.5", "")
    assert trained["survival of azure-like, no gate"] == ("azure-like", "0.0", "")
    assert trained["memorised, fresh"] == ("burstgpt-like", "0.5", "1")
    assert trained["exact"][0] == ""
    account = json.loads((tmp_path / "out" / "run.json").read_text())
    assert account["configuration"]["noise"] == [0.0, 0.5]
    assert account["trace"]["other_trace"] == "azure-like"


def test_tables_say_what_was_found():
    gaps, runs = misprediction_tables(outcome())
    aged = {"exact, stale", *(row[0] for row in runs.rows if row[0].endswith(("fresh", "held")))}
    assert [row[0] for row in gaps.rows] == [row[0] for row in runs.rows if row[0] not in aged]
    assert decided("exact, stale") == decided("exact")
    assert decided("survival, fresh") == decided("survival, held") == decided("survival")
    assert gaps.rows[0][0] == "(br-0)"
    assert "6 states under br-0" in gaps.caption
    assert "2 seeds" in runs.caption
    assert len(misprediction_csv(outcome())) == len(costs())
    assert len(misprediction_long_run_csv(outcome())) == 2 * len(costs())
    itself, myopic = lead(outcome())
    assert itself.startswith(f"{NAME}: more imbalance than itself with horizon 0 with ")
    assert myopic.startswith(f"{NAME}: more imbalance than br-0 with ")
    assert itself.count(" of 26 forecasts") == myopic.count(" of 26 forecasts") == 1


@pytest.mark.more
def test_equal_outcomes_give_equal_pictures(tmp_path):
    for name in ("a", "b"):
        write_study_folder("misprediction", outcome(), tmp_path / name, "lbopt study misprediction")
    for picture in ("misprediction.png", "misprediction.svg"):
        assert (tmp_path / "a" / picture).read_bytes() == (tmp_path / "b" / picture).read_bytes()


def test_errors_are_told_apart_however_close():
    names = [v.name for v in variants_of(config(noise=(0.1, 0.1000001), bias=(2.0,), shuffled=(0.25,)))]
    assert names[3:7] == ["noise 0.1", "noise 0.1000001", "bias 2", "shuffled 0.25"]
