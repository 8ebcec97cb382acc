"""The exact search beside today's solvers of integer programs, on the first states of frozen classes.

python -m tests.benchmarks.todays_best --data SHARED/data --out FOLDER --highs PYTHON --scip PYTHON

HiGHS, CP-SAT with one and two workers, and SCIP get the program of `lbopt.model.formulation`, the same limit and
greedy's placement as a start, each in a process of its own; `--highs` and `--scip` are interpreters that have a newer
highspy and pyscipopt. Only the solver is timed, not its model; the exact search is timed as it is called, after a call
on another state. What each found is scored in exact integers, and its bound is rounded up; a bound above any placement
found is false (CONTRADICTION) and counts as none. Runs that FOLDER/runs.jsonl holds are not made again. Writes
FOLDER/tables.md and FOLDER/todays_best.png.
"""

from __future__ import annotations

import argparse
import json
import math
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lbopt import solve
from lbopt.model import StepProblem, barrier_total, objective
from lbopt.model.formulation import formulate
from lbopt.report.figures import new_figure, png_of
from lbopt.solvers.backend import placement, rounded_up
from lbopt.solvers.elementary import elementary_bound, greedy_assignment
from lbopt.whole_file import write_file
from tests.benchmarks.race.measure import refresh
from tests.benchmarks.race.versions import solver_version
from tools.steady.state_sets import state_set

CLASSES = (
    *("rich-burstgpt-g16", "rich-azure-g64", "rich-code-g16", "rich-code-g64", "rich-code-g144"),
    *("leftover-heavy-g16-r64", "rich-heavy-g16-r64", "rich-pareto-g64", "rich-huge-g16", "rich-repeated-g64"),
    *("rich-brisk-g16", "rich-narrow-g16"),
    *("all-code-g16-s90", "all-code-g64-s100", "all-code-g256-s20", "all-burstgpt-g64-s100"),
)

#: Wall seconds a state, model included, after which a solver is ended and left out on the class: two states in 60 s.
PATIENCE = 30.0

#: A proof counts up to so much beyond the limit.
GRACE = 1.05

RUNNER = Path(__file__).with_name("foreign_solver.py")
EXACT = "lbopt"

#: Of each line of the figure: colour, dash, width, mark.
STYLES: dict[str, tuple[str, Any, float, str]] = {
    EXACT: ("black", "-", 2.6, ""),
    "HiGHS": ("#777777", "-", 1.6, "o"),
    "newer HiGHS": ("black", (0, (6, 2)), 1.4, "s"),
    "CP-SAT": ("#777777", (0, (1, 1)), 2.2, "^"),
    "CP-SAT, 2 workers": ("black", (0, (1, 1.5)), 1.4, "v"),
    "SCIP": ("black", (0, (7, 2, 1, 2)), 1.4, "x"),
}

Row = dict[str, Any]


