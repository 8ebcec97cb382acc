"""`python -m tests.benchmarks.conditioned_shares --data SHARED/data [CLASS ...]`: the search under conditions.

One line a class of `tools/steady/conditioned_sets.toml`: the share of states proved within 60 ms and within
the limit, times, and what is left open at the limit in percent of the barrier (G times the largest load). `--checks`
proofs of a class are written down and checked; `--rival` states are given to a solver of integer programs, and its
objective is compared. `--shift` draws other states, for tuning.
"""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from lbopt import Result, StepProblem, solve, verify
from lbopt.cli.console import out
from lbopt.exceptions import CertificateError
from lbopt.model import barrier_total
from tests.benchmarks.measure import shared_folder
from tools.steady.conditioned import ConditionedSet, read_conditioned_sets

HEADER = (
    "| class | states | proved in 60 ms, % | in {limit:g} s, % | median, ms | P90, ms "
    "| open, % of the barrier, worst | proofs checked |{rival}"
)


def main() -> None:
    """Run the classes that are named, or all; print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="*", metavar="CLASS", help="frozen classes of states [default: all]")
    parser.add_argument("--data", type=Path, default=(shared_folder() or Path()) / "data", help="folder of the traces")
    parser.add_argument("--count", type=int, default=100, help="states of a class")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds a state")
    parser.add_argument("--checks", type=int, default=0, help="proofs of a class that are written down and checked")
    parser.add_argument("--rival", default=None, help="a solver of integer programs to compare with")
    parser.add_argument("--rival-count", type=int, default=1, help="states of a class that it is given")
    parser.add_argument("--rival-limit", type=float, default=20.0, help="seconds that it has for a state")
    parser.add_argument("--shift", type=int, default=0, help="added to the seeds: other states")
    options = parser.parse_args()
    rival = "" if options.rival is None else f" {options.rival}: its time, s; its objective less ours |"
    out.print(HEADER.format(limit=options.limit, rival=rival), soft_wrap=True)
    out.print("|---|--:|--:|--:|--:|--:|--:|--:|" + ("--:|" if rival else ""))
    known = read_conditioned_sets()
    for name in options.classes or known:
        out.print(line(known[name], options), soft_wrap=True)


def line(chosen: ConditionedSet, options: argparse.Namespace) -> str:
    """Measure one class."""
    drawn = replace(chosen, states=replace(chosen.states, seed=chosen.states.seed + options.shift))
    problems = list(drawn.problems(chosen.states.records(options.data), options.count))
    solve(problems[0], "search", time_limit=options.limit)  # loads the kernels
    gc.collect()
    seconds, results = [], []
    for problem in problems:
        begun = time.perf_counter()
        results.append(solve(problem, "search", time_limit=options.limit))
        seconds.append(time.perf_counter() - begun)
    proved = np.array([result.proved for result in results])
    times = np.where(proved, seconds, np.inf)
    left = [
        100 * float(result.gap or 0) / barrier_total(problem, result.assignment, result.paused)
        for problem, result in zip(problems, results, strict=True)
    ]
    checked = [_checked(*pair) for pair in list(zip(problems, results, strict=True))[: options.checks]]
    right = sum(not said for said in checked)
    wrong = next((f"; {said}" for said in checked if said), "")
    shown = [f"{1e3 * np.quantile(seconds, share):.1f}" for share in (0.5, 0.9)]
    cells = [chosen.name, str(len(problems)), f"{100 * (times <= 0.06).mean():.0f}", f"{100 * proved.mean():.0f}"]
    cells += [*shown, f"{max(left):.4f}", f"{right} of {len(checked)}{wrong}"]
    if options.rival is not None:
        pairs = list(zip(problems, results, strict=True))[: options.rival_count]
        cells.append("; ".join(_rival(options, *pair) for pair in pairs))
    return f"| {' | '.join(cells)} |"


def _checked(problem: StepProblem, result: Result) -> str:
    """Return what is wrong with a proof, if anything."""
    try:
        result.certificate()
        return "" if verify(problem, result).bound_established else "one takes too long to be checked"
    except CertificateError as error:
        return str(error)


def _rival(options: argparse.Namespace, problem: StepProblem, ours: Result) -> str:
    """Return what a solver of integer programs takes and reaches."""
    begun = time.perf_counter()
    result = solve(problem, options.rival, time_limit=options.rival_limit)
    taken = time.perf_counter() - begun
    if result.objective is None or [s.value for s in result.stages] != [s.value for s in ours.stages]:
        return f"{taken:.1f}; fewer admitted ({result.stop_reason})"
    return f"{taken:.1f}; {result.objective - ours.objective:+d} ({result.stop_reason})"


if __name__ == "__main__":
    main()
