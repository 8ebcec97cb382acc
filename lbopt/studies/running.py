"""`run_stored`: the tasks of a study, run on an engine through a store, or only collected from it.

`of_tasks` makes a study of what is its own: its tasks, and what becomes of their answers.

What every study needs around its tasks: a store of one's own or none, progress, Ctrl-C that keeps what has ended,
failures said in a sentence each, and figures made of a store that was filled elsewhere.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.runner import Collection, Failure, Outcome, Store, Summary, Task, collect, make_engine, run_tasks
from lbopt.runner.run import called, named
from lbopt.studies.progress import Progress, Silent

#: So many failures are said one by one; the rest is counted.
_FAILURES_SAID = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a study has to work with.

    Parameters
    ----------
    answers
        What the functions of the tasks returned, by key, in the order of the tasks.
    failures
        Why there is no answer, by key.
    missing
        Tasks that have not ended, because the run was interrupted or because it only collected.
    interrupted
        Whether Ctrl-C ended the run.
    notes
        Sentences for the user: what failed, what is missing, how to go on.
    """

    answers: dict[str, Any]
    failures: dict[str, Failure]
    missing: tuple[Task, ...]
    interrupted: bool
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every task has its answer."""
        return not (self.failures or self.missing)

    def raise_refusals(self) -> None:
        """Raise what a task said of its parameters: a value that the user gave is no failure of the study."""
        for failure in self.failures.values():
            if failure.exception == InputError.__name__:
                raise InputError(failure.message)


def run_stored(
    tasks: Iterable[Task],
    *,
    store: Path | None = None,
    engine: str = "serial",
    collect_only: bool = False,
    progress: Progress | None = None,
    what: str = "running",
    retry_failures: bool = True,
) -> Stored:
    """Run the tasks that the store does not hold and return the answers of all.

    Parameters
    ----------
    tasks
        Those that have the same key are run once.
    store
        Its file, made if there is none; None takes one that is gone at the end.
    engine
        As the user writes it, e.g. "joblib:jobs=8" or "dask://node:8786".
    collect_only
        Whether to run nothing and take what the store, which must exist, has got. It is read only.
    progress
        Shows one stage, called `what`, with a unit for each task.
    retry_failures
        Whether tasks whose failure is stored are run again.

    Raises
    ------
    InputError
        If the engine is unknown, or there is no store to collect from.
    """
    everything = list({task.key: task for task in tasks}.values())
    chosen = make_engine(engine)  # before a store is made
    progress = progress or Silent()
    if collect_only:
        if store is None:
            raise InputError("to collect without running needs the store that holds the results; give it with --store")
        with Store(store, read_only=True) as opened:
            found = collect(everything, opened)
        progress.begin(what, len(everything))
        progress.advance(len(everything) - len(found.missing))
        return _stored(found, _missing_said(found, store))
    interrupted = False
    with _store(store) as opened:
        progress.begin(what, len(everything))
        try:
            run_tasks(everything, opened, engine=chosen, progress=_Advance(progress), retry_failures=retry_failures)
        except KeyboardInterrupt:
            interrupted = True
        found = collect(everything, opened)
    return _stored(found, _interruption_said(found, store) if interrupted else [], interrupted=interrupted)


class TimedOutcome(Protocol):
    """An outcome that says how long it took."""

    seconds: float


#: Runs the tasks of a study as its caller wants them run; a task that refuses its parameters is raised.
RunTasks = Callable[[Iterable[Task]], Stored]

_Config = TypeVar("_Config", contravariant=True)
_Made = TypeVar("_Made", bound=TimedOutcome)
_Outcome = TypeVar("_Outcome", bound=TimedOutcome, covariant=True)

_PARAMETERS = """

Parameters
----------
config
    What is asked.
progress
    Shows progress; None shows nothing.
store
    File that keeps the answers of tasks; None keeps none after the run.
engine
    Where tasks run, such as "joblib:jobs=2".
collect_only
    Whether to run nothing and to read what the store holds.
"""


class StudyOfTasks(Protocol[_Config, _Outcome]):
    """A function that runs a study of tasks."""

    def __call__(
        self,
        config: _Config,
        progress: Progress | None = None,
        *,
        store: Path | None = None,
        engine: str = "serial",
        collect_only: bool = False,
    ) -> _Outcome:
        """Run the study; the parameters are those of `run_stored`."""


def of_tasks(what: str) -> Callable[[Callable[[_Config, RunTasks], _Made]], StudyOfTasks[_Config, _Made]]:
    """Return a decorator that makes a study's function of one of its configuration and of what runs its tasks.

    Progress shows one stage, called `what`. Store, engine and clock are here: the study says which tasks it has, calls
    ``run(tasks)``, and makes its outcome of the answers.
    """

    def decorated(body: Callable[[_Config, RunTasks], _Made]) -> StudyOfTasks[_Config, _Made]:
        def study(
            config: _Config,
            progress: Progress | None = None,
            *,
            store: Path | None = None,
            engine: str = "serial",
            collect_only: bool = False,
        ) -> _Made:
            def run(tasks: Iterable[Task]) -> Stored:
                stored = run_stored(
                    tasks, store=store, engine=engine, collect_only=collect_only, progress=progress, what=what
                )
                stored.raise_refusals()
                return stored

            begin = compile_time.clock()
            outcome = body(config, run)
            outcome.seconds = compile_time.clock() - begin
            return outcome

        study.__name__, study.__qualname__, study.__module__ = body.__name__, body.__qualname__, body.__module__
        study.__doc__ = inspect.cleandoc(body.__doc__ or "") + _PARAMETERS
        study.__annotations__ |= {name: body.__annotations__[name] for name in ("config", "return")}
        return study

    return decorated


@contextmanager
def _store(path: Path | None) -> Iterator[Store]:
    if path is not None:
        with Store(path) as opened:
            yield opened
        return
    with tempfile.TemporaryDirectory(prefix="lbopt-") as scratch, Store(Path(scratch) / "store.sqlite") as opened:
        yield opened


class _Advance:
    """Moves the bar by what the store had already, and by each task that ends."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, summary: Summary, outcome: Outcome | None) -> None:
        self._progress.advance(summary.skipped if outcome is None else 1)


def _stored(found: Collection, notes: list[str], *, interrupted: bool = False) -> Stored:
    said = [
        f"{called(task)} failed ({failure.kind}): {failure.exception} {failure.message}".replace(":  ", ": ")
        for task, failure in zip(found.failed, found.failures.values(), strict=True)
    ]
    more = len(said) - _FAILURES_SAID
    said = said[:_FAILURES_SAID] + ([f"{more} more tasks failed; `lbopt export` lists them"] if more > 0 else [])
    return Stored(
        answers=found.answers,
        failures=found.failures,
        missing=found.missing,
        interrupted=interrupted,
        notes=(*said, *notes),
    )


def _missing_said(found: Collection, store: Path) -> list[str]:
    if not found.missing:
        return []
    said = [f"{len(found.missing)} of {len(found)} results are not in {store}: {named(found.missing)}"]
    if found.damaged:
        said.append(f"damaged rows of {store}: {len(found.damaged)}; without --collect-only they are run again")
    return said


def _interruption_said(found: Collection, store: Path | None) -> list[str]:
    ended = f"interrupted: {len(found) - len(found.missing)} of {len(found)} tasks have ended"
    if store is None:
        return [f"{ended}, and are not kept: there is no store"]
    return [f"{ended}; {store} keeps them, and the same command goes on"]
