"""`lbopt solve`: a step problem from a file, or packaged problems of the library by their names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import filter as matching
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbopt.cli.from_config import as_verb, refuse_others
from lbopt.cli.study_verb import OUT
from lbopt.exceptions import InputError
from lbopt.files import called, check_name
from lbopt.studies.configuration import Configuration, Option, from_words

if TYPE_CHECKING:
    from lbopt.instances.library import Entry
    from lbopt.model import StepProblem

_OF_A_FILE = ("solver", "time_limit", "tie", "line", "effort", "target", "gap", "seed", "write")

#: Seconds for each packaged problem where none are given.
_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked(Configuration):
    problems: Annotated[
        tuple[str, ...],
        Option(
            "A step problem in JSON, or steps.jsonl with --line; or packaged problems, names or patterns: 'tiny-*'.",
            argument=True,
            empty=True,
        ),
    ] = ()
    solver: Annotated[
        str,
        Option(
            "exact, search, auto, brute-force, cp-sat, highs or pulp; of a file **all**: who proves it first?",
            first=True,
        ),
    ] = "exact"
    time_limit: Annotated[float | None, Option("Seconds.", first=True, shown="none; 10 for each packaged problem")] = (
        None
    )
    tie: Annotated[str, Option("**any** optimum, or the **leximax** one.", first=True)] = "any"
    line: Annotated[int | None, Option("Line of a steps.jsonl file, counted from 1.", first=True)] = None
    effort: Annotated[int | None, Option("Units of work, about microseconds, that every machine feels alike.")] = None
    target: Annotated[int | None, Option("Stop at an imbalance of so many tokens.")] = None
    gap: Annotated[int | None, Option("Stop where the bound is so near, tokens.")] = None
    seed: Annotated[int, Option("First seed.")] = 0
    write: Annotated[Path | None, Option("Also write the integer program (.lp or .mps).", first=True)] = None
    problem_class: Annotated[
        str | None, Option("Only packaged problems of this class, e.g. steady.", names=("--class",))
    ] = None
    open: Annotated[
        bool, Option("Only packaged problems whose optimum is not proved.", names=("--open",), first=True)
    ] = False


def _solve(**given: Any) -> None:
    """Solve one step problem and say what is known of the answer, or compare packaged problems with what is known.

    With `--solver all` the exact search and every installed solver answer in turn, each within the limit; below the
    comparison stands the answer of the first that proved it. With --out, writes the result as JSON.

    Packaged problems are solved from scratch; exit code 1 where a proof and a value contradict. With --out, writes
    NAME.result.json with certificates into that folder.

    Examples: `lbopt solve examples/one_step.json --solver highs` and `lbopt solve 'tiny-*'`
    """
    asked, out = from_words(_Asked, given), Path(given["out"]) if given["out"] else None
    if not (asked.problems or asked.problem_class or asked.open):
        raise InputError("name a file or a packaged problem (see: lbopt show problems), or '*' for all of these")
    first = Path(*asked.problems[:1])
    check_name(first, f"'{called(first)}'")
    if len(asked.problems) == 1 and (first.suffix or first.exists()):
        refuse_others(asked, "a file", _OF_A_FILE)
        _solve_file(asked, first, out)
    else:
        refuse_others(asked, "packaged problems", ("solver", "time_limit", "seed", "problem_class", "open"))
        _solve_packaged(asked, out)


solve = as_verb(_solve, "solve", _solve.__doc__ or "", (_Asked,), {"out": OUT})


def _solve_file(asked: _Asked, path: Path, out: Path | None) -> None:
    from lbopt import solve as solve_problem
    from lbopt.cli.console import print_table, say
    from lbopt.report.solve_tables import comparison_table, first_of, result_table
    from lbopt.solvers.front import check_stops
    from lbopt.solvers.registry import AUTO_ORDER, OWN, capabilities, is_available
    from lbopt.solvers.warm_up import warm
    from lbopt.whole_file import write_file

    if asked.solver not in OWN and asked.solver != "all":
        capabilities(asked.solver, "all")
    for target in (out, asked.write):
        if target is None:
            continue
        check_name(target, f"'{called(target)}'")
        if target.is_dir() or not target.absolute().parent.is_dir():
            raise InputError(f"cannot write '{target}': it is a folder, or its folder does not exist")
    chosen = _problem(path, asked.line)
    if asked.write is not None:
        chosen.write(asked.write)
    stops: dict[str, Any] = {"effort": asked.effort, "target": asked.target, "gap": asked.gap}
    if asked.solver == "all":
        check_stops(asked.solver, **stops)
        found = {}
        for name in ("exact", *filter(is_available, AUTO_ORDER)):
            if name != "exact":  # loading its package is no part of its time; compiling never is
                warm(name, window=False)
            found[name] = solve_problem(chosen, name, asked.time_limit, asked.seed, tie=asked.tie)
        print_table(comparison_table(found))
        result = found[first_of(found)]
    else:
        result = solve_problem(chosen, asked.solver, asked.time_limit, asked.seed, tie=asked.tie, **stops)
    print_table(result_table(chosen, result))
    if out is not None:
        try:
            data = result.to_dict(certificate=True)
        except KeyboardInterrupt:  # the answer was worth the wait, whatever becomes of its proof
            data = result.to_dict()
            say("the certificate was not written: Ctrl-C came first")
        if result.proof in ("certificate", "search") and "certificate_left_out" in data:
            say(f"the certificate was not written: {data['certificate_left_out']}")
        write_file(out, json.dumps(data) + "\n")
        say(f"result: {out}")


def _problem(path: Path, line: int | None) -> StepProblem:
    """Read the problem of a file, or of one of its lines."""
    from lbopt import StepProblem

    if line is None and path.suffix == ".jsonl":
        raise InputError(f"'{path}' holds one problem a line; choose one with --line")
    if line is None:
        return StepProblem.from_json(path)
    from lbopt.studies.gap.decisions import read_states  # the simulator stands behind it, which loads kernels

    states = read_states(path)
    if not 1 <= line <= len(states):
        raise InputError(f"'{path}' has {len(states)} problems; there is no line {line}")
    return states[line - 1].problem


def _solve_packaged(asked: _Asked, out: Path | None) -> None:
    from lbopt.cli.console import ProgressBar, print_table, remark
    from lbopt.report.solve_tables import attempt_table
    from lbopt.solvers import check_solver
    from lbopt.studies.library import Attempt, attempt, result_text
    from lbopt.whole_file import write_file

    chosen = _entries(asked)
    limit = _SECONDS if asked.time_limit is None else asked.time_limit
    check_solver(asked.solver, limit)
    if out is not None:
        try:
            out.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder '{out}': {error.strerror}") from None
    attempts: list[Attempt] = []
    interrupted = False
    with ProgressBar() as bar:
        bar.begin("solving", len(chosen))
        try:
            for entry in chosen:
                attempts.append(attempt(entry, solver=asked.solver, time_limit=limit, seed=asked.seed))
                if out is not None:
                    write_file(out / f"{entry.name}.result.json", result_text(attempts[-1]) + "\n")
                bar.advance()
        except KeyboardInterrupt:
            interrupted = True
    print_table(attempt_table(attempts, asked.solver))
    wrong = [one for one in attempts if one.verdict == "contradiction"]
    for one in wrong:
        remark(f"contradiction: {one.entry.name}: {one.news}")
    if interrupted:
        remark(f"interrupted: {len(attempts)} of {len(chosen)} entries were solved")
        raise typer.Exit(130)
    if wrong:
        raise typer.Exit(1)


def _entries(asked: _Asked) -> list[Entry]:
    """Return the packaged problems of these names and patterns, each once."""
    from lbopt.instances import library
    from lbopt.instances.library.collection import RUN_KIND

    if asked.problem_class == RUN_KIND:
        raise InputError("whole runs are no step problems; `lbopt show problems NAME` shows one")
    known = library.names(asked.problem_class)
    names = [name for given in asked.problems or "*" for name in matching(known, given) or [given]]
    entries = [library.load(name) for name in dict.fromkeys(names)]
    return [entry for entry in entries if not asked.open or entry.status != "proved"]
