"""What a simulation prints and writes of decisions that were solved."""

import csv

import numpy as np

from lbopt.instances.families import generate
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.report.simulation_report import run_table
from lbopt.report.study_report import write_study_folder
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.studies.simulation import SimulationConfig, SimulationOutcome

SETTING = SimulationSetting(Fleet(4, 8), ClosedLoop(24))


def run_of(spec):
    return simulate(generate("burstgpt-like", 200, 2), make_policy(spec), SETTING)


def test_the_caption_says_how_much_was_proved():
    run = run_of("bf-io:time_limit=none")
    count = sum(run.tally.values())
    caption = run_table(run, run.metrics()).caption
    assert f"; {count:,} decisions solved: {100 * run.tally['proved'] / count:,.2f} % proved" in caption
    run.solved["standing"][:2] = 2  # as if two had been left open
    run.solved["bound"][:2] = run.solved["imbalance"][:2] - np.array([1500, 500])
    run.tally["open"] = run.tally.get("open", 0) + 2
    run.tally["proved"] -= 2
    caption = run_table(run, run.metrics()).caption
    if run.tally["open"] == 2:
        assert "; open by at most 2,000 tokens in all, 1,000 on average, 1,500 at worst." in caption
    assert "decisions solved" not in run_table(run_of("br-0"), run.metrics()).caption


def outcome_of(run):
    return SimulationOutcome(SimulationConfig(), run, run.metrics())


def test_solved_decisions_have_a_table_of_their_own_without_times(tmp_path):
    run = run_of("bf-io:time_limit=none")
    write_study_folder("simulation", outcome_of(run), tmp_path / "run", "lbopt simulate")
    with (tmp_path / "run" / "decisions.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["step", "imbalance", "bound", "standing"]
    assert len(rows) == run.decisions
    assert {row["standing"] for row in rows} == set(run.tally)
    write_study_folder("simulation", outcome_of(run_of("br-0")), tmp_path / "other", "lbopt simulate")
    assert not (tmp_path / "other" / "decisions.csv").exists()
