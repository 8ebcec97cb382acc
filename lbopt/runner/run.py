"""`collect`: what a store holds of some tasks already. Nothing is run.

`run_tasks`: computes what a store does not hold yet, and stores each result as it ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from lbopt.exceptions import InputError
from lbopt.runner.engines import Engine, make_engine
from lbopt.runner.row import DamagedRowError, EngineError, Failure, Outcome
from lbopt.runner.store import Store
from lbopt.runner.task import Task, canonical_json

_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What there is of some tasks, each key once, in the order in which the tasks were given.

    Parameters
    ----------
    answers
        What the functions returned, by key.
    failures
        Why there is no answer, by key.
    missing
        Tasks of which the store holds nothing that can be used.
    failed
        The tasks of `failures`.
    damaged
        Those of `missing` that have a row, which is damaged.
    """

    answers: dict[str, Any]
    failures: dict[str, Failure]
    missing: tuple[Task, ...]
    failed: tuple[Task, ...]
    damaged: tuple[Task, ...] = ()

    def __len__(self) -> int:
        return len(self.answers) + len(self.failures) + len(self.missing)


def collect(tasks: Iterable[Task], store: Store) -> Collection:
    """Return what `store`, open to read or to write, holds of the tasks."""
    wanted = {task.key: task for task in tasks}
    answers: dict[str, Any] = {}
    failures: dict[str, Failure] = {}
    missing = []
    failed = []
    damaged = []
    for key, task in wanted.items():
        try:
            row = store.get(task)
        except DamagedRowError:
            row = None
            damaged.append(task)
        if row is None:
            missing.append(task)
        elif row.failure is None:
            answers[key] = row.answer
        else:
            failures[key] = row.failure
            failed.append(task)
    return Collection(
        answers=answers,
        failures=failures,
        missing=tuple(missing),
        failed=tuple(failed),
        damaged=tuple(damaged),
    )


def called(task: Task) -> str:
    """Return the task as the call that it is, cut where it gets long, for sentences."""
    given = [f"{name}={json.dumps(value)}" for name, value in task.parameters.items()]
    if task.seed is not None:
        given.append(f"seed={task.seed}")
    text = f"{task.function.partition(':')[2]}({', '.join(given)})"
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 4]}...)"


def named(tasks: Iterable[Task], shown: int = 3) -> str:
    """Return the names of the first tasks and how many more there are."""
    every = list(tasks)
    more = len(every) - shown
    names = [called(task) for task in every[:shown]] + ([f"and {more} more"] if more > 0 else [])
    return ", ".join(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How far a run has come; its four numbers add up to the tasks that were given, each key counted once.

    Parameters
    ----------
    computed
        Tasks that got their answer in this run.
    skipped
        Tasks that were not run, because the store has an answer, or a failure that is not to be tried again.
    failed
        Tasks that failed in this run.
    remaining
        Tasks that have not ended.
    """

    computed: int = 0
    skipped: int = 0
    failed: int = 0
    remaining: int = 0


#: Called before the first task with None, and after each stored outcome with that.
Progress = Callable[[Summary, Outcome | None], object]


def run_tasks(
    tasks: Iterable[Task],
    store: Store,
    *,
    engine: str | Engine = "serial",
    progress: Progress | None = None,
    retry_failures: bool = True,
    provenance: Mapping[str, Any] | None = None,
) -> Summary:
    """Run the tasks whose answers `store` does not hold, and store how each ended.

    Ctrl-C stops the run with KeyboardInterrupt; what had ended is stored, and the same call goes on from there.

    Parameters
    ----------
    tasks
        Those that have the same key are run once.
    engine
        A name for an engine with its default options, or one from `make_engine`.
    progress
        Called in this thread after each task with the state of the run.
    retry_failures
        Whether tasks whose failure is stored are run again.
    provenance
        Stored with every row under "extra", such as the command or the versions of solvers.

    Returns
    -------
    Summary
        With nothing remaining.
    """
    if store.read_only:
        raise InputError(f"store {store.path} is open to read only; open it to write")
    chosen = make_engine(engine) if isinstance(engine, str) else engine
    origin = {"engine": chosen.name} | ({"extra": dict(provenance)} if provenance else {})
    canonical_json(origin, "provenance")
    show = progress or _silent
    wanted = {task.key: task for task in tasks}
    stored = store.statuses()
    settled = ("done",) if retry_failures else ("done", "failed")
    pending = {key: task for key, task in wanted.items() if stored.get(key) not in settled}
    summary = Summary(skipped=len(wanted) - len(pending), remaining=len(pending))
    show(summary, None)
    if not pending:
        return summary
    with closing(_outcomes(chosen, list(pending.values()))) as outcomes:
        for outcome in outcomes:
            if outcome.key not in pending:
                raise EngineError(f"engine '{chosen.name}' answered for task {outcome.key}, which it was not given")
            store.put(pending.pop(outcome.key), outcome, origin)
            done = outcome.failure is None
            summary = replace(
                summary,
                computed=summary.computed + done,
                failed=summary.failed + (not done),
                remaining=len(pending),
            )
            show(summary, outcome)
    return summary


def _outcomes(engine: Engine, tasks: list[Task]) -> Generator[Outcome, None, None]:
    """Yield what the engine yields; what the system refuses it (processes, files, room) is an error in one sentence.

    What a task is refused is that task's failure, and never comes here.
    """
    try:
        yield from engine.run(tasks)
    except OSError as error:
        raise EngineError(
            f"engine '{engine.name}' cannot go on, because the system refuses it something: {error}; what has ended "
            "is stored, mend that and run again"
        ) from error


def _silent(summary: Summary, outcome: Outcome | None) -> None:
    """Show nothing."""
