"""What the serving room needs beside lbopt itself, said in one sentence where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from lbopt.exceptions import InputError


def require_packages() -> None:
    """Raise where a package of the extra `serve` is missing.

    Raises
    ------
    InputError
        With the command that installs it.
    """
    missing = [name for name in ("aiohttp", "prometheus_client") if not _is_there(name)]
    if missing:
        raise InputError(
            f"lbopt serve needs {' and '.join(missing)}, not installed here; run: pip install 'lbopt[serve]'"
        )


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:
        return False
