"""Requests that predictors learn from: which they are, that they are not those that are run, and what is refused."""

import json

import numpy as np
import pytest
from studies.small_study import small_config

from lbopt.exceptions import InputError
from lbopt.policies import make_policy
from lbopt.report.gap_tables import step_record
from lbopt.studies.gap import run_gap
from lbopt.studies.gap.config import with_training as gap_with_training
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario
from lbopt.studies.training import training_for, with_training

LEARNS, KNOWS, MYOPIC = "br-h:horizon=5", "br-h:horizon=5,predictor=oracle", "br-0"


@pytest.fixture
def file(tmp_path):
    """A trace of a hundred requests, prompts and outputs numbered."""
    path = tmp_path / "hundred.csv"
    path.write_text("p,o\n" + "".join(f"{1000 + i},{i + 1}\n" for i in range(100)))
    return path


def scenario(file, **given):
    return Scenario(requests=RequestSource(trace=str(file), prompt_column="p", output_column="o", **given))


def prepared(file, *specs, **given):
    policies = [make_policy(spec) for spec in specs]
    ready = with_training(scenario(file, **given), policies)
    return ready.requests.draw_for(0), training_for(ready, policies, 0)


def test_the_first_fifth_is_kept_where_one_learns_and_it_is_not_run(file):
    run, training = prepared(file, MYOPIC, LEARNS)
    assert training.prompt.tolist() == list(range(1000, 1020))
    assert run.prompt.tolist() == list(range(1020, 1100))


@pytest.mark.parametrize("specs", [(MYOPIC,), (KNOWS,), (MYOPIC, KNOWS)])
def test_nothing_is_kept_where_nobody_learns(file, specs):
    run, training = prepared(file, *specs)
    assert (len(run), training) == (100, None)


def test_no_share_is_no_share(file):
    """`--train-share 0` asks for all requests; who learns then has nothing, and is told so."""
    assert len(prepared(file, KNOWS, train_share=0.0)[0]) == 100
    with pytest.raises(InputError, match=r"nothing is left of .*hundred.csv' to train a predictor on; give train_sh"):
        prepared(file, LEARNS, train_share=0.0)


def test_requests_that_are_run_are_not_trained_on(file, tmp_path):
    (tmp_path / "folder").mkdir()
    again = tmp_path / "folder" / ".." / "hundred.csv"
    with pytest.raises(InputError, match=r"would learn from the requests of .* that are run; give train_share"):
        scenario(file, train_on=str(again))
    with pytest.raises(InputError, match=r"cannot learn both from 'azure-like' and from the first 0.3 of"):
        scenario(file, train_on="azure-like", train_share=0.3)


def test_a_family_is_drawn_anew_to_learn_from():
    given = Scenario(requests=RequestSource(trace="azure-like", count=300, train_on="azure-like"))
    other = given.requests.training_for(0)
    assert not np.array_equal(other.prompt[:300], given.requests.draw_for(0).prompt)


@pytest.mark.parametrize(("rows", "share"), [(1, None), (4, None), (100, 0.01)])
def test_too_few_to_learn_from_are_counted(file, rows, share):
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[: rows + 1]) + "\n")
    kept = int(rows * (share or 0.2))
    with pytest.raises(InputError, match=rf"of the {rows} requests of .* leaves {kept} to train a predictor on"):
        prepared(file, LEARNS, train_share=share)


@pytest.mark.parametrize("draw", ["auto", "order"])
def test_requests_in_order_do_not_become_a_resample_because_some_are_kept(file, draw):
    assert len(prepared(file, LEARNS, count=80, draw=draw)[0]) == 80
    with pytest.raises(InputError, match=r"90 requests of .* are to be run, and 80 are left when the first 0\.2 are"):
        prepared(file, LEARNS, count=90, draw=draw)
    assert len(prepared(file, LEARNS, count=90, draw="resample")[0]) == 90


@pytest.mark.parametrize("share", [None, 0.1])
def test_a_log_of_all_requests_is_not_replayed_over_a_part_of_them(file, tmp_path, share):
    """Row i of a log is request i: with the first ones kept back, every row would be another request's."""
    log = tmp_path / "log.csv"
    log.write_text("worker,start_time\n" + "".join(f"{i % 8},{i}\n" for i in range(100)))
    replay = f"replay:{log}"
    with pytest.raises(InputError, match=r"'replay:log.csv' is a log of all requests .* give other requests by train"):
        prepared(file, replay, LEARNS, train_share=share)
    run, training = prepared(file, replay, LEARNS, train_on="burstgpt-like")
    assert (len(run), len(training)) == (100, 10_000)
    given = small_config(requests=scenario(file).requests, behaviours=(replay,), policies=(LEARNS,))
    with pytest.raises(InputError, match="is a log of all requests"):
        gap_with_training(given)


@pytest.mark.parametrize(("given", "seeds"), [({}, 2), ({"draw": "resample"}, 1), ({"count": 101}, 1)])
def test_a_log_is_not_replayed_over_requests_drawn_anew(file, tmp_path, given, seeds):
    log = tmp_path / "log.csv"
    log.write_text("worker,start_time\n" + "".join(f"{i % 8},{i}\n" for i in range(100)))
    requests = scenario(file, **given).requests
    for behaviours, policies in (((f"replay:{log}",), (MYOPIC,)), ((MYOPIC,), (f"replay:{log}",))):
        with pytest.raises(InputError, match=r"is a log of the requests of .* in their order, and here they are drawn"):
            run_gap(small_config(requests=requests, behaviours=behaviours, policies=policies, seeds=seeds))


def test_a_log_of_a_family_is_of_one_seed(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("worker,start_step\n0,0\n")
    with pytest.raises(InputError, match="is a log of the requests of one seed of 'burstgpt-like'; use seeds=1"):
        run_gap(small_config(policies=(f"replay:{log}",), seeds=2))


def test_frozen_problems_say_what_predictors_learned_from(tmp_path):
    """A problems file does not say whose requests it holds, so the trace that is named may be another."""
    sampled = run_gap(small_config(policies=("fcfs",), states=2, long_runs=False))
    problems = tmp_path / "steps.jsonl"
    problems.write_text("".join(json.dumps(step_record(solved)) + "\n" for solved in sampled.solved))
    given = {"problems": str(problems), "long_runs": False}
    (note,) = run_gap(small_config(policies=(LEARNS,), **given)).notes
    assert "predictors learned from 10000 requests of 'burstgpt-like" in note
    assert run_gap(small_config(policies=(MYOPIC, KNOWS), **given)).notes == []


def test_a_misspelt_predictor_is_named_although_no_rule_looks_ahead():
    with pytest.raises(InputError, match="unknown predictor 'survial': did you mean survival"):
        small_config(predictor="survial")
