"""What became of each mutant, one JSON line each, in a file that is only appended to.

A mutant that was killed stays killed until its file changes. A survivor is tried again when its tests have changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutation.operators import Mutant
from tests.mutation.scope import ROOT

KILLED, TIMEOUT, SURVIVED = "killed", "timeout", "survived"


@dataclass(frozen=True, slots=True)
class Record:
    """One trial.

    Parameters
    ----------
    id, hash, change
        The mutant.
    tests
        Hash of the test files that were run.
    outcome
        "killed", "timeout" or "survived".
    by
        The test that failed.
    seconds
        Of wall clock.
    """

    id: str
    hash: str
    change: str
    tests: str
    outcome: str
    by: str
    seconds: float


def hash_of(tests: list[str], root: Path = ROOT) -> str:
    """Return a hash of the names and texts of test files, in this checkout or in a copy of it."""
    sha = hashlib.sha256()
    for test in tests:
        sha.update(test.encode() + (root / test).read_bytes())
    return sha.hexdigest()[:16]


def hash_of_package() -> str:
    """Return a hash of all sources of the package."""
    sha = hashlib.sha256()
    for path in sorted((ROOT / "lbopt").rglob("*.py")):
        sha.update(path.as_posix().encode() + path.read_bytes())
    return sha.hexdigest()[:16]


class Records:
    """The records of a file.

    Parameters
    ----------
    path
        The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {(record.id, record.hash): record for record in self._read()}

    def _read(self) -> Iterator[Record]:
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                try:
                    yield Record(**json.loads(line))
                except (ValueError, TypeError):
                    continue  # the line that was being written when a run was stopped

    def find(self, mutant: Mutant, tests: list[str]) -> Record | None:
        """Return the record of a mutant that still holds, or None."""
        record = self._known.get((mutant.id, mutant.hash))
        if record is not None and record.outcome == SURVIVED and record.tests != hash_of(tests):
            return None
        return record

    def add(self, record: Record) -> None:
        """Append a record."""
        self._known[record.id, record.hash] = record
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")