class Foreign:
    """A solver in a process of its own, started again where it had to be ended."""

    def __init__(self, label: str, solver: str, threads: int, python: str) -> None:
        self.label = label
        self._command = [python, "-I", str(RUNNER), solver, str(threads)]
        self._process: subprocess.Popen[bytes] | None = None
        self.version = ""
        self.missing = ""
        try:
            self._start()
        except (OSError, ValueError) as error:
            self.missing = str(error)

    def ask(self, program: bytes) -> dict[str, Any] | None:
        """Return the answer to a program, a line of JSON; None where it does not come in time and the process ends."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None, "it was started"
        begun = time.perf_counter()
        try:
            process.stdin.write(program)
            process.stdin.flush()
            return self._line(PATIENCE - (time.perf_counter() - begun))
        except (OSError, ValueError):
            self.end()
            return None

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        hello = self._line(PATIENCE)
        self.missing = hello.get("missing", "")
        self.version = hello.get("version", "")

    def _line(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None, "it was started"
        until, parts = time.perf_counter() + seconds, bytearray()
        while not parts.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - time.perf_counter()))
            part = self._process.stdout.read(1 << 20) if ready else b""
            if not part:
                raise ValueError("the process ended" if ready else f"no answer in {seconds:.0f} s")
            parts += part
        return dict(json.loads(parts))


@dataclass
class State:
    """One state of a class, and what is equal for all solvers; the program is written when it is first needed."""

    name: str
    number: int
    problem: StepProblem
    limit: float

    def __post_init__(self) -> None:
        self.start = greedy_assignment(self.problem)
        self.least = elementary_bound(self.problem)
        self.known: Row = {"class": self.name, "state": self.number, "digest": self.problem.digest, "limit": self.limit}

    def by_search(self, other: StepProblem) -> Row:
        """Solve by the exact search, after a call on another state."""
        refresh("exact", self.problem.horizon > 0)
        solve(other, "search", time_limit=0.1)
        begun = time.perf_counter()
        result = solve(self.problem, "search", time_limit=self.limit)
        seconds = time.perf_counter() - begun
        return {
            "seconds": seconds,
            "value": objective(self.problem, result.placed()),
            "bound": int(result.bound),
            "closed": result.proved,
            "status": result.status,
            "barrier": barrier_total(self.problem, result.placed()),
        }

    def by_program(self, solver: Foreign) -> Row:
        """Solve by another solver; the start and the elementary bound are its own as well."""
        program = formulate(self.problem)
        asked = {
            "lower": program.lower,
            "upper": program.upper,
            "cost": program.cost,
            "rows": [(row.columns, row.coefficients, row.lower, row.upper) for row in program.rows],
            "start": program.encode(self.start.tolist()),
            "limit": self.limit,
        }
        line = json.dumps(asked).encode() + b"\n"
        begun = time.perf_counter()
        answer = solver.ask(line)
        wall = time.perf_counter() - begun
        value, bound = objective(self.problem, self.start), self.least
        if answer is None:
            known = {"seconds": None, "closed": False, "status": "no answer", "claim": None, "broken": False}
            return {**known, "wall": wall, "value": value, "bound": bound}
        found, raised = placement(program, answer["values"]), rounded_up(answer["bound"])
        claim = None if raised is None else program.tokens(raised)
        if found is not None:
            value = min(value, objective(self.problem, found))
        bound = bound if claim is None else max(bound, claim)
        return {
            "seconds": answer["seconds"],
            "wall": wall,
            "value": value,
            "bound": bound,
            "closed": bool(answer["optimal"]) and value == bound,
            "claim": claim,
            "broken": answer["values"] is not None and found is None,
            "status": answer["status"],
        }


class Runs:
    """The file of runs, one a line."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.rows: dict[tuple[Any, ...], Row] = {}
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:  # the run was stopped while it wrote
                continue
            self.rows[_key(row)] = row

    def add(self, row: Row) -> None:
        """Keep a run."""
        self.rows[_key(row)] = row
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


def _key(row: Row) -> tuple[Any, ...]:
    return row["digest"], row["solver"], row["version"], row["limit"]


def make_runs(options: argparse.Namespace, solvers: list[Foreign], runs: Runs) -> list[Row]:
    """Make the runs that the file lacks, the first state of every class before the second of any; return all."""
    drawn: dict[str, list[StepProblem]] = {}
    for name in options.classes:
        chosen = state_set(name)
        drawn[name] = list(chosen.problems(chosen.records(options.data), options.states + 1))
    rows: list[Row] = []
    left_out: set[tuple[str, str]] = set()
    for number in range(options.states):
        for name in options.classes:
            state = State(name, number, drawn[name][number], options.limit)
            of_state = []
            for solver in (None, *solvers):
                label, version = (EXACT, solver_version("exact")) if solver is None else (solver.label, solver.version)
                if (name, label) in left_out:
                    continue
                known = {**state.known, "solver": label, "version": version}
                row = runs.rows.get(_key(known))
                if row is None:
                    made = state.by_search(drawn[name][-1]) if solver is None else state.by_program(solver)
                    row = {**known, **made}
                    runs.add(row)
                if row["seconds"] is None:
                    left_out.add((name, label))
                of_state.append(row)
            for line in contradictions(of_state):
                print(line, flush=True)
            rows += of_state
        print(f"state {number + 1} of {options.states}", file=sys.stderr, flush=True)
    return rows


