"""HiGHS through highspy, in process.

Options: one thread, a seed, relative gap 0 (the default stops up to 0.01 % early), absolute gap and all tolerances at
their defaults: tightening `mip_feasibility_tolerance` to 1e-9 makes HiGHS return wrong optima on makespan programs.
An absolute gap of just below 1 would be enough for integers, but then the claimed bound would hang on the rounding.

highspy 1.14.0 returns wrong optima (HiGHS#2957, #2995, #3043) and is refused.
"""

from __future__ import annotations

import highspy
import numpy as np

from lbopt.exceptions import BackendUnavailableError
from lbopt.model.formulation import LinearProgram
from lbopt.solvers.backend import NOT_STARTED, RawAnswer, Task, run_interruptible

_WRONG_VERSIONS = ("1.14.0",)

_STOP = {
    highspy.HighsModelStatus.kOptimal: "done",
    highspy.HighsModelStatus.kTimeLimit: "time",
    highspy.HighsModelStatus.kInterrupt: "interrupted",
    highspy.HighsModelStatus.kHighsInterrupt: "interrupted",
    highspy.HighsModelStatus.kInfeasible: "infeasible",  # only conditions can make a step problem so
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "infeasible",  # all columns are bounded
}  # everything else: "failed"


def minimise(task: Task) -> RawAnswer:
    """Minimise the program with HiGHS."""
    solver = highspy.Highs()
    if solver.version() in _WRONG_VERSIONS:
        raise BackendUnavailableError(
            f'highspy {solver.version()} returns wrong optima; install another: pip install "highspy>=1.12,<1.14"'
        )
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", task.seed % 2**31)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.passModel(_model(task.program))
    if (left := task.remaining()) is not None:
        if left <= 0:
            return NOT_STARTED
        solver.setOptionValue("time_limit", left)
    if task.hint is not None:
        start = highspy.HighsSolution()
        start.col_value = [float(value) for value in task.hint]
        solver.setSolution(start)
    solver.HandleUserInterrupt = True  # so that cancelSolve stops the run
    stopped = run_interruptible(solver.run, solver.cancelSolve)
    status = solver.getModelStatus()
    info = solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    stop = _STOP.get(status, "failed")
    return RawAnswer(
        values=list(solver.getSolution().col_value) if found else None,
        bound=float(info.mip_dual_bound) if stop in ("done", "time", "interrupted") else None,
        stop="interrupted" if stopped else stop,
        native_status=solver.modelStatusToString(status),
    )


def _model(program: LinearProgram) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.names), len(program.rows)
    lp.col_cost_ = np.array(program.cost, dtype=np.float64)
    lp.col_lower_ = np.array(program.lower, dtype=np.float64)
    lp.col_upper_ = np.array(program.upper, dtype=np.float64)
    lp.row_lower_ = np.array([-np.inf if row.lower is None else row.lower for row in program.rows], dtype=np.float64)
    lp.row_upper_ = np.array([np.inf if row.upper is None else row.upper for row in program.rows], dtype=np.float64)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row.columns) for row in program.rows)], dtype=np.int32)
    lp.a_matrix_.index_ = np.array([c for row in program.rows for c in row.columns], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([v for row in program.rows for v in row.coefficients], dtype=np.float64)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(program.names)
    return lp
