"""What a recipe makes, and a file of the library written: a zip of plain JSON.

Every member carries the same date and the entries keep their order, so that equal content gives an equal file.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbopt.instances.library import Entry, Origin, Record
from lbopt.instances.library.collection import CERTIFICATE, ENTRY
from lbopt.model import StepProblem
from lbopt.whole_file import whole_file

_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A problem with its origin, before anything is known of its optimum."""

    name: str
    kind: str
    explanation: str
    origin: Origin
    problem: StepProblem

    def known(self, record: Record) -> Entry:
        """Return the entry of a draft of which so much is known."""
        return Entry(
            name=self.name,
            kind=self.kind,
            explanation=self.explanation,
            origin=self.origin,
            problem=self.problem,
            record=record,
        )


def write_archive(path: Path, entries: Sequence[Entry], certificates: Mapping[str, dict[str, Any]]) -> None:
    """Write the entries, and the certificates by name of their entry, to `path`, whole or not at all."""
    with whole_file(path) as partial, zipfile.ZipFile(partial, "w") as target:
        for entry in entries:
            _add(target, entry.name + ENTRY, _lines(entry.to_dict()))
            if entry.name in certificates:
                _add(target, entry.name + CERTIFICATE, json.dumps(certificates[entry.name], separators=(",", ":")))


def _add(target: zipfile.ZipFile, name: str, text: str) -> None:
    member = zipfile.ZipInfo(name, _DATE)
    member.external_attr = 0o644 << 16
    target.writestr(member, text, zipfile.ZIP_DEFLATED, compresslevel=9)


def _lines(fields: dict[str, Any]) -> str:
    """Write one field a line, and one a line inside an object: readable, and short where lists are long."""
    lines = []
    for name, value in fields.items():
        text = json.dumps(value)
        if isinstance(value, dict):
            inner = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in value.items())
            text = "{\n" + inner + "\n  }"
        lines.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
