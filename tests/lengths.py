"""How many random cases a test takes: some in every run of the tests, all of them in `make test-long`."""

from __future__ import annotations

from typing import Any

import pytest


def quick_and_long(quick: int, full: int) -> list[Any]:
    """Return the values of a parameter that counts cases; the full count is marked as slow where it is more."""
    return [quick] if quick == full else [quick, pytest.param(full, marks=pytest.mark.slow)]
