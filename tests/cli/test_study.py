"""`lbopt study misprediction` as a terminal sees it."""

import json
from dataclasses import replace

import pytest
from cli.terminal import lbopt

from lbopt.studies.misprediction import study

FLEET = ("-n", 120, "-G", 2, "-B", 5)
SMALL = (*FLEET, "-H", 4, "--states", 3, "--seeds", 2, "--noise", 1, "--bias", 0.5, "--bias", 2, "--shuffled", 0.5)
RULE = "br-h:stage_switch=0"


@pytest.mark.more
def test_a_family_is_studied(type_in, here):
    code, shown, said = type_in("study", "misprediction", "azure-like", *SMALL, "-p", RULE, "--out", "out")
    assert code == 0, said
    assert "br-h:horizon=4,stage_switch=0: gap over a window of 4 steps, by forecast" in shown
    assert "br-h:horizon=4,stage_switch=0: long runs, by forecast" in shown
    for forecast in ("(br-0)", "(no window)", "exact", "noise 1", "bias 0.5", "shuffled 0.5", "nothing ends"):
        assert shown.count(f"\n{forecast} ") == 2
    assert shown.count("\nsurvival of burstgpt-like, no gate ") == 2
    assert shown.count("\nsurvival, fresh ") == 1
    assert "more imbalance than br-0 with" in shown
    assert "tables and picture: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert run["configuration"]["bias"] == [0.5, 2.0]
    assert run["configuration"]["seeds"] == 2
    assert run["interrupted"] is False


@pytest.mark.more
def test_without_a_folder_nothing_is_written(type_in, here):
    code, shown, said = type_in("study", "misprediction", *SMALL, "--seeds", 1, "--other-trace", "azure-like")
    assert code == 0, said
    assert "br-h:horizon=4: long runs" in shown
    assert "folder" not in shown
    assert list(here.iterdir()) == []


def test_the_group_says_what_it_has(type_in):
    code, shown, said = type_in("study")
    assert "misprediction" in shown + said
    assert code in (0, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-p", "br-0"), "error: policy 'br-0' does not look ahead, so no forecast can mislead it"),
        (("-p", "br-h:horizon=0"), "error: policy 'br-h:horizon=0' does not look ahead"),
        (("-p", "br-x"), "error: unknown policy 'br-x'"),
        (("-p", "br-h:predictor=oracle"), "error: policy 'br-h:predictor=oracle' names its own predictor"),
        (("-p", RULE, "-p", RULE), "error: policy 'br-h:horizon=20,stage_switch=0' is named twice"),
        (("-H", 0), "error: horizon is 0; expected 1 to 500 steps to look ahead"),
        (("--noise", -1), "error: noise is -1.0; expected a standard deviation of the logarithm, 0 to 10"),
        (("--bias", 0), "error: bias is 0.0; expected a factor, 0.001 to 1000"),
        (("--shuffled", 2), "error: shuffled is 2.0; expected a share of the requests, 0 to 1"),
        (("--other-trace", "nowhere.csv"), "error: no file, family or public trace 'nowhere.csv'"),
        (("--other-trace", "burstgpt-like"), "error: the other trace is 'burstgpt-like', which is the trace itself"),
        (("--behaviour", "br-x"), "error: unknown policy 'br-x'"),
        (("--states", 0), "error: states is 0"),
        (("--time-limit", -1), "error: time_limit"),
        (("--train-share", 0.3), "error: train_share is for files"),
    ],
    ids=str,
)
def test_what_a_user_can_get_wrong_is_one_sentence(type_in, here, monkeypatch, words, message):
    monkeypatch.setattr(study, "gather_states", lambda *given: pytest.fail("work was done"))
    code, shown, said = type_in("study", "misprediction", *FLEET, *words, "--out", "out")
    assert code == 2
    assert shown == ""
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, said
    assert errors[0].startswith(message)
    assert "Traceback" not in said
    assert not (here / "out").exists()


def test_a_folder_of_somebody_else_is_refused_before_any_work(type_in, here, monkeypatch):
    (here / "out").mkdir()
    (here / "out" / "thesis.tex").write_text("x")
    monkeypatch.setattr(study, "gather_states", lambda *given: pytest.fail("work was done"))
    code, _, said = type_in("study", "misprediction", *SMALL, "--out", "out")
    assert code == 2
    assert "holds 'thesis.tex'" in said


@pytest.mark.parametrize("pressed_at", [0, 2])
def test_ctrl_c_keeps_what_is_done(type_in, here, monkeypatch, pressed_at):
    """Ctrl-C while states are solved: 130, and a folder with those that were done, or none."""
    solve_state, calls = study.solve_state, []

    def pressed(*given):
        calls.append(given)
        if len(calls) > pressed_at:
            raise KeyboardInterrupt
        return solve_state(*given)

    monkeypatch.setattr(study, "solve_state", pressed)
    code, shown, said = type_in("study", "misprediction", *SMALL, "--out", "out")
    assert code == 130
    assert "interrupted: tables and report cover what was done until then" in said
    assert (here / "out").exists() == bool(pressed_at)
    assert ("gap over a window" in shown) == bool(pressed_at)
    if pressed_at:
        assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is True
        assert len((here / "out" / "steps.jsonl").read_text().splitlines()) == pressed_at


def test_open_states_are_counted_and_enter_no_average(type_in, here, monkeypatch):
    solve_state = study.solve_state

    def left_open(*given):
        solved = solve_state(*given)
        solved.result = replace(solved.result, bound=0, status="feasible", stop_reason="time")
        return solved

    monkeypatch.setattr(study, "solve_state", left_open)
    code, shown, said = type_in("study", "misprediction", *SMALL, "--out", "out")
    assert code == 0, said
    assert "3 open. Open ones enter no average." in shown
    assert (here / "out" / "misprediction.png").stat().st_size > 0


@pytest.mark.more
@pytest.mark.jit
def test_in_a_process_of_its_own(here):
    done = lbopt("study", "misprediction", *SMALL, "--seeds", 1, "--out", "out", cwd=here)
    assert done.returncode == 0, done.stderr
    assert (here / "out" / "misprediction.csv").exists()
