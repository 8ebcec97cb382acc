"""The packaged library: its problems, and whole small runs that are bad for rules.

Whole small runs of the library: each is the worst found for a rule, with what the rule pays and the optimum.

They are the class `run`. Their lines in `data/runs.json` have the search that found them; a run is a trace and a
fleet, so it is no `Entry`, which is one step problem.

Everything in the library, by name and by class.

A file of it is a zip of plain JSON, `NAME.json` for each entry and `NAME.certificate.json` where one is kept.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import parse_json, shown
from lbopt.files.npz import ZipMembers
from lbopt.instances.library.entry import Entry, strict_fields
from lbopt.kinds import kinds_of
from lbopt.spec import did_you_mean

#: The class of whole runs, beside those of `collection.KINDS`, which are of single steps.
RUN_KIND, RUN_EXPLANATION = "run", "found by search: whole small runs, and bad for a rule"

#: What a run was searched for: the cost, and the optimum that it is compared with.
MEASURES = {
    "placing": "sum of the largest loads, against the best workers at the rule's own starts",
    "barriers": "sum of the largest loads, against the best starts and workers",
    "seconds": "seconds in tokens (the fixed part of a step counts as many), against the best starts and workers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One run, all requests waiting from the beginning.

    Parameters
    ----------
    rule
        As `make_policy` takes it.
    measure
        One of `MEASURES`.
    workers, slots
        G and B.
    prompt, output
        Tokens and steps of the requests, in the order of arrival.
    fixed
        Tokens that a step costs beside its largest load; 0 but for seconds.
    reached, least
        Tokens that the rule and the optimum pay.
    seed, trials
        Of the search: its seed, and runs that it judged for this rule, measure and fleet.
    """

    rule: str
    measure: str
    workers: int
    slots: int
    prompt: tuple[int, ...]
    output: tuple[int, ...]
    fixed: int
    reached: int
    least: int
    seed: int
    trials: int

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InputError(f"{self.name}: measure is {self.measure!r}; expected one of {', '.join(MEASURES)}")
        if not 0 < self.least <= self.reached:
            raise InputError(f"{self.name}: reached is {self.reached}, least is {self.least}; expected 0 < least <= it")
        if not 0 < len(self.prompt) == len(self.output):
            raise InputError(f"{self.name}: {len(self.prompt)} prompts and {len(self.output)} outputs; expected a pair")

    @property
    def name(self) -> str:
        """As users name it: run-jsq-g2-b2-barriers."""
        rule = re.sub(r"[^a-z0-9]+", "-", self.rule.lower())
        return f"run-{rule}-g{self.workers}-b{self.slots}-{self.measure}"

    @property
    def ratio(self) -> float:
        """How many times the optimum the rule pays."""
        return self.reached / self.least

    @property
    def command(self) -> str:
        """What finds it again."""
        return f"python -m tools.library.runs --seed {self.seed} --trials {self.trials}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"prompt": list(self.prompt), "output": list(self.output)}

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "the run") -> StoredRun:
        """Rebuild a run written by `to_dict`."""
        values = strict_fields(data, source, kinds_of(cls))
        return cls(**values | {"prompt": tuple(values["prompt"]), "output": tuple(values["output"])})


def run_names() -> list[str]:
    """Return the names of all stored runs, in the order of the library."""
    return list(_stored())


def load_run(name: str) -> StoredRun:
    """Return the stored run of that name; the message of an unknown one has the nearest."""
    if name not in _stored():
        near = did_you_mean(name, run_names()) or "; `lbopt show problems --class run` shows all"
        raise InputError(f"no run {name!r} in the library{near}")
    return _stored()[name]


def read_runs(text: str, source: str) -> list[StoredRun]:
    """Return the runs of a file that ``python -m tools.library.runs`` of a checkout wrote."""
    rows = parse_json(text, source)
    if not isinstance(rows, list):
        raise InputError(f"{source} holds no list of runs; expected what `python -m tools.library.runs --out` writes")
    return [StoredRun.from_dict(row, source=f"{source}: run {i + 1}") for i, row in enumerate(rows)]


@cache
def _stored() -> dict[str, StoredRun]:
    text = files("lbopt.instances.library").joinpath("data", "runs.json").read_text(encoding="utf-8")
    return {run.name: run for run in read_runs(text, "runs.json")}


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
