"""Small files that ask for much are refused, and reading them takes little memory."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.bombs import BOMBS

ROOT = Path(__file__).resolve().parents[2]

#: Those that take a second or less; the others are read by `make test-long`.
QUICK = ("gzip of 4 GiB of zeros", "gzip of openings", "dotted names", "empty lists", "records of different names")
QUICK += ("one field twice of very many", "one column twice of very many", "workers of a fleet")
QUICK += ("run.json of very many rules",)


def read(names):
    command = [sys.executable, "-m", "tests.fuzz.bombs", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^.{36} +\d+ MiB", done.stdout, re.MULTILINE)) == len(names)


@pytest.mark.more
def test_quick_bombs():
    read(QUICK)


@pytest.mark.slow
def test_bombs():
    read([name for name in BOMBS if name not in QUICK])
