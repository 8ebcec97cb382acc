"""Pictures, files and the folder of a staggering study, from rows made by hand."""

from __future__ import annotations

import csv
import json
import math
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image
from studies.staggered_answers import KNOWN, made_up

from lbopt.exceptions import InputError
from lbopt.report.figures import png_of
from lbopt.report.staggered_questions import item_rows, question_rows
from lbopt.report.staggered_report import (
    fleet_figure,
    limit_figure,
    load_figure,
    staggered_figures,
    wait_figure,
)
from lbopt.report.staggered_tables import staggered_tables
from lbopt.report.study_report import write_study_folder
from lbopt.studies.staggered import CONTENDERS, LATE, Rows, StaggeredConfig, StaggeredOutcome
from lbopt.studies.staggered.items import fleet, law

PICTURES = {
    "law": ("waits",),
    "load": ("load",),
    "fleet": ("fleet",),
    "limit": ("limit",),
    "latency": (),
    "ahead": ("device",),
    "split": (),
}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.more
def test_a_whole_folder(tmp_path: Path) -> None:
    found = made_up()
    write_study_folder("staggered", found, tmp_path / "out", "lbopt study staggered")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    pictures = {f"{name}.{kind}" for names in PICTURES.values() for name in names for kind in ("png", "svg")}
    assert set(run["files"]) == {"claims.csv"} | {f"{item}.csv" for item in KNOWN} | pictures
    assert (run["format"], run["command"]) == ("lbopt-staggered", "lbopt study staggered")
    assert (run["notes"], run["seconds"], run["interrupted"]) == (["a note"], 1.5, False)
    assert run["seeds"] == dict.fromkeys(KNOWN, 3)
    assert run["configuration"]["instances"] == 3
    for name in (name for names in PICTURES.values() for name in names):
        pixels = image.imread(BytesIO((tmp_path / "out" / f"{name}.png").read_bytes()), format="png")
        assert pixels.shape[0] > 300 and pixels.shape[1] > 500
        assert len(np.unique((pixels[..., :3] * 15).astype(np.int64) @ np.array([256, 16, 1]))) > 10, name
        text = " ".join("".join(one.itertext()) for one in ElementTree.parse(tmp_path / "out" / f"{name}.svg").iter())
        assert "nan" not in text
    claims = read(tmp_path / "out" / "claims.csv")
    assert [float(row["ours"]) for row in claims] == [judged.ours.mean for judged in found.judged()]
    for item in KNOWN:
        assert len(read(tmp_path / "out" / f"{item}.csv")) == len(found.averaged(item))


@pytest.mark.more
def test_equal_outcomes_give_equal_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_study_folder("staggered", made_up("limit", "law", seeds=2), tmp_path / name, name)
    for path in (tmp_path / "one").iterdir():
        if path.name != "run.json":
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


