"""How numbers came about: command, versions, machine. Stored with every folder of results."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import lbopt

_PACKAGES = ("numpy", "numba", "scipy", "pandas", "highspy", "ortools", "pulp")


def provenance(command: str, packages: Sequence[str] = ()) -> dict[str, Any]:
    """Return command, versions of everything that can move a number, and the machine.

    Parameters
    ----------
    packages
        Packages that can move a number of this study alone.
    """
    from lbopt.policies.editions import present_edition  # the policies take a third of a second to import

    return {
        "command": command,
        "versions": {
            "lbopt": lbopt.__version__,
            "rules": str(present_edition()),
            "python": platform.python_version(),
        }
        | _installed(packages),
        "platform": platform.platform(),
        "processor": _processor(),
        "cpu_count": os.cpu_count(),
        "byte_order": sys.byteorder,
    }


def _installed(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in (*_PACKAGES, *packages):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:  # noqa: PTH123
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
