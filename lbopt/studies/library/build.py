"""Build the library: draw each problem from its recipe, solve what is not known yet, keep what is known better.

An entry whose problem has not changed keeps its record; with `resolve_open` those without a proof are solved again,
from the known assignment on. Each class is written as soon as it is done, and also after Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from lbopt.instances.library import KINDS, Entry
from lbopt.instances.library.archive import Archive, write_archive
from lbopt.instances.library.entry import Draft
from lbopt.instances.library.recipes import RECIPES
from lbopt.solvers import solve
from lbopt.studies.library.knowledge import Known, joined, starting_point
from lbopt.studies.progress import Progress, Silent

#: Called with the entry after it was solved and what was known before (None: nothing).
Listener = Callable[[Entry, Entry | None], None]


def build(
    folder: Path,
    *,
    time_limit: float,
    solver: str = "exact",
    kinds: Collection[str] = tuple(KINDS),
    resolve_open: bool = False,
    progress: Progress | None = None,
    listener: Listener = lambda entry, before: None,
) -> None:
    """Write the files of the library into `folder`, which may hold an earlier state of it.

    Parameters
    ----------
    folder
        Of the files KIND.zip; must exist.
    time_limit
        Seconds per problem that is solved.
    solver
        Of `lbopt.solve`.
    kinds
        Classes to build; the files of others stay as they are.
    resolve_open
        Also solve again what has no proof yet.
    """
    told = progress or Silent()
    for kind in KINDS:
        if kind not in kinds:
            continue
        path = folder / f"{kind}.zip"
        before = Archive(path.read_bytes(), path.name) if path.is_file() else None
        recipes = RECIPES[kind]
        told.begin(kind, len(recipes))
        done: dict[str, tuple[Entry, Known]] = {}
        interrupted = False
        for name, recipe in recipes.items():
            old = before.entry(name) if before is not None and name in before.names else None
            certificate = before.certificate(name) if before is not None and old is not None else None
            try:
                if interrupted:
                    raise KeyboardInterrupt
                entry, known = _built(recipe(), old, certificate, solver, time_limit, resolve_open)
            except KeyboardInterrupt:  # what was known stays known; the rest of the class is copied
                interrupted = True
                if old is None:
                    continue
                entry, known = old, Known(old.record, certificate)
            done[name] = (entry, known)
            listener(entry, old)
            told.advance()
        kept = {name: known.certificate for name, (_, known) in done.items() if known.certificate is not None}
        write_archive(path, [entry for entry, _ in done.values()], kept)
        if interrupted:
            raise KeyboardInterrupt


def _built(
    draft: Draft,
    old: Entry | None,
    certificate: dict[str, object] | None,
    solver: str,
    time_limit: float,
    resolve_open: bool,
) -> tuple[Entry, Known]:
    same = old is not None and old.problem == draft.problem
    known = Known(old.record, certificate) if old is not None and same else starting_point(draft.problem)
    if not same or (resolve_open and known.record.status != "proved"):
        result = solve(draft.problem, solver=solver, time_limit=time_limit, hint=known.record.assignment)
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        known = joined(known, draft.problem, result)
    entry = Entry(
        name=draft.name,
        kind=draft.kind,
        explanation=draft.explanation,
        origin=draft.origin,
        problem=draft.problem,
        record=known.record,
    )
    return entry, known
