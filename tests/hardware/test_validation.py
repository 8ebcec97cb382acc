"""The validation of the calibrated law: its tables, and a file whose rows say the same."""

import csv
import json

import numpy as np
import pytest

from tools.calibrated_law import Forecast, Validation, main, validation_tables
from tools.measured_steps import held_out_sources, measured_steps


def test_what_is_shown_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["validate", "--out", "mine"])
    shown, here = capsys.readouterr().out, tmp_path
    assert shown.index("Sources that no fit has seen") < shown.index("Sources left out in turn")
    with (here / "mine" / "forecasts.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(measured_steps())
    assert {row["source"] for row in rows if row["kind"] == "never used"} == set(held_out_sources())
    account = json.loads((here / "mine" / "run.json").read_text())
    assert {"forecasts.csv", "validation.png", "validation.svg"} <= set(account["files"])

    left = [row for row in rows if row["kind"] == "left out"]
    inside = [
        float(row["low_milliseconds"]) <= float(row["measured_milliseconds"]) <= float(row["high_milliseconds"])
        for row in left
    ]
    assert account["left_out"]["covered"] == pytest.approx(np.mean(inside))
    errors = {}
    for row in left:
        off = abs(float(row["forecast_milliseconds"]) / float(row["measured_milliseconds"]) - 1)
        errors.setdefault(row["source"], []).append(off)
    by_source = [float(np.median(of)) for of in errors.values()]
    assert account["left_out"]["error"] == pytest.approx(np.median(by_source))
    assert by_source == sorted(by_source, reverse=True)
    assert f"sources {100 * np.median(by_source):.1f} %" in " ".join(shown.split())


def test_a_table_by_hand():
    steps = measured_steps()[:2]
    measured = np.array([step.seconds for step in steps])
    forecast = Forecast("mine", steps, measured, 0.9 * measured, measured * [0.8, 0.6], 1.8 * measured)
    (_, table) = validation_tables(Validation((forecast,), ()))
    assert table.rows[0][2:] == ("2", "30 %", "−30 %", "2 of 2", "2.00")
