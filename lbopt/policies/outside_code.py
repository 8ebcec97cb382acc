"""Python that a file names: refused where the file may come from elsewhere, and known by its SHA-256 where it is run.

A user who names a policy file on the command line asks for its code. A `run.json` that names one does not: whoever
wrote that folder would choose what runs here. Such folders are read within `refused_code`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import read_bytes

_refusal: ContextVar[str | None] = ContextVar("refusal", default=None)

#: SHA-256 of each policy file that this process has run, by the path as it was given.
_run: dict[str, str] = {}


@contextmanager
def refused_code(source: str, *, allowed: bool = False) -> Iterator[None]:
    """Refuse to run any policy file within the block.

    Parameters
    ----------
    source
        What names the files, for the error.
    allowed
        Whether the user has allowed it. That does not lift a refusal around this one.
    """
    token = _refusal.set(_refusal.get() if allowed else source)
    try:
        yield
    finally:
        _refusal.reset(token)


def require_allowed(path: str) -> None:
    """Raise InputError within `refused_code`."""
    source = _refusal.get()
    if source is not None:
        raise InputError(
            f"policy file '{path}' is Python code that {source} names, and it would be run; read it, and add "
            "--allow-code (from Python: allow_code=True) if you trust it"
        )


def note_code(path: str, content: bytes) -> None:
    """Remember the SHA-256 of a policy file that is run now."""
    _run[path] = hashlib.sha256(content).hexdigest()


def code_in(configuration: Any) -> dict[str, str]:
    """Return the SHA-256 of each policy file that a configuration in plain data names and this process has run."""
    texts = list(_texts(configuration))
    return {path: sha256 for path, sha256 in sorted(_run.items()) if any(f"{path}:" in text for text in texts)}


def changed_code(recorded: Mapping[str, str]) -> str | None:
    """Return a sentence on the first policy file that is not what it was, or None.

    Parameters
    ----------
    recorded
        SHA-256 by path, as a `run.json` keeps them.
    """
    for path, then in recorded.items():
        try:
            now = hashlib.sha256(read_bytes(path)).hexdigest()
        except InputError:
            return f"policy file '{path}': SHA-256 {then[:16]}... then, not readable now"
        if now != then:
            return f"policy file '{path}': SHA-256 {then[:16]}... then, {now[:16]}... now"
    return None


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)
