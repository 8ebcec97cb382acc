"""Writes the integer program of a step problem for other tools: CPLEX LP (`.lp`) or free MPS (`.mps`).

The numbers are in tokens divided by the program's `scale`, which both files name in a comment; the objective includes
its constant, so that an optimum read elsewhere times `scale` is the imbalance. The constant is the cost of a column
`one` that is fixed to 1: readers disagree about constants in LP objectives and about the sign of an objective's
right-hand side in MPS (PuLP's reader refuses one), while a fixed column means the same to all. Files are written
beside their place and then moved there, so that a reader never sees half a program.

Under conditions goals may come before the objective. One file has one objective, so they are added to it with weights
so large that they come first; a comment states the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.model.formulation import LinearProgram, formulate
from lbopt.model.step_problem import StepProblem
from lbopt.whole_file import whole_file

_ONE = "one"
_LP_TERMS_A_LINE = 8  # the LP format limits the length of a line (CBC's reader: about 510 characters)


def write_program(problem: StepProblem, path: str | Path) -> None:
    """Write the integer program of `problem` to `path`; its ending, `.lp` or `.mps`, chooses the format."""
    target = Path(path)
    writers = {".lp": _lp_lines, ".mps": _mps_lines}
    if target.suffix.lower() not in writers:
        raise InputError(f"cannot write '{target}': the ending is '{target.suffix}'; expected .lp or .mps")
    program, weights = _one_objective(problem)
    header = f"step problem {problem.digest[:16]}, objective in units of {program.scale} tokens"
    comments = [header, *(f"plus {weight} units times {goal}" for goal, weight in weights.items())]
    text = "\n".join(writers[target.suffix.lower()](program, comments)) + "\n"
    with whole_file(target) as partial:
        partial.write_text(text, encoding="ascii", newline="\n")


def _one_objective(problem: StepProblem) -> tuple[LinearProgram, dict[str, int]]:
    """Return the program of a problem, and what the goals weigh in its objective."""
    program = formulate(problem)
    return program.weighted() if program.goals else (program, {})


def _lp_lines(program: LinearProgram, comments: Sequence[str]) -> Iterator[str]:
    yield from (f"\\ {comment}" for comment in comments)
    yield "Minimize"
    costs = [(column, c) for column, c in enumerate(program.cost) if c]
    yield from _lp_expression(program, "imbalance", costs, f" {program.offset:+d} {_ONE}")
    yield "Subject To"
    for row in program.rows:
        terms = list(zip(row.columns, row.coefficients, strict=True))
        if row.lower is not None and row.lower == row.upper:
            yield from _lp_expression(program, row.name, terms, f" = {row.lower}")
        else:
            if row.lower is not None:
                yield from _lp_expression(program, f"{row.name}_lo", terms, f" >= {row.lower}")
            if row.upper is not None:
                yield from _lp_expression(program, row.name, terms, f" <= {row.upper}")
    yield "Bounds"
    for name, low, high in zip(program.names, program.lower, program.upper, strict=True):
        yield f" {low} <= {name} <= {high}"
    yield f" {_ONE} = 1"
    yield "General"
    for name in program.names:
        yield f" {name}"
    yield "End"


def _lp_expression(program: LinearProgram, name: str, terms: list[tuple[int, int]], ending: str) -> Iterator[str]:
    words = [f"{c:+d} {program.names[column]}" for column, c in terms]
    lines = [" ".join(words[i : i + _LP_TERMS_A_LINE]) for i in range(0, len(words), _LP_TERMS_A_LINE)]
    lines[-1] += ending
    yield f" {name}: {lines[0]}"
    yield from (f"  {line}" for line in lines[1:])


def _mps_lines(program: LinearProgram, comments: Sequence[str]) -> Iterator[str]:
    yield from (f"* {comment}" for comment in comments)
    yield "NAME step_problem"
    yield "ROWS"
    yield " N imbalance"
    ranged = {}
    for row in program.rows:
        if row.lower is not None and row.upper is not None and row.lower != row.upper:
            ranged[row.name] = row.upper - row.lower
        kind = "E" if row.lower == row.upper else "G" if row.lower is not None else "L"
        yield f" {kind} {row.name}"
    entries: list[list[tuple[str, int]]] = [[("imbalance", c)] for c in program.cost]
    for row in program.rows:
        for column, c in zip(row.columns, row.coefficients, strict=True):
            entries[column].append((row.name, c))
    yield "COLUMNS"
    yield " MARKER 'MARKER' 'INTORG'"
    for name, column_entries in zip(program.names, entries, strict=True):
        for row_name, c in column_entries:
            yield f" {name} {row_name} {c}"
    yield " MARKER 'MARKER' 'INTEND'"
    yield f" {_ONE} imbalance {program.offset}"
    yield "RHS"
    for row in program.rows:
        yield f" RHS {row.name} {row.lower if row.lower is not None else row.upper}"
    if ranged:
        yield "RANGES"
        yield from (f" RNG {name} {span}" for name, span in ranged.items())
    yield "BOUNDS"
    for name, low, high in zip(program.names, program.lower, program.upper, strict=True):
        yield f" LO BND {name} {low}"
        yield f" UP BND {name} {high}"
    yield f" FX BND {_ONE} 1"
    yield "ENDATA"
