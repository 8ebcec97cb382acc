"""The request router of examples/ray_serve, in a real Ray Serve on this machine; skipped where Ray is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray.serve", reason="examples/ray_serve/requirements.txt is not installed")

PLACE = Path(__file__).resolve().parents[2] / "examples" / "ray_serve" / "try_it.py"


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(
    ("arguments", "words"),
    [([], "every request was placed by the router and ended there"), (["--without-router"], "without a router")],
)
def test_ray_serve_asks_the_router(arguments, words):
    """24 requests, four slots: the record has each of them where it was answered; without a router none is lost."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PLACE.parents[2]), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, str(PLACE), *arguments], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert words in done.stdout
