"""A study of four files: its configuration and run, its report, and a line in each of two tables."""

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated

import pytest

from lbopt.cli.lazy import Verb
from lbopt.cli.study import VERBS
from lbopt.report.study_report import REPORTS, StudyReport
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.registry import STUDIES, Listed
from lbopt.studies.study import Study
from lbopt.table import Table


@dataclass(frozen=True, kw_only=True)
class SquaresConfig:
    sizes: Annotated[tuple[int, ...], Option("Size; may be given again.", names=("--size", "-s"), key="size")] = (2, 3)
    seed: Annotated[int, Option("First seed.")] = 0

    def to_dict(self):
        return asdict(self)

    @classmethod
    def from_dict(cls, data, *, source="the configuration"):
        return from_plain(cls, data, what="squares", source=source)


@dataclass
class SquaresOutcome:
    config: SquaresConfig
    squares: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0


def run_squares(config, progress):
    outcome = SquaresOutcome(config)
    progress.begin("squares", len(config.sizes))
    try:
        for size in config.sizes:
            if size == 13:  # as if Ctrl-C came now
                raise KeyboardInterrupt
            outcome.squares.append(size**2)
            progress.advance()
    except KeyboardInterrupt:
        outcome.interrupted = True
    return outcome


STUDY = Study(
    name="squares",
    config=SquaresConfig,
    help="Square sizes.",
    run=run_squares,
)
REPORT = StudyReport(
    tables=lambda outcome: [Table("squares", "of sizes", ("square",), [(str(one),) for one in outcome.squares])],
    csv={"squares": lambda outcome: [{"square": one} for one in outcome.squares]},
    written="table",
)


@pytest.fixture
def squares(type_in, monkeypatch):
    monkeypatch.setitem(STUDIES, "squares", Listed(__name__, "Square sizes.", True))
    monkeypatch.setitem(REPORTS, "squares", __name__)
    monkeypatch.setitem(VERBS, "squares", Verb("study:squares", "Square sizes."))
    return lambda *words: type_in("study", "squares", *words)


def test_it_has_a_command_a_folder_and_a_rerun(squares, type_in, here):
    code, shown, _ = squares("-s", 4, "-s", 5, "--out", "out")
    assert code == 0
    assert "16" in shown and "25" in shown and "table: out" in shown
    assert (here / "out" / "squares.csv").read_text().split() == ["square", "16", "25"]
    account = json.loads((here / "out" / "run.json").read_text())
    assert account["configuration"] == {"sizes": [4, 5], "seed": 0}
    assert (account["version"], account["files"]) == (1, ["squares.csv"])
    assert type_in("verify", "out")[:2] == (0, "identical: every number but the times\n")


def test_its_options_have_defaults_and_help(squares):
    code, shown, _ = squares("--help")
    assert code == 0
    assert "Square sizes." in shown
    assert "[default: 2, 3]" in " ".join(shown.split())
    assert "4" in squares()[1] and "9" in squares()[1]


def test_ctrl_c_keeps_what_is_done(squares, type_in, here):
    code, shown, said = squares("-s", 6, "-s", 13, "--out", "out")
    assert code == 130
    assert "36" in shown and "interrupted: tables and report cover" in said
    assert (here / "out" / "squares.csv").read_text().split() == ["square", "36"]
    code, _, said = type_in("verify", "out")
    assert (code, "interrupted study" in said) == (2, True)


def test_nothing_is_written_without_results(squares, here):
    assert squares("-s", 13, "--out", "out")[0] == 130
    assert list(here.iterdir()) == []
