"""`lbopt cost` as it is typed: from a gap report, a simulation, plain numbers, and with wrong input."""

import csv
import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from lbopt.report.cost_page import _gained
from lbopt.report.cost_report import lead
from lbopt.report.cost_sources import read_cost_source
from lbopt.simulator import Metrics
from lbopt.studies.cost import LEVEL, NEXT_STEP, CostConfig, LoadPoint, run_cost

PLAIN = ("--mean-load", 85000, "--imbalance", 200000, "--workers", 8, "--running", 35)
QUICK = ("--draws", 200)
SMALL = ("-n", 600, "-G", 4, "-B", 12)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A gap report and a simulation, made once."""
    import sys

    from lbopt.cli import main

    place = tmp_path_factory.mktemp("made")
    before = sys.argv
    for words in (
        ("gap", "burstgpt-like", *SMALL, "--states", 6, "--time-limit", 2, "-p", "fcfs", "-p", "br-0", "--out", "gap"),
        ("simulate", "burstgpt-like", *SMALL, "--policy", "br-0", "--out", "run"),
    ):
        target = place / words[-1]
        sys.argv = ["lbopt", *map(str, words[:-1]), str(target)]
        main_code(main)
    sys.argv = before
    return place


def main_code(main):
    try:
        main()
    except SystemExit as leave:
        assert not leave.code


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_plain_numbers_and_what_is_written(type_in, here):
    code, shown, _ = type_in("cost", *PLAIN, *QUICK, "--carbon", 400, "--out", "priced")
    assert code == 0
    assert "as given" in shown and "perfectly level" in shown and "g CO₂ / M tokens" in shown
    rows = rows_of(here / "priced" / "cost.csv")
    assert [(r["device"], r["law"], r["router"]) for r in rows[:2]] == [
        ("ascend-910c", "calibrated", "as given"),
        ("ascend-910c", "calibrated", "perfectly level"),
    ]
    for row in rows:
        assert float(row["step_milliseconds_low"]) <= float(row["step_milliseconds"])
        assert float(row["tokens_per_second"]) == pytest.approx(
            8 * 35 / float(row["step_milliseconds"]) * 1e3, rel=0.01
        )
        assert float(row["dollars_per_year"]) == pytest.approx(12 * float(row["dollars_per_month"]))
    account = json.loads((here / "priced" / "run.json").read_text())
    assert account["cards"]["h800"]["constants"]["memory_bandwidth"]["unit"] == "B/s"
    assert account["configuration"]["carbon"] == 400
    assert {"cost.csv", "cost.png", "cost.svg", "tornado.svg"} <= set(account["files"])
    page = (here / "priced" / "report.html").read_text()
    assert page.index("The bill of the tokens") < page.index("What the price hangs on") < page.index("Loads: 8 workers")
    assert page.count("<svg") == 2 and "http" not in re.sub(r'xmlns[:\w]*="[^"]*"', "", page)
    swings = rows_of(here / "priced" / "sensitivities.csv")
    assert {row["device"] for row in swings} == {"ascend-910c", "h800"}
    assert all(float(row["low"]) < float(row["high"]) for row in swings)


def test_loads_of_one_step(type_in):
    code, shown, _ = type_in("cost", "--loads", "100000,80000", "--running", 4, "-d", "h100", *QUICK)
    assert code == 0
    assert "20,000" in shown


def test_a_gap_report(type_in, here, folders):
    code, shown, said = type_in("cost", folders / "gap", "-d", "h800", *QUICK, "--out", "priced")
    assert code == 0
    assert "\nh800, calibrated: perfect balance saves " in shown and " of the time of fcfs, br-0 over" in shown
    assert ", the best next step alone " in shown
    assert "best next step: fcfs less its mean gap of" in said
    rows = [r for r in rows_of(here / "priced" / "cost.csv") if r["law"] == "calibrated"]
    assert [r["router"] for r in rows] == ["fcfs", "br-0", "best next step", "perfectly level"]
    runs = {r["policy"]: r for r in rows_of(folders / "gap" / "long_runs.csv")}
    for row in rows[:2]:
        assert float(row["imbalance_tokens"]) == pytest.approx(float(runs[row["router"]]["imbalance_tokens"]))
        assert float(row["running_per_worker"]) == pytest.approx(12 * float(runs[row["router"]]["occupancy"]))
    gaps = []
    for line in (folders / "gap" / "steps.jsonl").read_text().splitlines():
        step = json.loads(line)
        if step["behaviour"] == "fcfs" and step["standing"] != "open":
            gaps.append(step["decisions"]["fcfs"] - step["result"]["objective"])
    less = float(runs["fcfs"]["imbalance_tokens"]) - sum(gaps) / len(gaps)
    assert float(rows[2]["imbalance_tokens"]) == pytest.approx(less)
    steps = [float(r["step_milliseconds_nominal"]) for r in rows]
    assert steps[3] < min(steps[:3])


def test_another_router_of_the_report_is_todays(type_in, folders):
    code, shown, _ = type_in("cost", folders / "gap", "--router", "br-0", "-d", "h800", *QUICK)
    assert code == 0
    assert "What it saves against br-0" in shown


def test_a_simulation_and_what_if(type_in, here, folders):
    code, _, _ = type_in("cost", folders / "run", "-d", "h800", "--what-if", "workers=2,8", *QUICK, "--out", "priced")
    assert code == 0
    rows = rows_of(here / "priced" / "cost.csv")
    assert {(r["what_if"], r["workers"]) for r in rows} == {("", "4"), ("workers=2", "2"), ("workers=8", "8")}
    code, _, _ = type_in(
        "simulate", "burstgpt-like", "-n", 1200, "-G", 8, "-B", 12, "--policy", "br-0", "--out", "twin"
    )
    assert code == 0
    twin = json.loads((here / "twin" / "run.json").read_text())["metrics"]
    wide = next(r for r in rows if r["workers"] == "8" and r["router"] == "br-0")
    assert float(wide["imbalance_tokens"]) == pytest.approx(twin["imbalance_tokens"])


def test_an_unknown_price_is_shown_as_unknown(type_in, here, folders):
    import tomli_w

    from lbopt.hardware import device_card

    card = device_card("h800").to_dict()
    del card["constants"]["rental"]
    (here / "mine.toml").write_text(tomli_w.dumps(card))
    code, shown, _ = type_in("cost", *PLAIN, *QUICK, "-d", "mine.toml")
    assert code == 0
    assert "–" in shown
    code, shown, _ = type_in("cost", *PLAIN, *QUICK, "-d", "mine.toml", "--rental", 2, "--out", "priced")
    assert not math.isnan(float(rows_of(here / "priced" / "cost.csv")[0]["dollars_per_million"]))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "there is nothing to price: give an output folder of lbopt gap or simulate, or --loads"),
        (("nowhere",), "'nowhere' is not an output folder of lbopt gap or lbopt simulate: it has no run.json"),
        (("--loads", "5,6"), "--running is missing"),
        (("--loads", "5,x", "--running", 3), "loads '5,x' are not numbers; expected tokens such as 100000,80000"),
        (("--loads", "5,-6", "--running", 3), "loads hold -6; expected tokens of zero or more"),
        (("--loads", "5,6", "--running", 3, "--workers", 2), "--loads says all of the loads; leave --workers out"),
        (("--mean-load", 5, "--running", 3), "--imbalance, --workers must be given with --mean-load"),
        ((*PLAIN, "-d", "h8000"), "unknown device 'h8000': did you mean h800"),
        ((*PLAIN, "-d", "no.toml"), "cannot read the device card 'no.toml'"),
        ((*PLAIN, "--model", "gpt"), "unknown model 'gpt'"),
        ((*PLAIN, "--what-if", "gpus=4"), "what-if 'gpus=4' is not understood"),
        ((*PLAIN, "--what-if", "slots=4"), "plain numbers say nothing of other slots"),
        ((*PLAIN, "--router", "jsq"), "router 'jsq' is one of a gap report; give its folder"),
        ((*PLAIN, "--step-time", "afine"), "unknown step time 'afine': did you mean affine"),
        ((*PLAIN, "--charge", "none"), "unknown charge 'none'"),
    ],
)
def test_wrong_input_is_one_sentence(type_in, here, words, expected):
    code, _, said = type_in("cost", *words, *QUICK)
    assert code == 2
    assert said.startswith("error: ") and said.count("\n") == 1, said
    assert expected in said
    assert list(here.iterdir()) == []


def test_wrong_folders_are_one_sentence(type_in, here, folders):
    def refused(expected, *words):
        code, _, said = type_in("cost", *words, *QUICK)
        assert code == 2
        assert expected in said and said.count("\n") == 1, said

    refused("leave workers out", folders / "gap", "--workers", 4)
    refused("unknown router 'jsq-load': ", folders / "gap", "--router", "jsq-load")
    refused("holds a run of 'br-0' alone, not of 'fcfs'", folders / "run", "--router", "fcfs")
    other = here / "other"
    other.mkdir()
    (other / "run.json").write_text('{"format": "lbopt-stale"}')
    refused("was written as 'lbopt-stale'; a cost is computed from folders of lbopt gap or simulate", other)
    (other / "run.json").write_text("[")
    refused("run.json' is not valid JSON", other)
    (other / "run.json").write_text('{"format": "lbopt-simulation"}')
    refused("is not an account of this version of lbopt simulate", other)


def broken(folders, name, here, change):
    """Return a copy of a folder with something changed in it."""
    shutil.copytree(folders / name, here / "broken")
    change(here / "broken")
    return here / "broken"


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("occupancy", "0", "fcfs: occupancy is 0; expected a finite number above zero"),
        ("waiting_max_steps", "1e400", "fcfs: waiting_max_steps is inf; expected a finite number of zero or more"),
        ("mean_load_tokens", "nan", "fcfs: mean_load_tokens is nan"),
        ("imbalance_tokens", "-5", "fcfs: imbalance_tokens is -5"),
    ],
)
def test_figures_that_no_run_has_are_refused(type_in, here, folders, column, value, expected):
    def change(folder):
        rows = rows_of(folder / "long_runs.csv")
        rows[0][column] = value
        with (folder / "long_runs.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)

    code, _, said = type_in("cost", broken(folders, "gap", here, change), *QUICK)
    assert code == 2
    assert expected in said and said.count("\n") == 1, said


@pytest.mark.parametrize("broken_entry", ["seed", "occupancy"])
def test_an_account_of_a_simulation_that_lacks_something_is_one_sentence(type_in, here, folders, broken_entry):
    def change(folder):
        account = json.loads((folder / "run.json").read_text())
        account.pop("seed") if broken_entry == "seed" else account["metrics"].update({broken_entry: 0})
        (folder / "run.json").write_text(json.dumps(account))

    code, _, said = type_in("cost", broken(folders, "run", here, change), *QUICK)
    assert code == 2
    assert broken_entry in said and said.count("\n") == 1, said


def test_the_best_next_step_goes_by_states_of_the_same_rule(type_in, here, folders):
    """States under pooled JSQ speak of JSQ; those under a router that levels better would make its gap look small."""

    def change(folder):
        steps = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
        for step in steps:
            step["behaviour"] = {"fcfs": "fcfs:admission=pooled"}.get(step["behaviour"], step["behaviour"])
        (folder / "steps.jsonl").write_text("\n".join(map(json.dumps, steps)) + "\n")

    _, _, before = type_in("cost", folders / "gap", "-d", "h800", *QUICK)
    _, _, after = type_in("cost", broken(folders, "gap", here, change), "-d", "h800", *QUICK)
    assert "under fcfs\n" in before
    assert after == before.replace("under fcfs\n", "under fcfs:admission=pooled\n")


def rewritten(folder, change):
    """Change the configuration in a folder's account."""
    account = json.loads((folder / "run.json").read_text())
    change(account["configuration"])
    (folder / "run.json").write_text(json.dumps(account))


