"""Tables and picture of a placement study, from layers made by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from lbopt.report.placement_report import placement_csv, placement_tables
from lbopt.report.study_report import write_study_folder
from lbopt.studies.placement import PlacedLayer, PlacementConfig, PlacementOutcome


def layer(kind: str, cluster: int, R: int, served: bool = True, proof: str = "mean") -> PlacedLayer:
    exact = 64 / R
    busy = {}
    if served:
        for rise, name in enumerate(("exact", "greedy", "one_layout")):
            busy |= {f"busiest_{name}": exact + 1 + rise / 10, f"on_average_{name}": exact + rise / 10}
    return PlacedLayer(
        **{"kind": kind, "world": 0, "cluster": cluster, "layer": 0, "R": R, "mean_load": exact, "bound": exact},
        **{"greedy": exact * (1.01 + cluster / 100), "exact": exact, "proof": proof, "excess": 1e-5, "seconds": 0.002},
        **busy,
    )


def outcome() -> PlacementOutcome:
    config = PlacementConfig(ranks=(4, 16), kinds=("task", "uniform"))
    found = PlacementOutcome(config, notes=["a note"])
    for R in (4, 16):
        found.layers += [layer("task", cluster, R) for cluster in range(3)]
        found.layers += [layer("uniform", cluster, R, served=False, proof="none") for cluster in range(2)]
    return found


def test_tables_say_what_the_layers_do() -> None:
    gaps, service = placement_tables(outcome())
    for table in (gaps, service):
        assert {len(row) for row in table.rows} == {len(table.headers)}
    assert [row[:5] for row in gaps.rows[:3]] == [
        ("4", "all", "5", "3", "mean load 3, open 2"),
        ("4", "task", "3", "3", "mean load 3"),
        ("4", "uniform", "2", "0", "open 2"),
    ]
    task = gaps.rows[1]
    assert task[5].startswith("2.000 % ±")
    assert task[6:8] == ("2.000 %", "3.000 %")
    assert task[9:] == ("0.4800", "1.0e-05", "2.00", "2.00")
    assert [row[1] for row in service.rows] == ["task", "task"]  # random weights meet no requests
    assert service.rows[0][3:6] == ("17.200", "17.100", "17.000")
    assert service.rows[0][6].startswith("−0.100")
    assert placement_tables(PlacementOutcome(PlacementConfig())) == []


def test_csv_has_every_layer() -> None:
    rows = placement_csv(outcome())
    assert len(rows) == 10
    assert rows[0]["gap"] == pytest.approx(0.01)
    assert rows[3]["busiest_exact"] is None


def test_folder(tmp_path: Path) -> None:
    write_study_folder("placement", outcome(), tmp_path / "out", "lbopt study placement")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert set(run["files"]) == {"placement.csv", "gaps.png", "gaps.svg"}
    assert run["configuration"]["ranks"] == [4, 16]
    assert run["notes"] == ["a note"]
    with (tmp_path / "out" / "placement.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["busiest_exact"] for row in rows[:4]] == ["17.0", "17.0", "17.0", ""]
    drawn = (tmp_path / "out" / "gaps.svg").read_text()
    assert "nan" not in drawn.lower().replace("nanum", "")
