"""Everything in the library, by name and by class.

A file of it is a zip of plain JSON, `NAME.json` for each entry and `NAME.certificate.json` where one is kept.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import parse_json, shown
from lbopt.files.npz import ZipMembers
from lbopt.instances.library.entry import Entry
from lbopt.instances.library.runs import RUN_KIND, run_names
from lbopt.spec import did_you_mean

ENTRY, CERTIFICATE = ".json", ".certificate.json"

#: The classes, each in a file of its own.
KINDS = {
    "tiny": "solvable by hand, each demonstrates one thing",
    "steady": "decode steps of a fleet that has been busy for long",
    "cold": "an empty fleet meets a full queue",
    "partition": "number partitioning: every request is admitted to an empty fleet",
    "hard": "many free slots a worker, odd sizes",
    "adversarial": "found by search: small, and bad for a rule or a bound",
}


class Archive:
    """An opened file of the library."""

    def __init__(self, content: bytes, source: str) -> None:
        self.source = source
        self._zip = ZipMembers(BytesIO(content), source)
        members = self._zip.names
        self._certificates = {name.removesuffix(CERTIFICATE) for name in members if name.endswith(CERTIFICATE)}
        self.names = [name.removesuffix(ENTRY) for name in members if not name.endswith(CERTIFICATE)]

    def entry(self, name: str) -> Entry:
        """Return the entry of that name, checked."""
        return Entry.from_dict(self._json(name + ENTRY), source=f"{self.source}: {name}")

    def certificate(self, name: str) -> dict[str, Any] | None:
        """Return the certificate that is kept for the entry, as plain values; None where none is kept."""
        if name not in self._certificates:
            return None
        certificate: dict[str, Any] = self._json(name + CERTIFICATE)
        return certificate

    def _json(self, member: str) -> Any:
        if member not in self._zip.names:
            raise InputError(f"{self.source} has no member {shown(member, 80)}; build the library again")
        return parse_json(self._zip.read(member), f"{self.source}: {shown(member, 80)}")


def names(kind: str | None = None) -> list[str]:
    """Return the names of all entries, or of those of one class, in the order of the library.

    The class `run` has whole runs, which `load_run` loads; without a class only steps are named.

    Raises
    ------
    InputError
        Where there is no class of that name.
    """
    classes = [*KINDS, RUN_KIND]
    if kind == RUN_KIND:
        return run_names()
    if kind is not None and kind not in KINDS:
        raise InputError(f"no class {kind!r} in the library; it has {', '.join(classes)}{did_you_mean(kind, classes)}")
    return [name for one in KINDS if kind in (None, one) for name in _archive(one).names]


def load(name: str) -> Entry:
    """Return the entry of that name, checked.

    Raises
    ------
    InputError
        Where there is none; the nearest names are in the message.
    """
    return _home(name).entry(name)


def certificate(name: str) -> dict[str, Any] | None:
    """Return the certificate of an entry's bound as plain values, or None where the library keeps none.

    ``lbopt.solvers.certificates.Certificate.from_dict`` reads it, ``check`` checks it.
    """
    return _home(name).certificate(name)


def _home(name: str) -> Archive:
    for kind in KINDS:
        if name in _archive(kind).names:
            return _archive(kind)
    if name in run_names():
        raise InputError(f"{name!r} is a whole run and no step problem; `lbopt show problems {name}` shows it")
    known = names()
    near = did_you_mean(name, known) or f"; `lbopt show problems` shows its {len(known)} names"
    raise InputError(f"no entry {name!r} in the library{near}")


@cache
def _archive(kind: str) -> Archive:
    file = f"{kind}.zip"
    return Archive(files("lbopt.instances.library").joinpath("data", file).read_bytes(), file)
