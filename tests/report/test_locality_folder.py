"""Pictures and the folder of a locality study, from answers made by hand."""

from __future__ import annotations

import csv
import json
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image
from studies.locality_answers import made_up

from lbopt.exceptions import InputError
from lbopt.report.figures import png_of
from lbopt.report.locality_figures import band_figure, cluster_figure, locality_figures, pool_figure, router_figure
from lbopt.report.study_report import write_study_folder
from lbopt.studies.locality import ROUTERS, WIDTHS, PlannedRun, eldr_at

PICTURES = ("band", "routers", "pool", "clusters")


def colours(path: Path) -> int:
    pixels = image.imread(BytesIO(path.read_bytes()), format="png")
    assert pixels.shape[0] > 300 and pixels.shape[1] > 500
    return len(np.unique((pixels[..., :3] * 15).astype(np.int64) @ np.array([256, 16, 1])))


@pytest.mark.more
def test_a_whole_folder(tmp_path: Path) -> None:
    found = made_up()
    write_study_folder("locality", found, tmp_path / "out", "lbopt study locality")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    tables = {f"{name}.csv" for name in ("claims", "runs", "signatures")}
    assert set(run["files"]) == tables | {f"{name}.{kind}" for name in PICTURES for kind in ("png", "svg")}
    assert (run["command"], run["notes"], run["seconds"]) == ("lbopt study locality", ["a note"], 1.5)
    assert run["worlds"] == {"task": 3, "language": 3}
    assert run["configuration"]["rates"] == [20, 40, 60, 80, 100]
    for name in PICTURES:
        text = " ".join("".join(one.itertext()) for one in ElementTree.parse(tmp_path / "out" / f"{name}.svg").iter())
        assert colours(tmp_path / "out" / f"{name}.png") > 10, name
        assert "nan" not in text
    with (tmp_path / "out" / "runs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 5 * len(found.config.runs)
    with (tmp_path / "out" / "claims.csv").open(newline="") as stream:
        claims = list(csv.DictReader(stream))
    assert [float(row["ours"]) for row in claims] == [judged.ours.mean for judged in found.judged()]


def test_equal_outcomes_give_equal_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_study_folder("locality", made_up("clusters"), tmp_path / name, name)
    for path in (tmp_path / "one").iterdir():
        if path.name != "run.json":
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("item", "pictures"),
    [
        ("signatures", ()),
        ("routers", ("routers",)),
        ("band", ("band",)),
        ("barrier", ("band",)),
        ("clusters", ("clusters",)),
        ("pool", ("pool",)),
    ],
)
@pytest.mark.parametrize("worlds", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_item_draws_its_own_picture(tmp_path: Path, item: str, pictures: tuple[str, ...], worlds: int) -> None:
    found = made_up(item, workloads=("task",), rates=(60.0,), worlds={"task": worlds})
    assert tuple(locality_figures(found)) == pictures
    write_study_folder("locality", found, tmp_path / "out", "c")
    files = set(json.loads((tmp_path / "out" / "run.json").read_text())["files"])
    assert ("claims.csv" in files) is (item not in ("barrier", "pool"))  # nothing is printed of the pool on task
    assert ("signatures.csv" in files) is (item == "signatures")
    assert {name for name in files if name.endswith("png")} == {f"{name}.png" for name in pictures}


@pytest.mark.more
@pytest.mark.parametrize("workloads", [("language",), ("task", "language")])
def test_a_legend_is_inside_its_picture(workloads: tuple[str, ...]) -> None:
    for name, figure in locality_figures(made_up(workloads=workloads, rates=(60.0,))).items():
        png_of(figure)  # places it
        place = figure.legends[0].get_window_extent()
        assert 0 <= place.x0 < place.x1 <= figure.bbox.width, name
        assert 0 <= place.y0 < place.y1 <= figure.bbox.height, name


def test_nothing_ended_draws_nothing() -> None:
    assert locality_figures(made_up(worlds={})) == {}


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'mine.txt'"):
        write_study_folder("locality", made_up("clusters"), tmp_path / "out", "c")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_band_is_drawn_at_its_values() -> None:
    found = made_up("band", "barrier")
    figure = band_figure(found)
    assert len(figure.axes) == 6
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [
        *(f"{of}, {fleet}" for fleet in ("decoders", "barrier") for of in ("P50", "P99")),
        "P50, printed for 0.1",
    ]
    top = figure.axes[0]
    changes = [found.change("task", PlannedRun("decoders", 16, 60.0, eldr_at(width)), "p50") for width in WIDTHS]
    drawn = [line.get_ydata() for line in top.get_lines()]
    assert any(
        len(line) == len(WIDTHS) and np.allclose(line, [value.mean for value in changes if value]) for line in drawn
    )
    (bar,) = top.patches
    assert (bar.get_y(), bar.get_y() + bar.get_height()) == pytest.approx((-12.7, -5.2))
    assert [tick.get_text() for tick in top.get_xticklabels()] == [f"{width:g}" for width in WIDTHS]


def test_routers_have_a_line_each_but_the_base() -> None:
    figure = router_figure(made_up("routers"))
    assert len(figure.axes) == 4
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [rule for rule in ROUTERS if rule != "round-robin"]


def test_the_pool_stands_beside_what_was_printed() -> None:
    figure = pool_figure(made_up("pool"))
    for axes, printed in zip(figure.axes, ([-8.0, -9.8, -10.2], [-2.5, -0.8, -1.1]), strict=True):
        (line,) = (line for line in axes.get_lines() if line.get_label() == "language, printed")
        assert list(line.get_ydata()) == pytest.approx(printed)


def test_printed_ends_of_clusters() -> None:
    figure = cluster_figure(made_up("clusters"))
    for axes in figure.axes:
        ends = [
            line.get_ydata()[0] for line in axes.get_lines() if line.get_linewidth() == 2.5 and len(line.get_ydata())
        ]
        assert sorted(ends) == [-12.6, -9.8, -6.8, 17.4]
        assert len(axes.patches) == 8
