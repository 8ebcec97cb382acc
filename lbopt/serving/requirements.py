"""The packages of the extra `serve`: what is missing is said in one sentence before anything begins."""

from __future__ import annotations

from importlib.util import find_spec

from lbopt.exceptions import BackendUnavailableError

#: Modules that have to be there, and the package that brings each; uvloop is used where it exists.
_NEEDED = {"aiohttp": "aiohttp", "msgspec": "msgspec", "prometheus_client": "prometheus-client"}


def require_serving(what: str) -> None:
    """Raise if a package of the extra is absent.

    Parameters
    ----------
    what
        Who needs it, such as "lbopt mock".

    Raises
    ------
    BackendUnavailableError
        With the command that installs it.
    """
    missing = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise BackendUnavailableError(
            f"`{what}` needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} absent: "
            'pip install "lbopt[serve]"'
        )
