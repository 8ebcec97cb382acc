"""`run_race`: every solver on every instance, through a store; what it holds already is not run again.

Group by group and solver by solver, each such batch in a fresh process of its own (engine "isolated"), so that no
solver's threads and memory stand in another's way, and a solver that hangs or crashes costs its own run alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbopt.runner import Isolated, Outcome, Store, Summary, Task, run_tasks
from lbopt.solvers.registry import OWN
from lbopt.studies.progress import Progress, Silent
from tests.benchmarks.race.config import RaceConfig
from tests.benchmarks.race.contradictions import find_contradictions
from tests.benchmarks.race.instances import RaceInstance
from tests.benchmarks.race.outcome import RaceOutcome
from tests.benchmarks.race.record import RaceRecord
from tests.benchmarks.race.versions import solver_version

MEASURE = "tests.benchmarks.race.measure:measure"
WARM_UP = "tests.benchmarks.race.measure:warmed"

#: A run is killed so many seconds after its limit: building the model, imports and a slow stop have room in it.
GRACE_SECONDS = 120.0


def run_race(
    config: RaceConfig, instances: Sequence[RaceInstance], store: Path, progress: Progress | None = None
) -> RaceOutcome:
    """Run what the store at `store` does not hold yet. Ctrl-C ends it early and keeps what is done.

    Parameters
    ----------
    config
        What is asked.
    instances
        The step problems.
    store
        File that keeps the runs.
    progress
        Shows progress; None shows nothing.
    """
    progress = progress or Silent()
    tasks = _tasks(config, instances)
    interrupted = False
    with Store(store) as opened:
        try:
            _compile(config, instances, tasks, opened, progress)
            progress.begin("racing", len(instances) * len(config.solvers))
            for batch in _batches(config, instances):
                run_tasks(
                    [tasks[entry] for entry in batch],
                    opened,
                    engine=Isolated(config.jobs, config.time_limit + GRACE_SECONDS, reuse=True),
                    progress=_Advance(progress),
                    retry_failures=config.retry_failures,
                )
        except KeyboardInterrupt:
            interrupted = True
        records = [
            RaceRecord.of_row(
                opened.get(tasks[one.name, solver]),
                instance=one.name,
                group=one.group,
                digest=one.problem.digest,
                solver=solver,
            )
            for one in instances
            for solver in config.solvers
        ]
    marked, contradictions = find_contradictions(records, instances)
    outcome = RaceOutcome(config, list(instances), marked, contradictions, interrupted)
    outcome.notes.extend(_notes(outcome))
    return outcome


def _tasks(config: RaceConfig, instances: Sequence[RaceInstance]) -> dict[tuple[str, str], Task]:
    """Return the task of each (instance, solver). Its key is made of what can move the numbers, not of names."""
    versions = {solver: solver_version(solver) for solver in config.solvers}
    tasks = {}
    for one in instances:
        problem = one.problem.to_dict()  # the content, so that a store needs no file and no path
        for solver in config.solvers:
            given = {
                "problem": problem,
                "solver": solver,
                "time_limit": float(config.time_limit),
                "version": versions[solver],
            }
            tasks[one.name, solver] = Task(MEASURE, given, config.seed)
    return tasks


def _batches(config: RaceConfig, instances: Sequence[RaceInstance]) -> list[list[tuple[str, str]]]:
    groups = dict.fromkeys(one.group for one in instances)
    return [
        [(one.name, solver) for one in instances if one.group == group] for group in groups for solver in config.solvers
    ]


def _compile(
    config: RaceConfig,
    instances: Sequence[RaceInstance],
    tasks: dict[tuple[str, str], Task],
    store: Store,
    progress: Progress,
) -> None:
    """Compile lbopt's own search once, without the limit that runs are killed at, if any run will need it."""
    settled = store.statuses()
    wanted = {
        (solver, one.problem.horizon > 0)
        for one in instances
        for solver in config.solvers
        if solver in OWN and tasks[one.name, solver].key not in settled
    }
    if not wanted:
        return
    progress.begin("compiling", len(wanted))
    for solver, window in sorted(wanted):
        for _ in Isolated().run([Task(WARM_UP, {"solver": solver, "window": window}, None)]):
            progress.advance()


class _Advance:
    """Moves the bar by what a batch had already and by each run that ends."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, summary: Summary, outcome: Outcome | None) -> None:
        self._progress.advance(summary.skipped if outcome is None else 1)


def _notes(outcome: RaceOutcome) -> list[str]:
    """Say what a reader must know to read the numbers rightly."""
    notes = []
    passed: dict[tuple[str, str], int] = {}
    for record in outcome.records:
        if record.answered_by and record.answered_by not in (record.solver, "none"):
            passed[record.solver, record.answered_by] = passed.get((record.solver, record.answered_by), 0) + 1
    for (solver, answered), count in passed.items():
        notes.append(
            f"problems that {solver} passed on to {answered}: {count}; their times are of that, model building included"
        )
    outside: dict[str, int] = {}
    for record in outcome.records:
        if record.status == "claimed" and record.trusted is False:
            outside[record.solver] = outside.get(record.solver, 0) + 1
    for solver, count in outside.items():
        notes.append(
            f"claims of {solver} about numbers beyond the range in which its claims were found to hold: {count}; "
            "they count as claimed here, and lbopt would not use them"
        )
    if outcome.config.jobs > 1:
        notes.append(f"{outcome.config.jobs} runs at a time: the times are of neighbours that share caches and memory")
    return notes
