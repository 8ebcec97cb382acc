"""Public names of a package that are imported on first use (PEP 562), and nothing else in `dir` of the package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package
        Name of the package; its ``__all__`` is what `dir` lists.
    home
        Module of each name that is imported on first use.
    """

    def attribute(name: str) -> Any:
        if name not in home:
            public = ", ".join(listed())
            raise AttributeError(f"module '{package}' has no attribute {name!r}; it offers {public}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return attribute, listed
