"""`python -m tools.studies`: lbopt with further studies and items, whose folders stay readable."""

import json
import subprocess
import sys
from pathlib import Path

from lbopt.report.study_report import read_account, report_of
from lbopt.studies.staggered.study import ITEMS

HERE = Path(__file__).resolve()


def test_the_command_line_has_them() -> None:
    words = [sys.executable, "-m", "tools.studies", "study", "staggered", "needs", "--help"]
    assert "staggered" in subprocess.run(words, cwd=HERE.parents[2], capture_output=True, text=True, check=True).stdout
    assert {"needs", "adapting", "watchdog", "decode", "cache", "faults"} < set(ITEMS)


def test_a_stored_run_gives_its_configuration(tmp_path: Path) -> None:
    stored = (HERE.parent / "run.json").read_text()
    (tmp_path / "run.json").write_text(stored)
    study, account = read_account(tmp_path)
    config = study.config_of(account, "run.json")
    assert json.loads(json.dumps(config.to_dict())) == json.loads(stored)[study.config_key]
    assert report_of(study.name).csv
