"""Tables and pictures of a scaling study, from outcomes made by hand."""

from __future__ import annotations

import csv
import json
import math
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image

from lbopt.report.scaling_report import exponents_csv, scaling_csv, scaling_tables
from lbopt.report.study_report import write_study_folder
from lbopt.studies.scaling import ScalingCell, ScalingConfig, ScalingOutcome
from lbopt.studies.scaling.cell import REPLETE, FleetTheory

COLUMNS = [
    *("policy", "G", "B", "p", "s_max", "imbalance_tokens", "standard_error", "steps", "fcfs_exact_tokens"),
    *(
        "levelled_law_tokens",
        "least_left_tokens",
        "improvement",
        "floor",
        "onset_slots",
        "admitted_prompt_tokens",
        "wait_mean_steps",
    ),
    *("wait_max_steps", "closed_share"),
]


def outcome(*policies: str, zero: str = "", workers: tuple[int, ...] = (2, 4, 8, 16)) -> ScalingOutcome:
    """Imbalances of FCFS with a tenth of noise; those of `zero` are nothing."""
    config = ScalingConfig(workers=workers, slots=(4, 16, 64), p=0.3, s_max=5, policies=policies)
    found = ScalingOutcome(config, notes=["a note"])
    draw = np.random.default_rng(0)
    for G, B in config.fleets():
        fleet = FleetTheory.of(G, B, 0.3, 5)
        for policy in policies:
            scale = 0.0 if policy == zero else fleet.fcfs
            answer: dict[str, Any] = {
                "batches": (scale * draw.normal(1, 0.1, 20)).tolist(),
                "admitted_prompt": 3.0,
                "tally": {"proved": 3, "claimed": 1} if policy.startswith("bf-io:") else {},
            }
            if policy != REPLETE:
                answer |= {"wait_mean": 2.5, "wait_max": 12_345}
            found.cells.append(ScalingCell.of(policy, fleet, answer))
    return found


def test_csv() -> None:
    rows = scaling_csv(outcome("fcfs", REPLETE, zero=REPLETE))
    assert len(rows) == 24
    assert all(list(row) == COLUMNS for row in rows)
    nothing = next(row for row in rows if row["policy"] == REPLETE)
    assert (nothing["imbalance_tokens"], nothing["improvement"], nothing["wait_max_steps"]) == (0, None, None)
    (fcfs, law) = exponents_csv(outcome("fcfs", REPLETE, zero=REPLETE))  # no exponents where nothing is left
    assert (fcfs["policy"], law["policy"]) == ("fcfs", "fcfs, exact law")
    assert fcfs["low"] < law["exponent_of_B"] < fcfs["high"]
    assert fcfs["low_log_G"] < law["exponent_of_log_G"] < fcfs["high_log_G"]
    assert law["low"] is None


def test_tables_are_even() -> None:
    tables = scaling_tables(outcome("fcfs", "bf-io:tie=oldest", REPLETE, zero=REPLETE))
    assert [table.title.split()[0] for table in tables] == ["Exponents", "Imbalance", "The"]
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.headers)}
    assert [len(table.rows) for table in tables] == [4, 36, 24]
    nothing = next(row for row in tables[1].rows if row[0] == REPLETE)
    assert nothing[5:] == ("∞", "3.0", "–", "–")
    assert tables[0].rows[2][1].startswith("no law: a cell has no imbalance")
    assert "75.00 %" in {row[8] for row in tables[1].rows}
    assert len(scaling_tables(outcome("fcfs"))) == 2
    assert scaling_tables(ScalingOutcome(ScalingConfig(policies=("fcfs",)))) == []


def colours(path: Path) -> int:
    pixels = image.imread(BytesIO(path.read_bytes()), format="png")
    assert pixels.shape[0] > 300 and pixels.shape[1] > 300
    return len(np.unique((pixels[..., :3] * 15).astype(int).reshape(-1, 3), axis=0))


@pytest.mark.more
@pytest.mark.parametrize("zero", [REPLETE])
def test_folder(tmp_path: Path, zero: str) -> None:
    found = outcome("fcfs", "bf-io:tie=oldest", REPLETE, zero=zero)
    write_study_folder("scaling", found, tmp_path / "out", "lbopt study scaling")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    pictures = ["imbalance", *(f"{kind}-{rule}" for kind in ("law", "onset") for rule in ("bf-io-tie-oldest", REPLETE))]
    assert set(run["files"]) == {
        "scaling.csv",
        "exponents.csv",
        *(f"{name}.{kind}" for name in pictures for kind in ("png", "svg")),
    }
    assert run["configuration"]["workers"] == [2, 4, 8, 16]
    assert run["notes"] == ["a note"]
    for name in pictures:
        text = " ".join("".join(one.itertext()) for one in ElementTree.parse(tmp_path / "out" / f"{name}.svg").iter())
        empty = zero == REPLETE and name == f"law-{REPLETE}"
        assert colours(tmp_path / "out" / f"{name}.png") > (2 if empty else 10), name
        assert "nan" not in text
    with (tmp_path / "out" / "scaling.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["imbalance_tokens"]) for row in rows] == [one.mean.mean for one in found.cells]
    assert all(math.isfinite(float(row["onset_slots"])) for row in rows)


def test_two_variants_of_a_rule_are_told_apart() -> None:
    from lbopt.report.scaling_report import imbalance_figure

    figure = imbalance_figure(outcome("bf-io:tie=oldest", "bf-io", "fcfs", workers=(2, 4)))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["FCFS, exact law", "bf-io", "bf-io:tie=oldest", "fcfs"]


def test_one_cell_alone_can_be_drawn(tmp_path: Path) -> None:
    config = ScalingConfig(workers=(2,), slots=(4,), p=0.3, s_max=5, policies=("fcfs", REPLETE))
    found = outcome("fcfs", REPLETE, workers=(2,))
    write_study_folder("scaling", ScalingOutcome(config, found.cells[:2]), tmp_path / "out", "c")
    assert (tmp_path / "out" / f"onset-{REPLETE}.png").exists()
