"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test may load or compile a kernel: time says nothing here.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real traces: $LBOPT_SHARED, or `shared` beside the checkout.

    A test that needs it is skipped where there is none, and fails if LBOPT_REQUIRE_SHARED=1 says there must be one.
    """
    given = os.environ.get("LBOPT_SHARED")
    folder = Path(given) if given else Path(__file__).resolve().parents[1].parent / "shared"
    if not (folder / "data").is_dir():
        reason = f"no real traces in {folder}; set LBOPT_SHARED to the folder that holds data/"
        if os.environ.get("LBOPT_REQUIRE_SHARED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
