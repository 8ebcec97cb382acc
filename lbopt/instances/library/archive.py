"""A file of the library: a zip of plain JSON, `NAME.json` for each entry and `NAME.certificate.json` where one is kept.

Every member carries the same date and the entries keep their order, so that equal content gives an equal file.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import parse_json, shown
from lbopt.files.zip_members import ZipMembers
from lbopt.instances.library.entry import Entry
from lbopt.whole_file import whole_file

_ENTRY, _CERTIFICATE = ".json", ".certificate.json"
_DATE = (1980, 1, 1, 0, 0, 0)


class Archive:
    """An opened file of the library."""

    def __init__(self, content: bytes, source: str) -> None:
        self.source = source
        self._zip = ZipMembers(BytesIO(content), source)
        members = self._zip.names
        self._certificates = {name.removesuffix(_CERTIFICATE) for name in members if name.endswith(_CERTIFICATE)}
        self.names = [name.removesuffix(_ENTRY) for name in members if not name.endswith(_CERTIFICATE)]

    def entry(self, name: str) -> Entry:
        """Return the entry of that name, checked."""
        return Entry.from_dict(self._json(name + _ENTRY), source=f"{self.source}: {name}")

    def certificate(self, name: str) -> dict[str, Any] | None:
        """Return the certificate that is kept for the entry, as plain values; None where none is kept."""
        if name not in self._certificates:
            return None
        certificate: dict[str, Any] = self._json(name + _CERTIFICATE)
        return certificate

    def _json(self, member: str) -> Any:
        if member not in self._zip.names:
            raise InputError(f"{self.source} has no member {shown(member, 80)}; build the library again")
        return parse_json(self._zip.read(member), f"{self.source}: {shown(member, 80)}")


def write_archive(path: Path, entries: Sequence[Entry], certificates: Mapping[str, dict[str, Any]]) -> None:
    """Write the entries, and the certificates by name of their entry, to `path`, whole or not at all."""
    with whole_file(path) as partial, zipfile.ZipFile(partial, "w") as target:
        for entry in entries:
            _add(target, entry.name + _ENTRY, _lines(entry.to_dict()))
            if entry.name in certificates:
                _add(target, entry.name + _CERTIFICATE, json.dumps(certificates[entry.name], separators=(",", ":")))


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
