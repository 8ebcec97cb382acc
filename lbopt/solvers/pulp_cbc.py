"""CBC through PuLP: the binary that the pulp package brings, run as a child process.

PuLP passes on no bound, and its `status` says "Optimal" after a stop on time as well. So the claim is read from
`sol_status`, and only where CBC's own log says that the search was completed does the objective count as a claimed
bound; `backend.py` says up to which scale it is used. No `threads` option is given: with "threads 1" the bundled CBC
runs its parallel code and now and then never ends (seen in fewer than 3,000 tiny programs; without it 2,880 all
ended). On Ctrl-C the child ends by the terminal's own signal; a signal sent to Python alone does not reach it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pulp
from pulp.apis import coin_api

from lbopt.model.formulation import LinearProgram
from lbopt.solvers.backend import NOT_STARTED, RawAnswer, Task

#: CBC's integer preprocessing made a program of five columns "Optimal" at 13087 where 11447 is true.
_OPTIONS = ("preprocess off",)

_COMPLETED = "Result - Optimal solution found"
_EXACT_GAP = "within gap tolerance"
_INFEASIBLE = ("Result - Problem proven infeasible", "Result - Linear relaxation infeasible")

_STOP = {
    pulp.LpSolutionOptimal: "done",
    pulp.LpSolutionIntegerFeasible: "time",
    pulp.LpSolutionNoSolutionFound: "time",
    pulp.LpSolutionInfeasible: "infeasible",
    pulp.LpSolutionUnbounded: "failed",
}


def minimise(task: Task) -> RawAnswer:
    """Minimise the program with CBC."""
    problem, variables = _model(task.program)
    left = task.remaining()
    if left is not None and left <= 0:
        return NOT_STARTED
    with tempfile.TemporaryDirectory(prefix="lbopt-cbc-") as folder:
        log = Path(folder) / "cbc.log"
        solver = pulp.COIN_CMD(
            path=coin_api.pulp_cbc_path,
            msg=False,
            gapRel=0.0,
            timeLimit=left,
            options=[*_OPTIONS, f"randomSeed {task.seed % 2**31}", f"randomCbcSeed {task.seed % 2**31}"],
            logPath=str(log),
        )
        solver.tmpDir = folder
        try:
            problem.solve(solver)
        except KeyboardInterrupt:
            return RawAnswer(values=None, bound=None, stop="interrupted", native_status="interrupted")
        except pulp.PulpSolverError as error:
            return RawAnswer(values=None, bound=None, stop="failed", native_status=str(error))
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    stop = _STOP.get(problem.sol_status, "failed")
    if stop == "time" and any(said in text for said in _INFEASIBLE):  # only conditions can make a step problem so
        stop = "infeasible"
    completed = stop == "done" and _COMPLETED in text and _EXACT_GAP not in text
    values = [variable.value() for variable in variables]
    found = problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible) and None not in values
    claim = sum(c * round(v) for c, v in zip(task.program.cost, values, strict=True)) if found and completed else None
    return RawAnswer(
        values=values if found else None,
        bound=claim,
        stop="time" if stop == "done" and not completed else stop,
        native_status=pulp.LpSolution.get(problem.sol_status, str(problem.sol_status)),
    )


def _model(program: LinearProgram) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
    problem = pulp.LpProblem("step_problem", pulp.LpMinimize)
    variables = [
        problem.add_variable(name, low, high, cat=pulp.LpInteger)
        for name, low, high in zip(program.names, program.lower, program.upper, strict=True)
    ]
    problem.setObjective(pulp.LpAffineExpression(list(zip(variables, program.cost, strict=True))))
    for row in program.rows:
        terms = [(variables[c], v) for c, v in zip(row.columns, row.coefficients, strict=True)]
        expression = pulp.LpAffineExpression(terms)
        if row.lower is not None and row.lower == row.upper:
            problem.addConstraint(expression == row.lower, row.name)
            continue
        if row.lower is not None:
            problem.addConstraint(expression >= row.lower, f"{row.name}_lo")
        if row.upper is not None:
            problem.addConstraint(expression <= row.upper, row.name)
    return problem, variables
