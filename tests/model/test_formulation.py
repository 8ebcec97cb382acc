"""The program's encoding and decoding, its rows, and the files written from it."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from solvers.small_problems import enumerate_all, naive_optimum, step_problems

from lbopt.exceptions import InputError
from lbopt.model import StepProblem, check_assignment, objective
from lbopt.model.floors import Floors
from lbopt.model.formulation import formulate


def _keeps_rows(program, values):
    for row in program.rows:
        total = sum(c * values[column] for column, c in zip(row.columns, row.coefficients, strict=True))
        if (row.lower is not None and total < row.lower) or (row.upper is not None and total > row.upper):
            return row.name
    return None


@settings(max_examples=60)
@given(step_problems())
def test_every_assignment_fits_the_program_with_its_objective(problem):
    """Encoding keeps all rows and bounds, scores the same, and decoding comes back with the same objective."""
    assume(problem.num_admitted > 0)
    program = formulate(problem)
    for number, (value, _, choice) in enumerate(enumerate_all(problem)):
        if number > 40:
            break
        values = program.encode(choice)
        assert _keeps_rows(program, values) is None
        assert all(low <= v <= high for low, v, high in zip(program.lower, values, program.upper, strict=True))
        assert program.tokens(sum(c * v for c, v in zip(program.cost, values, strict=True))) == value
        back = np.array(program.decode(values))
        check_assignment(problem, back)
        assert objective(problem, back) == value
        assert program.encode(back) == values


@settings(max_examples=60)
@given(step_problems())
def test_the_floors_are_below_every_maximum(problem):
    floors = Floors(problem).peaks()
    for _, _, choice in enumerate_all(problem):
        after = problem.base.copy()
        for i, g in enumerate(choice):
            if g >= 0:
                after[g] += problem.work[i]
        assert (after.max(axis=0) >= np.array(floors)).all()


def test_classes_are_decoded_lowest_request_to_lowest_worker():
    problem = StepProblem.now([0, 1], [2, 1], [7, 7, 7])
    program = formulate(problem)
    assert program.decode(program.encode([1, 0, 0])) == [0, 0, 1]


def test_equal_workers_are_relabelled_to_fit_the_order():
    program = formulate(StepProblem.now([0, 0], [1, 1], [3, 8]))
    assert program.encode([0, 1]) == program.encode([1, 0])


def test_a_common_factor_is_divided_out():
    program = formulate(StepProblem.now([1000, 3000], [1, 1], [2000, 6000]))
    assert program.scale == 2000
    assert (program.shift, [row.lower for row in program.rows if row.name.startswith("peak")]) == ((1000,), [1])


def test_impossible_counts_are_refused():
    program = formulate(StepProblem.now([0, 1], [2, 1], [7]))
    with pytest.raises(InputError, match="no such number"):
        program.decode([1, 1, 8])
    with pytest.raises(InputError, match="no such number"):
        program.decode([-1, 1, 8])


def test_nothing_to_decide_has_no_program():
    with pytest.raises(InputError, match="nothing to decide"):
        formulate(StepProblem.now([1], [0], [3]))


@pytest.mark.parametrize("ending", [".lp", ".mps"])
def test_files_give_the_optimum_elsewhere(tmp_path, ending):
    """HiGHS and CBC read both formats and find the optimum, the constant included."""
    highspy = pytest.importorskip("highspy")
    coin_api = pytest.importorskip("pulp.apis.coin_api")
    problems = [
        StepProblem.survives([10, 20, 7], [2, 2, 0], [3, 9, 5, 5, 30], 2, must_admit=[1, 0, 0, 0, 0]),
        StepProblem.now([4, 4, 4], [2, 2, 2], [11, 5, 3, 8]),
        StepProblem.now([40, 0, 10], [1, 1, 1], [6, 2, 9, 9, 30]),
    ]
    for problem in problems:
        path = tmp_path / f"program{ending}"
        problem.write(path)
        scale, optimum = formulate(problem).scale, naive_optimum(problem)[0]
        solver = highspy.Highs()
        solver.silent()
        assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
        solver.run()
        assert round(solver.getInfo().objective_function_value) * scale == optimum
        log = subprocess.run(
            [coin_api.pulp_cbc_path, str(path), "solve"], capture_output=True, text=True, check=True
        ).stdout
        found = next(line for line in log.splitlines() if line.startswith("Objective value:"))
        assert round(float(found.split(":")[1])) * scale == optimum
        assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_pulp_reads_the_mps(tmp_path):
    pulp = pytest.importorskip("pulp")
    problem = StepProblem.now([40, 0, 10], [1, 1, 1], [6, 2, 9, 9, 30])
    problem.write(tmp_path / "p.mps")
    _, program = pulp.LpProblem.fromMPS(str(tmp_path / "p.mps"))
    program.solve(pulp.COIN_CMD(path=pulp.apis.coin_api.pulp_cbc_path, msg=False))
    assert pulp.value(program.objective) * formulate(problem).scale == naive_optimum(problem)[0]


def test_other_endings_and_absent_folders_are_refused(tmp_path):
    problem = StepProblem.now([1, 2], [1, 1], [3, 4])
    with pytest.raises(InputError, match=r"expected \.lp or \.mps"):
        problem.write(tmp_path / "p.txt")
    with pytest.raises(InputError, match="cannot write"):
        problem.write(tmp_path / "absent" / "p.lp")


def test_the_model_room_imports_numpy_alone():
    code = (
        "import sys, lbopt, lbopt.model, lbopt.model.export; "
        "print([m for m in ('scipy','pandas','numba','highspy','ortools','pulp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
