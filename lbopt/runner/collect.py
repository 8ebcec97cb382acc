"""`collect`: what a store holds of some tasks already. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lbopt.runner.errors import DamagedRowError
from lbopt.runner.outcome import Failure
from lbopt.runner.store import Store
from lbopt.runner.task import Task

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
    everybody = list(tasks)
    more = len(everybody) - shown
    names = [called(task) for task in everybody[:shown]] + ([f"and {more} more"] if more > 0 else [])
    return ", ".join(names)