@pytest.mark.some(1)
@pytest.mark.parametrize("item", KNOWN)
@pytest.mark.parametrize("seeds", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_item_draws_its_own_picture(tmp_path: Path, item: str, seeds: int) -> None:
    found = made_up(item, seeds=seeds, places=("short-3k",))
    assert tuple(staggered_figures(found)) == PICTURES[item]
    write_study_folder("staggered", found, tmp_path / "out", "c")
    files = set(json.loads((tmp_path / "out" / "run.json").read_text())["files"])
    assert ("claims.csv" in files) is (item in ("law", "load", "limit", "ahead"))
    assert f"{item}.csv" in files


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'mine.txt'"):
        write_study_folder("staggered", made_up("split", seeds=1), tmp_path / "out", "c")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_was_cut_off_is_shown_as_far_as_it_went(tmp_path: Path) -> None:
    """Ctrl-C in the first baseline, which has no tables of its own: files and pictures are there all the same."""
    found = made_up("load", "fleet", seeds=1)
    for item, by_seed in found.rows.items():
        kept = Rows()
        kept.add([row for row in by_seed[0] if row[0]["against"] == "random"])
        found.rows[item] = {0: kept}
    write_study_folder("staggered", found, tmp_path / "out", "c")
    assert {row["against"] for row in read(tmp_path / "out" / "load.csv")} == {"random"}
    assert all("mean time to first token by" not in table.title for table in staggered_tables(found))


def test_nothing_ended_draws_nothing() -> None:
    assert staggered_figures(made_up(seeds=0)) == {}


def test_rows_of_an_item_have_every_quantity_and_full_precision() -> None:
    found = made_up("limit")
    rows = item_rows(found, "limit")
    assert list(rows[0])[:6] == ["place", "contender", "rate_mean", "rate_low", "rate_high", "rate_seeds"]
    for row in rows:
        values = [
            one.value("rate", place=row["place"], contender=row["contender"]) for one in found.rows["limit"].values()
        ]
        assert row["rate_mean"] == pytest.approx(sum(value for value in values if value) / 3, rel=1e-12)
        assert row["rate_low"] < row["rate_mean"] < row["rate_high"]
        assert row["rate_seeds"] == 3
    assert len({(row["place"], row["contender"]) for row in rows}) == len(rows) == 3 * len(CONTENDERS)


def test_rows_of_several_kinds_share_a_file(tmp_path: Path) -> None:
    """Keys and quantities that a row has not are empty cells."""
    rows = Rows()
    rows.add([({"window": 50}, {"settles": 3.5}), ({"window": 5, "fault": "mute"}, {"settles": None, "stall": 0.1})])
    found = StaggeredOutcome(StaggeredConfig(items=("split",)), {"split": {0: rows}})
    write_study_folder("staggered", found, tmp_path / "out", "c")
    first, second = read(tmp_path / "out" / "split.csv")
    assert (first["window"], first["fault"], first["settles_mean"], first["settles_low"]) == ("50", "", "3.5", "")
    assert (first["stall_mean"], first["stall_seeds"]) == ("", "0")
    assert (second["fault"], second["settles_mean"], second["settles_seeds"]) == ("mute", "", "0")
    assert second["stall_mean"] == "0.1"


def test_rows_of_questions() -> None:
    found = made_up("load", "limit", places=("short-5k", "long-16k"))
    rows = question_rows(found)
    judged = {
        (j.question.quantity, j.question.printed.text, j.question.rule, j.question.against): j for j in found.judged()
    }
    assert len(rows) == len(judged)
    assert not [row for row in rows if "short-3k" in row["quantity"]]
    for row in rows:
        one = judged[row["quantity"], row["printed"], row["rule"], row["against"]]
        assert (row["ours"], row["low"], row["high"]) == (one.ours.mean, one.ours.low, one.ours.high)
        assert (row["verdict"], row["seeds"]) == (one.verdict, 3)
        assert (row["printed_low"] is None) is math.isinf(one.question.printed.low)
        assert (row["printed_high"] is None) is math.isinf(one.question.printed.high)


def test_a_statement_that_no_seed_can_answer_is_there() -> None:
    rows = Rows()
    rows.add([({"place": "short-3k", "contender": "jsq"}, {"rate": None})])
    found = StaggeredOutcome(StaggeredConfig(items=("limit",)), {"limit": {0: rows}})
    assert {(row["verdict"], row["ours"], row["seeds"]) for row in question_rows(found)} == {("no answer", None, 0)}


@pytest.mark.more
@pytest.mark.parametrize("places", [("short-3k",), ("short-3k", "short-5k", "long-16k")])
def test_a_legend_is_inside_its_picture(places: tuple[str, ...]) -> None:
    for name, figure in staggered_figures(made_up("law", "load", "fleet", "limit", places=places, seeds=2)).items():
        png_of(figure)  # places it
        box = figure.legends[0].get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width, name
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height, name


def test_waits_are_drawn_with_their_exact_curves() -> None:
    found = made_up("law", seeds=2)
    figure = wait_figure(found)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["N = 2", "N = 10", "N = 32"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == sorted([*law.POLICIES, "exact"])
    curves = [line for line in figure.axes[1].get_lines() if len(line.get_xdata()) == 100]
    assert len(curves) == 3
    at = [float(np.interp(0.5, line.get_xdata(), line.get_ydata())) for line in curves]
    assert at == pytest.approx([10 * 0.2259, 0.2259, 0.5], rel=0.01)


def test_load_is_drawn_at_its_rates_and_times() -> None:
    found = made_up("load", seeds=2, places=("short-3k",))
    (axes,) = load_figure(found).axes
    labels = axes.get_legend_handles_labels()[1]
    assert set(labels) == {"limit", "round-robin", "jsq", *LATE} - {"staggered-bypass"}
    means = {
        row.values["rate"].mean: row.values["ttft"].mean
        for row in found.averaged("load")
        if row.keys["contender"] == "pooled"
        and row.keys["against"] in ("round-robin", "jsq")
        and row.values["rate"]
        and row.values["ttft"]
    }
    drawn = [line for line in axes.get_lines() if len(line.get_xdata()) == len(means)]
    assert any(list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == sorted(means.items()) for line in drawn)


def test_fleets_have_a_panel_a_baseline() -> None:
    figure = fleet_figure(made_up("fleet", seeds=2))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"short-3k, against {base} at 80 % of its peak" for base in ("round-robin", "jsq")
    ]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == [str(N) for N in fleet.FLEETS]
    assert all(-60 <= end <= 60 for axes in figure.axes for end in axes.get_ylim())


def test_limits_stand_beside_what_is_printed() -> None:
    figure = limit_figure(made_up("limit", seeds=2))
    assert len(figure.axes) == 6
    levels = [
        sorted(float(line.get_ydata()[0]) for line in axes.get_lines() if line.get_color() == "black")
        for axes in figure.axes
    ]
    by_title = dict(zip([axes.get_title(loc="left") for axes in figure.axes], levels, strict=True))
    assert by_title["short-3k: TTFT of 0.8 s"] == [57.0, 70.0]
    assert by_title["short-5k: TTFT of 1 s"] == [70.0, 79.0]
    assert by_title["long-16k: TTFT of 3 s"] == []
    assert [51.83, 88.7] in [[round(level, 2) for level in of_axes] for of_axes in levels]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(labels) == {"printed, off", "printed, on", "bound on arrival", "held back"}
