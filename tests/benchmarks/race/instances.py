"""The step problems of a race: from the packaged library, from the seeded classes of steady states, from files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.instances import library
from lbopt.model import StepProblem
from lbopt.spec import did_you_mean
from lbopt.studies.gap.decisions import read_states
from lbopt.studies.progress import Progress
from tests.benchmarks.race.config import RaceConfig
from tools.steady.state_sets import StateSet, state_set

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RaceInstance:
    """A step problem with a name.

    Parameters
    ----------
    name
        As tables show it.
    group
        What it is summarised with: the class of its states, its kind in the library, "files".
    problem
        The problem.
    best, bound
        Best known value and bound from elsewhere, tokens; None where nobody gave one.
    """

    name: str
    group: str
    problem: StepProblem
    best: int | None = None
    bound: int | None = None


def gather_instances(config: RaceConfig, progress: Progress) -> list[RaceInstance]:
    """Return the instances that the configuration names, in its order; the same problem is taken once."""
    if not config.instances and not config.states:
        raise InputError(
            "the race has no instance; name some with --instances (names of the library, 'all', problem files) or with "
            "--states (classes of steady states, with --data)"
        )
    sets = [state_set(name) for name in config.states]  # a typo costs nothing
    found: dict[str, RaceInstance] = {}
    progress.begin("gathering instances", len(config.instances) + len(sets))
    for name in config.instances:
        for one in _read_file(Path(name)) if name.endswith((".json", ".jsonl")) else _from_library(name):
            found.setdefault(one.problem.digest, one)
        progress.advance()
    for chosen in sets:
        for one in steady_instances(chosen, data=config.data, count=config.count, shift=config.shift):
            found.setdefault(one.problem.digest, one)
        progress.advance()
    if not found:
        raise InputError(f"the classes {', '.join(config.instances)} of the library are empty; name others")
    names = [one.name for one in found.values()]
    doubled = repeated(names)
    if doubled is not None:
        raise InputError(f"two different instances are called '{doubled}'; rename one of the files")
    return list(found.values())


def steady_instances(chosen: StateSet, *, data: str | None, count: int, shift: int) -> list[RaceInstance]:
    """Draw the first `count` states of a class, its seed moved by `shift`.

    Parameters
    ----------
    chosen
        The class of states.
    data
        Folder of the traces.
    count
        Number of states.
    shift
        Added to the seed of the class.
    """
    if count > chosen.count:
        raise InputError(f"class '{chosen.name}' has {chosen.count} states; {count} were asked for")
    records = chosen.records(data)
    shifted = replace(chosen, seed=chosen.seed + shift)
    label = f"{chosen.name}+{shift}" if shift else chosen.name
    return [
        RaceInstance(name=f"{label}/{index}", group=label, problem=problem)
        for index, problem in enumerate(shifted.problems(records, count))
    ]


def _read_file(path: Path) -> Iterator[RaceInstance]:
    if path.suffix == ".json":
        problem = StepProblem.from_json(path)
        problem.refuse_conditions("a race")
        yield RaceInstance(name=path.stem, group="files", problem=problem)
        return
    for index, state in enumerate(read_states(path)):
        state.problem.refuse_conditions("a race")
        yield RaceInstance(name=f"{path.stem}/{index}", group=path.stem, problem=state.problem)


def _from_library(wanted: str) -> Iterator[RaceInstance]:
    known = library.names()
    if wanted == ALL:
        chosen = known
    elif wanted in library.KINDS:
        chosen = library.names(wanted)
    elif wanted in known:
        chosen = [wanted]
    else:
        near = did_you_mean(wanted, [*known, *library.KINDS])
        raise InputError(
            f"there is no instance '{wanted}' in the library{near}; expected one of its {len(known)} names, a class "
            f"({', '.join(library.KINDS)}), '{ALL}', or a file that ends in .json or .jsonl"
        )
    for entry in map(library.load, chosen):
        yield RaceInstance(name=entry.name, group=entry.kind, problem=entry.problem, best=entry.best, bound=entry.bound)
