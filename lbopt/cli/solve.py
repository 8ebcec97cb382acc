"""`lbopt solve`: one step problem from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options


def solve(
    problem: Annotated[Path, typer.Argument(help="A step problem in JSON, or steps.jsonl with --line.")],
    solver: Annotated[
        str, typer.Option(help="exact, search, auto, brute-force, cp-sat, highs or pulp; **all**: who proves it first?")
    ] = "exact",
    time_limit: Annotated[float | None, typer.Option(help="Seconds; none by default.")] = None,
    tie: Annotated[str, typer.Option(help="**any** optimum, or the **leximax** one.")] = "any",
    line: Annotated[int | None, typer.Option(help="Line of a steps.jsonl file, counted from 1.")] = None,
    effort: Annotated[
        int | None, typer.Option(help="Units of work, about microseconds, that every machine feels alike.")
    ] = None,
    target: Annotated[int | None, typer.Option(help="Stop at an imbalance of so many tokens.")] = None,
    gap: Annotated[int | None, typer.Option(help="Stop where the bound is so near, tokens.")] = None,
    seed: options.Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the result as JSON.")] = None,
    write: Annotated[Path | None, typer.Option(help="Also write the integer program (.lp or .mps).")] = None,
) -> None:
    """Solve one step problem and say what is known of the answer.

    With `--solver all` the exact search and every installed solver answer in turn, each within the limit; below the
    comparison stands the answer of the first that proved it.

    Example: `lbopt solve examples/one_step.json --solver highs`
    """
    from lbopt import StepProblem
    from lbopt import solve as solve_problem
    from lbopt.cli.console import print_table, say
    from lbopt.exceptions import InputError
    from lbopt.files import called, check_name
    from lbopt.report.result_table import comparison_table, first_of, result_table
    from lbopt.solvers.arguments import check_stops
    from lbopt.solvers.registry import AUTO_ORDER, OWN, capabilities, is_available
    from lbopt.solvers.warm_up import warm
    from lbopt.whole_file import write_file

    if solver not in OWN and solver != "all":
        capabilities(solver, "all")
    for path in (out, write):
        if path is None:
            continue
        check_name(path, f"'{called(path)}'")
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise InputError(f"cannot write '{path}': it is a folder, or its folder does not exist")
    if line is None and problem.suffix == ".jsonl":
        raise InputError(f"'{problem}' holds one problem a line; choose one with --line")
    if line is None:
        chosen = StepProblem.from_json(problem)
    else:
        from lbopt.studies.gap.decisions import read_states  # the simulator stands behind it, which loads kernels

        states = read_states(problem)
        if not 1 <= line <= len(states):
            raise InputError(f"'{problem}' has {len(states)} problems; there is no line {line}")
        chosen = states[line - 1].problem
    if write is not None:
        chosen.write(write)
    if solver == "all":
        check_stops(solver, effort=effort, target=target, gap=gap)
        found = {}
        for name in ("exact", *filter(is_available, AUTO_ORDER)):
            if name != "exact":  # loading its package is no part of its time; compiling never is
                warm(name, window=False)
            found[name] = solve_problem(chosen, name, time_limit, seed, tie=tie)
        print_table(comparison_table(found))
        result = found[first_of(found)]
    else:
        result = solve_problem(chosen, solver, time_limit, seed, tie=tie, effort=effort, target=target, gap=gap)
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
