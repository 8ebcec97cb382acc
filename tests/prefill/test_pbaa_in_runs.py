"""PBAA as the scheduler calls it: every batch of 64 runs against the definition."""

import os
import subprocess
import sys
from pathlib import Path


def test_every_call():
    script = Path(__file__).with_name("pbaa_calls.py")
    given = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, str(script)], env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
