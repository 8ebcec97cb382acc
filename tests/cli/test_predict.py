"""`lbopt predict` as a terminal sees it."""

import json

import pytest
from cli.terminal import lbopt

from lbopt.studies.prediction import evaluation

PLAIN = ("--predictor", "survival", "--predictor", "memorised")
OWN = ("--prompt-column", "p", "--output-column", "o")


@pytest.fixture
def lengths(here):
    """A CSV file of 60 requests."""
    rows = [f"{i * 7 % 50 + 1},{i * i % 97 + 1}" for i in range(60)]
    (here / "lengths.csv").write_text("p,o\n" + "\n".join(rows) + "\n")
    return "lengths.csv"


def test_a_file_is_judged(type_in, here, lengths):
    code, shown, said = type_in("predict", lengths, *OWN, "--horizon", 20, *PLAIN, "--out", "out")
    assert code == 0, said
    assert "lengths: 30 requests to learn from, the next 30 to be judged on" in shown
    assert "Calibration: predicted → observed chance (rows)" in shown
    assert "tables and picture: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert run["configuration"]["horizon"] == 20
    assert run["interrupted"] is False
    code, _, said = type_in("predict", lengths, *OWN, "--horizon", 30, *PLAIN, "--out", "out")  # takes its place
    assert code == 0, said
    assert json.loads((here / "out" / "run.json").read_text())["configuration"]["horizon"] == 30


def test_without_a_folder_nothing_is_written(type_in, here, lengths):
    code, shown, _ = type_in("predict", lengths, *OWN, *PLAIN)
    assert code == 0
    assert "folder" not in shown
    assert [path.name for path in here.iterdir()] == [lengths]


def test_the_default_predictors_over_a_family(type_in):
    pytest.importorskip("sklearn")
    code, shown, said = type_in("predict", "burstgpt-like", "--requests", 200, "--stride", 20, "--train-share", 0.7)
    assert code == 0, said
    assert "140 requests to learn from, the next 60" in shown
    for name in ("survival", "memorised", "memorised:bins=20", "learned"):
        assert f"\n{name} " in shown


def test_one_class_is_no_crash(type_in, here):
    (here / "even.csv").write_text("p,o\n" + "4,5\n" * 20)
    code, shown, said = type_in("predict", "even.csv", *OWN, "--horizon", 20, *PLAIN, "--out", "out")
    assert code == 0, said
    assert shown.count("n/a") == 2
    assert (here / "out" / "prediction.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--horizon", 0), "error: horizon is 0; expected 1 to"),
        (("--horizon", -5), "error: horizon is -5"),
        (("--train-share", 0), "error: train_share is 0.0; expected a share of the requests between 0 and 1"),
        (("--train-share", 1), "error: train_share is 1.0"),
        (("--train-share", 0.01), "error: a share of 0.01 of the 60 requests of 'lengths' leaves 0 to learn from"),
        (("--stride", 0), "error: stride is 0"),
        (("--requests", 3), "error: a share of 0.5 of the 3 requests of 'lengths' leaves 1 to learn from"),
        (("--requests", 61), "error: cannot take 61 requests: trace 'lengths' has 60"),
        (("--predictor", "crystal-ball"), "error: unknown predictor 'crystal-ball'"),
        (("--predictor", "memorised:bins=-2"), "error: predictor 'memorised': bins is -2"),
        (("--predictor", "learned:trees=many"), "error: predictor 'learned': trees is 'many'; expected a number"),
    ],
    ids=str,
)
def test_what_a_user_can_get_wrong_is_one_sentence(type_in, here, lengths, words, message):
    code, shown, said = type_in("predict", lengths, *OWN, *words, "--out", "out")
    assert code == 2
    assert shown == ""
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert errors[0].startswith(message)
    assert "Traceback" not in said
    assert not (here / "out").exists()


def test_a_folder_of_somebody_else_is_refused_before_any_work(type_in, here, lengths, monkeypatch):
    (here / "out").mkdir()
    (here / "out" / "thesis.tex").write_text("x")
    monkeypatch.setattr(evaluation, "make_predictor", lambda *given, **named: pytest.fail("work was done"))
    code, _, said = type_in("predict", lengths, *OWN, *PLAIN, "--out", "out")
    assert code == 2
    assert "holds 'thesis.tex'" in said


@pytest.mark.parametrize(("pressed_at", "left"), [(0, []), (1, ["survival"])])
def test_ctrl_c_keeps_what_is_done(type_in, here, lengths, monkeypatch, pressed_at, left):
    """Ctrl-C while a predictor is judged: 130, a folder with those that were done, or none."""
    score, calls = evaluation._score, []

    def pressed(*given):
        calls.append(given)
        if len(calls) > pressed_at:
            raise KeyboardInterrupt
        return score(*given)

    monkeypatch.setattr(evaluation, "_score", pressed)
    code, shown, said = type_in("predict", lengths, *OWN, *PLAIN, "--out", "out")
    assert code == 130
    assert f"interrupted: {pressed_at} of 2 predictors were judged until then" in said
    assert (here / "out").exists() == bool(left)
    for name in left:
        assert f"\n{name} " in shown
        assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is True


@pytest.mark.more
@pytest.mark.jit
def test_in_a_process_of_its_own(here, lengths):
    done = lbopt("predict", lengths, *OWN, *PLAIN, "--horizon", 20, "--out", "out", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "60/60" not in done.stderr
    assert "30/30" in done.stderr
    assert (here / "out" / "calibration.csv").exists()
