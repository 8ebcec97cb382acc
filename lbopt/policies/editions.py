"""Which edition of the rules a name without a version means.

Rules of serving engines change. `vllm` alone is the rule of today; in a `run.json` of an older lbopt it is the rule of
then. `run.json` names the edition among its versions, as ``rules``; files of before 2026 do not, and mean 2025. Such
folders are read and run again within `edition`, and there a bare name is shown as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown

#: Editions, the oldest first.
EDITIONS = (2025, 2026)
OLDEST, PRESENT = EDITIONS[0], EDITIONS[-1]

#: Rules that have an option ``version``.
VERSIONED = ("vllm",)

_edition: ContextVar[int] = ContextVar("edition", default=PRESENT)


def present_edition() -> int:
    """Return what a name without a version means here."""
    return _edition.get()


@contextmanager
def edition(year: int) -> Iterator[None]:
    """Let names without a version mean the rules of that year within the block."""
    token = _edition.set(year)
    try:
        yield
    finally:
        _edition.reset(token)


def edition_of(account: Mapping[str, Any], source: str = "run.json") -> int:
    """Return the edition of the rules that a `run.json` means."""
    versions = account.get("versions")
    named = versions.get("rules", str(OLDEST)) if isinstance(versions, Mapping) else str(OLDEST)
    for year in EDITIONS:
        if named == str(year):
            return year
    raise InputError(f"{source}: rules of {shown(named)}; this lbopt knows those of {OLDEST} to {PRESENT}")


def spelled_out(spec: str, year: int | None = None) -> str:
    """Return the text of a policy with its version named, so that it means the same in every edition.

    Parameters
    ----------
    spec
        As `make_policy` reads it.
    year
        The edition that it is of; None = that of the present block.

    Examples
    --------
    >>> from lbopt.policies.editions import spelled_out
    >>> spelled_out("vllm", 2025), spelled_out("br-0")
    ('vllm:version=2025', 'br-0')
    """
    name, _, rest = spec.partition(":")
    if name not in VERSIONED or any(part.startswith("version=") for part in rest.split(",")):
        return spec
    version = f"version={present_edition() if year is None else year}"
    return f"{name}:{','.join(filter(None, (version, rest)))}"