def test_a_best_next_step_by_hand(here, folders):
    """Mean and standard error of the gaps in solved states; an open state says nothing, whatever stands in it."""

    def change(folder):
        steps = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
        own = [step for step in steps if step["behaviour"] == "fcfs"]
        for step, gap in zip(own, (0, 400, 200, 1000, 5000, 1200), strict=True):
            step["decisions"]["fcfs"] = step["result"]["objective"] + gap
        own[4]["standing"] = "open"
        (folder / "steps.jsonl").write_text("\n".join(map(json.dumps, steps)) + "\n")

    found = read_cost_source(broken(folders, "gap", here, change), None)
    today, nearer = found.points[0], next(point for point in found.points if point.label == NEXT_STEP)
    gaps = np.array([0, 400, 200, 1000, 1200])
    assert nearer.imbalance == pytest.approx(today.imbalance - gaps.mean())
    assert nearer.max_load_error == pytest.approx(gaps.std(ddof=1) / 5**0.5 / 4)
    assert nearer.shared_error == today.max_load_error > 0


def test_the_best_router_is_the_one_of_least_imbalance(here, folders):
    def change(folder):
        rows = rows_of(folder / "long_runs.csv")
        between = dict(next(row for row in rows if row["policy"] == "br-0"), policy="random")
        between["imbalance_tokens"] = str(float(between["imbalance_tokens"]) + 1)
        with (folder / "long_runs.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows([*rows, between])

    assert [point.label for point in read_cost_source(broken(folders, "gap", here, change), None).points][1] == "br-0"


def test_what_a_report_ran_with_is_what_runs_again(here, folders):
    folder = broken(folders, "gap", here, lambda _: None)
    plain = read_cost_source(folder, None)
    assert plain.rerun.seeds == (0,)
    rewritten(folder, lambda config: config.update(seed=5, seeds=2, horizon=3, predictor="survival"))
    found = read_cost_source(folder, None)
    assert found.rerun.seeds == (5, 6)
    assert found.rerun.routers["fcfs"] == ("fcfs", {"horizon": 3, "predictor": "survival"})


def test_the_line_of_the_picture_goes_through_both_of_its_points():
    assert _gained(0.25, np.array([0.0, 1.0, 2.0])) == pytest.approx([1.25, 1.0, 1 / 1.2])


def test_every_law_has_a_closing_sentence_of_its_own():
    point = LoadPoint.of_means(85_000, 200_000, 8, 35)
    outcome = run_cost([point, point.balanced(LEVEL)], CostConfig(devices=("ascend-910c",), draws=200))
    assert len(outcome.devices) == 2
    for device, line in zip(outcome.devices, lead(outcome), strict=True):
        saved = device.points[1].figures["time_saved_share"]
        said = f"perfect balance saves {100 * saved.low:.1f} to {100 * saved.high:.1f} % of the time of these loads"
        assert line.startswith(f"ascend-910c, {device.law}: {said}")


def test_a_report_without_long_runs_is_refused(type_in, here):
    words = ("gap", "burstgpt-like", *SMALL, "--states", 2, "--time-limit", 2, "-p", "fcfs", "--no-long-runs")
    assert type_in(*words, "--out", "short")[0] == 0
    code, _, said = type_in("cost", "short", *QUICK)
    assert code == 2
    assert "'short' has no long runs to take loads from" in said


def test_a_load_point_needs_only_what_metrics_hold():
    from lbopt.studies.cost.load_point import NEEDED

    assert set(NEEDED) <= set(Metrics.__slots__)


def test_an_audit_and_own_steps_price_a_fleet(type_in, here):
    logs = Path(__file__).resolve().parents[2] / "examples" / "logs" / "fleet.csv"
    assert type_in("audit", logs, "-p", "jsq", "--states", 0, "--out", "mine")[0] == 0
    found = json.loads((here / "mine" / "audit.json").read_text())["law"]
    words = ("--mean-load", 5000, "--imbalance", 8000, "--workers", 8, "--running", 10, "-d", "h100", *QUICK)
    code, shown, _ = type_in("cost", *words, "--model", "qwen3-30b-a3b", "--step-time", "mine", "--out", "priced")
    assert code == 0 and "h100, as audited: perfect balance saves" in shown
    step = float(rows_of(here / "priced" / "cost.csv")[0]["step_milliseconds_nominal"])
    assert step == pytest.approx(1e3 * (found["fixed"] + 6000 * found["per_token"]))

    (here / "steps.csv").write_text("running,context_tokens,step_time_ms\n8,500,9.0\n32,500,11.5\n")
    code, shown, said = type_in("cost", *words, "--model", "qwen3-30b-a3b", "--calibrate", "steps.csv")
    assert code == 0 and "h100, calibrated: perfect balance saves" in shown
    wide = re.search(
        r"interval of a step is ([\d.]+) wide, high over low, and ([\d.]+) without them", " ".join(said.split())
    )
    assert 1 < float(wide[1]) < float(wide[2])
    for more in (("--step-time", "mine"), ("--calibrate", "no.csv")):
        code, _, said = type_in("cost", *words, "--calibrate", "steps.csv", *more)
        assert code == 2 and said.count("\n") == 1
