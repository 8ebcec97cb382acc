"""Everything in the library, by name and by class."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from lbopt.exceptions import InputError
from lbopt.instances.library.archive import Archive
from lbopt.instances.library.entry import Entry
from lbopt.instances.library.runs import RUN_KIND, run_names
from lbopt.instances.names import did_you_mean

#: The classes, each in a file of its own.
KINDS = {
    "tiny": "solvable by hand, each demonstrates one thing",
    "steady": "decode steps of a fleet that has been busy for long",
    "cold": "an empty fleet meets a full queue",
    "partition": "number partitioning: every request is admitted to an empty fleet",
    "hard": "many free slots a worker, odd sizes",
    "adversarial": "found by search: small, and bad for a rule or a bound",
}


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
        raise InputError(f"{name!r} is a whole run and no step problem; `lbopt library show {name}` shows it")
    known = names()
    near = did_you_mean(name, known) or f"; `lbopt library list` shows its {len(known)} names"
    raise InputError(f"no entry {name!r} in the library{near}")


@cache
def _archive(kind: str) -> Archive:
    file = f"{kind}.zip"
    return Archive(files("lbopt.instances.library").joinpath("data", file).read_bytes(), file)