def contradictions(rows: list[Row]) -> Iterator[str]:
    """Yield a line for every bound above a placement of the same state, which all solvers' placements are asked for."""
    best = min(rows, key=lambda row: row["value"])
    for row in rows:
        if row["bound"] > best["value"]:
            yield (
                f"CONTRADICTION {row['class']} state {row['state']} ({row['digest']}): {row['solver']} says at least "
                f"{row['bound']}, {best['solver']} found {best['value']}; its answer: {row['status']}, {row['value']}"
            )


def judge(rows: list[Row]) -> None:
    """Note which bounds a placement refutes; in their place stands the bound of the exact search."""
    best: dict[str, int] = {}
    for row in rows:
        best[row["digest"]] = min(row["value"], best.get(row["digest"], row["value"]))
    exact = {row["digest"]: row["bound"] for row in rows if row["solver"] == EXACT}
    for row in rows:
        row["refuted"] = row["bound"] > best[row["digest"]]
        if row["refuted"]:
            row["bound"] = min(exact[row["digest"]], best[row["digest"]])


def proved(row: Row) -> bool:
    """Whether the run ended with a proof, or a claim that nothing refutes, within the limit."""
    return bool(row["closed"]) and not row.get("refuted") and row["seconds"] <= GRACE * row["limit"]


