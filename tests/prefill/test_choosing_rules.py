"""An allocation rule may keep requests at the scheduler, or refuse them: nobody is lost, the queue stays in order."""

import os
import subprocess
import sys
from pathlib import Path


def test_kept_and_refused():
    script = Path(__file__).with_name("choosing_rule.py")
    root = str(Path(__file__).parents[2])
    given = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": root}
    done = subprocess.run([sys.executable, str(script)], env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
