"""A small share of `python -m tests.kills`: three moments of one study, by each signal once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = [pytest.mark.jit, pytest.mark.alone]


def test_three_moments(tmp_path):
    """No traceback, no process, no file left, and equal results; the command goes on where its file ends."""
    out = tmp_path / "kills.jsonl"
    command = [sys.executable, "-m", "tests.kills", "--seed", "3", "--verbs", "study", "--out", str(out)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [*command, "--moments", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["signal"] for line in lines[:3]] == ["SIGINT", "SIGTERM", "SIGKILL"]
    assert all(line["wrong"] == [] for line in lines)
    assert list(tmp_path.iterdir()) == [out]
