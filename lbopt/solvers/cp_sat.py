"""CP-SAT of OR-Tools.

One worker and a seed, so that a run can be repeated. No enforcement literals and `presolve_inclusion_work_limit` = 0:
CP-SAT 9.15 certifies wrong optima where half-reified rows have coefficients that total more than 2**31 (or-tools#5293).
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from lbopt.model.formulation import LinearProgram
from lbopt.solvers.backend import NOT_STARTED, RawAnswer, Task, run_interruptible

_UNBOUNDED = 2**62
_EXACT_FLOAT = 2**53

_STOP = {
    cp_model.OPTIMAL: "done",
    cp_model.FEASIBLE: "time",
    cp_model.UNKNOWN: "time",
    cp_model.INFEASIBLE: "infeasible",  # only conditions can make a step problem so
    cp_model.MODEL_INVALID: "failed",
}


def minimise(task: Task) -> RawAnswer:
    """Minimise the program with CP-SAT."""
    model, variables = _model(task.program)
    if task.hint is not None:
        for variable, value in zip(variables, task.hint, strict=True):
            model.add_hint(variable, value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = task.seed % 2**31
    solver.parameters.catch_sigint_signal = False  # Ctrl-C belongs to Python
    if hasattr(solver.parameters, "presolve_inclusion_work_limit"):
        solver.parameters.presolve_inclusion_work_limit = 0
    if task.from_below:
        solver.parameters.linearization_level = 2
        solver.parameters.optimize_with_lb_tree_search = True
    if (left := task.remaining()) is not None:
        if left <= 0:
            return NOT_STARTED
        solver.parameters.max_time_in_seconds = left
    statuses: list[cp_model.CpSolverStatus] = []
    stopped = run_interruptible(lambda: statuses.append(solver.solve(model)), solver.stop_search)
    status = statuses[0]
    stop = _STOP.get(status, "failed")
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return RawAnswer(
        values=[solver.value(variable) for variable in variables] if found else None,
        # CP-SAT counts in integers and reports a float some ulps off: the nearest integer is what it means.
        bound=round(solver.best_objective_bound)
        if stop in ("done", "time") and task.program.total < _EXACT_FLOAT
        else None,
        stop="interrupted" if stopped else stop,
        native_status=solver.status_name(status),
    )


def _model(program: LinearProgram) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    model = cp_model.CpModel()
    variables = [
        model.new_int_var(low, high, name)
        for low, high, name in zip(program.lower, program.upper, program.names, strict=True)
    ]
    for row in program.rows:
        expression = cp_model.LinearExpr.weighted_sum([variables[c] for c in row.columns], list(row.coefficients))
        low = -_UNBOUNDED if row.lower is None else row.lower
        high = _UNBOUNDED if row.upper is None else row.upper
        model.add_linear_constraint(expression, low, high)
    model.minimize(cp_model.LinearExpr.weighted_sum(variables, list(program.cost)))
    return model, variables
