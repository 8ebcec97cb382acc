"""One solver in a process of its own, which imports nothing of lbopt: integer programs in, what it found out.

python foreign_solver.py highs|cp-sat|scip THREADS

The first line written is {"version": ...}; then each line read, a program as JSON, is answered by a line. Only the
solver itself is timed, not the building of its model. What the solver prints goes to the error stream.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]


def solve_with_highs(program: dict[str, Any], threads: int) -> Answer:
    """Minimise with highspy; lbopt's own settings for it: relative gap 0, all tolerances at their defaults."""
    import highspy
    import numpy as np

    solver = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", threads),
        ("random_seed", 0),
        ("mip_rel_gap", 0.0),
        ("time_limit", float(program["limit"])),
    ):
        solver.setOptionValue(option, value)
    rows = program["rows"]
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program["cost"]), len(rows)
    lp.col_cost_ = np.array(program["cost"], dtype=np.float64)
    lp.col_lower_ = np.array(program["lower"], dtype=np.float64)
    lp.col_upper_ = np.array(program["upper"], dtype=np.float64)
    lp.row_lower_ = np.array([-np.inf if low is None else low for _, _, low, _ in rows], dtype=np.float64)
    lp.row_upper_ = np.array([np.inf if high is None else high for _, _, _, high in rows], dtype=np.float64)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(columns) for columns, _, _, _ in rows)], dtype=np.int32)
    lp.a_matrix_.index_ = np.array([c for columns, _, _, _ in rows for c in columns], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([v for _, coefficients, _, _ in rows for v in coefficients], dtype=np.float64)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
    solver.passModel(lp)
    start = highspy.HighsSolution()
    start.col_value = [float(value) for value in program["start"]]
    solver.setSolution(start)
    begun = time.perf_counter()
    solver.run()
    seconds = time.perf_counter() - begun
    status, info = solver.getModelStatus(), solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    ended = status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)
    return {
        "seconds": seconds,
        "values": list(solver.getSolution().col_value) if found else None,
        "bound": float(info.mip_dual_bound) if ended else None,
        "optimal": status == highspy.HighsModelStatus.kOptimal,
        "status": solver.modelStatusToString(status),
    }


def solve_with_cp_sat(program: dict[str, Any], threads: int) -> Answer:
    """Minimise with CP-SAT; lbopt's own settings for it."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    variables = [
        model.new_int_var(low, high, f"x{i}")
        for i, (low, high) in enumerate(zip(program["lower"], program["upper"], strict=True))
    ]
    for columns, coefficients, low, high in program["rows"]:
        expression = cp_model.LinearExpr.weighted_sum([variables[c] for c in columns], coefficients)
        model.add_linear_constraint(expression, -(2**62) if low is None else low, 2**62 if high is None else high)
    model.minimize(cp_model.LinearExpr.weighted_sum(variables, program["cost"]))
    for variable, value in zip(variables, program["start"], strict=True):
        model.add_hint(variable, value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = threads
    solver.parameters.random_seed = 0
    solver.parameters.max_time_in_seconds = program["limit"]
    solver.parameters.presolve_inclusion_work_limit = 0  # or-tools#5293
    begun = time.perf_counter()
    status = solver.solve(model)
    seconds = time.perf_counter() - begun
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {
        "seconds": seconds,
        "values": [solver.value(variable) for variable in variables] if found else None,
        "bound": round(solver.best_objective_bound) if found else None,
        "optimal": status == cp_model.OPTIMAL,
        "status": solver.status_name(status),
    }


def solve_with_scip(program: dict[str, Any], threads: int) -> Answer:
    """Minimise with SCIP through pyscipopt; gaps of 0 and all tolerances are its defaults."""
    from pyscipopt import Model, quicksum

    model = Model()
    model.hideOutput()
    model.setParam("limits/time", program["limit"])
    model.setParam("timing/clocktype", 2)  # wall time
    model.setParam("lp/threads", threads)
    variables = [
        model.addVar(vtype="I", lb=low, ub=high, obj=cost)
        for low, high, cost in zip(program["lower"], program["upper"], program["cost"], strict=True)
    ]
    for columns, coefficients, low, high in program["rows"]:
        terms = quicksum(v * variables[c] for c, v in zip(columns, coefficients, strict=True))
        if low is not None and high is not None:
            model.addCons(terms == low if low == high else (terms >= low) <= high)
        elif low is not None:
            model.addCons(terms >= low)
        elif high is not None:
            model.addCons(terms <= high)
    start = model.createSol()
    for variable, value in zip(variables, program["start"], strict=True):
        model.setSolVal(start, variable, value)
    accepted = model.addSol(start)
    begun = time.perf_counter()
    model.optimize()
    seconds = time.perf_counter() - begun
    status, bound, found = model.getStatus(), model.getDualbound(), model.getNSols() > 0
    best = model.getBestSol() if found else None
    return {
        "seconds": seconds,
        "values": [model.getSolVal(best, variable) for variable in variables] if found else None,
        "bound": bound if status in ("optimal", "timelimit") and abs(bound) < 1e20 else None,
        "optimal": status == "optimal",
        "status": status if accepted else f"{status}, start refused",
    }


def version_of(name: str) -> str:
    """Return the name and version of the solver; ImportError where it is not installed."""
    if name == "highs":
        import highspy

        return f"HiGHS {highspy.Highs().version()}"
    if name == "cp-sat":
        import ortools

        return f"CP-SAT {ortools.__version__}"
    import pyscipopt

    model = pyscipopt.Model()
    whole = (model.getMajorVersion(), model.getMinorVersion(), model.getTechVersion())
    return f"SCIP {'.'.join(map(str, whole))} (PySCIPOpt {pyscipopt.__version__})"


SOLVERS: dict[str, Callable[[dict[str, Any], int], Answer]] = {
    "highs": solve_with_highs,
    "cp-sat": solve_with_cp_sat,
    "scip": solve_with_scip,
}


def main() -> None:
    """Answer programs until the input ends."""
    name, threads = sys.argv[1], int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def write(line: dict[str, Any]) -> None:
        if (bound := line.get("bound")) is not None and not math.isfinite(bound):
            line["bound"] = None
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    try:
        write({"version": version_of(name)})
    except ImportError as error:
        write({"missing": str(error)})
        return
    for line in sys.stdin:
        write(SOLVERS[name](json.loads(line), threads))


if __name__ == "__main__":
    main()
