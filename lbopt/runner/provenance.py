"""What travels with every row: the versions that can move a number, and the kind of machine. No host, no path."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("numpy", "numba")


@cache
def _found() -> tuple[tuple[str, str], ...]:
    root = sys.modules[__name__.partition(".")[0]]  # loaded already, and above this room: not to be imported here
    found = [
        (root.__name__, root.__version__),
        ("python", platform.python_version()),
        ("system", platform.system()),
        ("machine", platform.machine()),
    ]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))  # reads what is installed, imports nothing
        except PackageNotFoundError:
            continue
    return tuple(found)


def provenance() -> dict[str, str]:
    """Return the versions and the machine of this process."""
    return dict(_found())


def utc_now() -> str:
    """Return the time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