def middle_time(rows: list[Row]) -> str:
    """Return the median time to a proof in ms, the lower of two; beyond the limit where fewer than half are proved."""
    times = sorted(row["seconds"] if proved(row) else math.inf for row in rows)
    middle = 1000 * times[(len(times) - 1) // 2]
    if middle == math.inf:
        return f"> {1000 * rows[0]['limit']:,.0f}"
    return f"{middle:,.0f}" if middle >= 100 else f"{middle:.2g}"


def cells(rows: list[Row], exact: dict[str, Row]) -> str:
    """Return the cells of the table that are of one solver on one class, or on several.

    Parameters
    ----------
    rows
        Its runs.
    exact
        The run of the exact search of each state, by digest.
    """
    if not rows:
        return " | | | | | |"
    gaps = [max(0, row["value"] - row["bound"]) for row in rows]
    shares = [100 * gap / exact[row["digest"]]["barrier"] for gap, row in zip(gaps, rows, strict=True)]
    against = [row["value"] - exact[row["digest"]]["value"] for row in rows]
    better, equal = sum(d < 0 for d in against), sum(d == 0 for d in against)
    false = sum(row["refuted"] for row in rows)
    return (
        f"{sum(map(proved, rows))} of {len(rows)} | {false} | {middle_time(rows)} | "
        f"{median(gaps):,.0f} / {max(gaps):,} | "
        f"{_percent(median(shares))} / {_percent(max(shares))} | "
        f"{better} / {equal} / {len(rows) - better - equal} | {max(against):+,}"
    )


def _percent(share: float) -> str:
    return "0" if share == 0 else "< 0.0001" if share < 1e-4 else f"{share:.2g}"


def tables(rows: list[Row], labels: list[str]) -> str:
    """Return the Markdown tables: all classes pooled, proofs of each class, then all that was measured of each."""
    exact = {row["digest"]: row for row in rows if row["solver"] == EXACT}
    names = list(dict.fromkeys(row["class"] for row in rows))
    late = {(row["class"], row["solver"]) for row in rows if row["seconds"] is None}
    gone = f"left out: more than {PATIENCE:.0f} s for a state"

    def of(label: str, name: str | None = None) -> list[Row]:
        return [
            row
            for row in rows
            if row["solver"] == label and name in (None, row["class"]) and (row["class"], label) not in late
        ]

    def short(label: str, name: str) -> str:
        mine = of(label, name)
        return f"{sum(map(proved, mine))} of {len(mine)}, {middle_time(mine)}" if mine else gone

    columns = "proved | false | median ms | gap, tokens, median / worst | gap, % of barrier | "
    columns += "found better / equal / worse | worst |"
    lines = [f"| solver | {columns}", "|---" * 8 + "|"]
    lines += [f"| {label} | {cells(of(label), exact)} |" for label in labels]
    lines += ["", f"| class | {' | '.join(labels)} |", "|---" * (1 + len(labels)) + "|"]
    lines += [f"| {name} | {' | '.join(short(label, name) for label in labels)} |" for name in names]
    lines += ["", f"| class | solver | {columns}", "|---" * 9 + "|"]
    for name in names:
        for label in labels:
            mine = of(label, name)
            lines.append(f"| {name} | {label} | {cells(mine, exact) if mine else gone + cells(mine, exact)} |")
    lines += ["", *oddities(rows)]
    return "\n".join(lines) + "\n"


def oddities(rows: list[Row]) -> Iterator[str]:
    """Yield a line for every answer that fits no row, claim that is no gap of 0, and proof that came too late."""
    for row in rows:
        what = f"{row['solver']} on {row['class']} state {row['state']}: {row['status']}"
        if row.get("broken"):
            yield f"no placement: {what}"
        elif row["status"].lower() == "optimal" and not row["closed"]:
            yield f"claimed optimal, but gap {row['value'] - row['bound']}: {what}"
        elif row["closed"] and not row.get("refuted") and not proved(row):
            yield f"after {row['seconds']:.2f} s: {what}"


def draw(rows: list[Row], labels: list[str]) -> bytes:
    """Draw the share of all states proved within a time, a line a solver; what was left out counts as not proved."""
    figure, axes = new_figure(width=8, height=4.8)
    states = len({(row["class"], row["state"]) for row in rows})
    limit = rows[0]["limit"]
    for label in labels:
        times = sorted(row["seconds"] for row in rows if row["solver"] == label and proved(row))
        x = [1e-4, *times, GRACE * limit]
        y = [0.0, *(100 * (i + 1) / states for i in range(len(times))), 100 * len(times) / states]
        colour, dash, width, mark = STYLES[label]
        how = {"color": colour, "linestyle": dash, "linewidth": width, "marker": mark, "markersize": 5}
        axes.step(x, y, where="post", label=label, markevery=max(1, len(x) // 8), **how)
    axes.set_xscale("log")
    axes.set_xlim(1e-4, GRACE * limit)
    axes.set_ylim(0, 100)
    axes.set_xlabel("seconds of the solver")
    axes.set_ylabel(f"proved or claimed optimal, % of {states} states")
    axes.legend(loc="upper left", frameon=False, fontsize=9, handlelength=3.5)
    return png_of(figure)


def open_solvers(options: argparse.Namespace) -> list[Foreign]:
    """Start the other solvers; one that is missing is named, and left out."""
    asked = [
        ("HiGHS", "highs", 1, sys.executable, "highspy"),
        ("newer HiGHS", "highs", 1, options.highs, "highspy"),
        ("CP-SAT", "cp-sat", 1, sys.executable, "ortools"),
        ("CP-SAT, 2 workers", "cp-sat", 2, sys.executable, "ortools"),
        ("SCIP", "scip", 1, options.scip, "pyscipopt"),
    ]
    solvers = []
    for label, solver, threads, python, package in asked:
        if python is None:
            print(f"{label} is left out: give --{solver} an interpreter that has {package}.")
            continue
        one = Foreign(label, solver, threads, python)
        if one.missing:
            print(f"{label} is left out: {python} cannot run {package} ({one.missing}).")
            continue
        print(f"{label}: {one.version}")
        solvers.append(one)
    return solvers


def main() -> None:
    """Make the runs, print the tables and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the trace files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs, the table and the figure")
    parser.add_argument("--classes", nargs="+", default=CLASSES, metavar="CLASS", help="frozen classes of states")
    parser.add_argument("--states", type=int, default=10, help="states of a class")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds a state")
    parser.add_argument("--highs", metavar="PYTHON", help="an interpreter that has highspy 1.15 or newer")
    parser.add_argument("--scip", metavar="PYTHON", help="an interpreter that has pyscipopt")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    solvers = open_solvers(options)
    try:
        rows = make_runs(options, solvers, Runs(options.out / "runs.jsonl"))
    finally:
        for solver in solvers:
            solver.end()
    judge(rows)
    labels = [EXACT, *(solver.label for solver in solvers)]
    written = tables(rows, labels)
    print(written)
    write_file(options.out / "tables.md", written)
    (options.out / "todays_best.png").write_bytes(draw(rows, labels))


if __name__ == "__main__":
    main()
