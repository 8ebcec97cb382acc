"""Build the library: draw each problem from its recipe, solve what is not known yet, keep what is known better.

An entry whose problem has not changed keeps its record; with `resolve_open` those that are not settled are solved
again, from the known assignment on. Every entry has at least a greedy assignment and an elementary bound. Each class is
written as soon as it is done, and also after Ctrl-C or a contradiction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lbopt.exceptions import CertificateError, LbOptError
from lbopt.files import read_bytes
from lbopt.instances.library import KINDS, Entry
from lbopt.instances.library.collection import Archive
from lbopt.solvers import solve
from lbopt.solvers.registry import compiled
from tools.library.archive import Draft, write_archive
from tools.library.knowledge import Known, joined, starting_point
from tools.library.recipes import RECIPES

#: Called with the entry after it was solved and what was known before (None: nothing).
Listener = Callable[[Entry, Entry | None], None]


def build(
    folder: Path,
    *,
    time_limit: float,
    solver: str = "exact",
    patterns: Sequence[str] = ("*",),
    resolve_open: bool = False,
    listener: Listener = lambda entry, before: None,
) -> None:
    """Write the files of the library into `folder`, which may hold an earlier state of it.

    Parameters
    ----------
    folder
        Of the files KIND.zip; must exist.
    time_limit
        Seconds per problem that is solved; 0 solves nothing.
    solver
        Of `lbopt.solve`.
    patterns
        Which entries are solved, by name: "cold-*". The others keep their record, and a class without any its file.
    resolve_open
        Also solve again what is not settled: no proof yet, or none that others can check.
    listener
        Hears of every entry.

    Raises
    ------
    CertificateError
        Where a proof and a value contradict each other.
    """
    for kind in KINDS:
        path = folder / f"{kind}.zip"
        if path.is_file() and not any(_matches(name, patterns) for name in RECIPES[kind]):
            continue
        before = Archive(read_bytes(path), path.name) if path.is_file() else None
        done: list[tuple[Entry, Known]] = []
        stopped: KeyboardInterrupt | LbOptError | None = None
        for name, recipe in RECIPES[kind].items():
            old, certificate = _kept(before, name)
            wanted = time_limit > 0 and stopped is None and _matches(name, patterns)
            draft = recipe()
            known = _known(draft, old, certificate)
            fresh = old is None or known.record is not old.record
            if wanted and (fresh or (resolve_open and not known.record.settled)):
                try:
                    known = _solved(draft, known, solver, time_limit)
                except (KeyboardInterrupt, LbOptError) as error:  # the others are taken over as they are
                    stopped = error
            done.append((draft.known(known.record), known))
            listener(done[-1][0], old)
        kept = {entry.name: known.certificate for entry, known in done if known.certificate is not None}
        write_archive(path, [entry for entry, _ in done], kept)
        if stopped is not None:
            raise stopped


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _kept(before: Archive | None, name: str) -> tuple[Entry | None, dict[str, Any] | None]:
    if before is None or name not in before.names:
        return None, None
    return before.entry(name), before.certificate(name)


def _known(draft: Draft, old: Entry | None, certificate: dict[str, Any] | None) -> Known:
    same = old is not None and old.problem == draft.problem
    return Known(old.record, certificate) if old is not None and same else starting_point(draft.problem)


def _solved(draft: Draft, known: Known, solver: str, time_limit: float) -> Known:
    result = solve(draft.problem, solver=compiled(solver), time_limit=time_limit, hint=known.record.assignment)
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    try:
        return joined(known, draft.problem, result)
    except CertificateError as error:
        raise CertificateError(f"{draft.name}: {error}") from None
