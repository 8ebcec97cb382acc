"""`lbopt solve`, `lbopt verify` and what refuses a problem under conditions, on the command line."""

import json
import subprocess
from pathlib import Path

import pytest

from lbopt import Conditions, Result, StepProblem
from lbopt.model.formulation import formulate
from lbopt.solvers.registry import is_available

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "one_step_conditions.json"
PLAIN = StepProblem.now([900, 700, 400], [1, 2, 1], [310, 260, 150, 120, 80])


@pytest.mark.parametrize("solver", ["exact", "search", "auto", "brute-force", "cp-sat", "highs", "pulp"])
def test_the_example_is_solved_and_verified(type_in, here, solver):
    if solver in ("cp-sat", "highs", "pulp") and not is_available(solver):
        pytest.skip(f"{solver} is not installed")
    code, shown, _ = type_in("solve", EXAMPLE, "--solver", solver, "--out", "r.json")
    assert code == 0
    assert "imbalance and costs 1590, left waiting 1" in shown
    assert "5 requests, 4 admitted, 1 keep waiting; running requests that pause: 0;" in " ".join(shown.split())
    assert Result.from_json(here / "r.json").paused.tolist() == [True]
    code, shown, _ = type_in("verify", EXAMPLE, "r.json", "--strict")
    assert code == 0 and "not verified" not in shown


def test_a_false_result_is_rejected(type_in, here):
    type_in("solve", EXAMPLE, "--out", "r.json")
    (here / "f.json").write_text(json.dumps(json.loads((here / "r.json").read_text()) | {"paused": [0]}))
    code, _, said = type_in("verify", EXAMPLE, "f.json")
    assert code == 1 and "rejected: objective is 1590, but it is" in said


@pytest.mark.skipif(not (is_available("highs") and is_available("pulp")), reason="needs HiGHS and CBC")
@pytest.mark.parametrize("ending", [".lp", ".mps"])
def test_exported_programs_have_the_optimum(type_in, here, ending):
    """HiGHS and CBC read both formats; goals weigh what the comment says, so that they come first."""
    import highspy
    from pulp.apis import coin_api

    twice = PLAIN.under(
        Conditions(waiting_cost=[9, 8, 7, 6, 5], overdue_first=True, capacity=[310, 300, 150], pace=[5, 4, 4])
    )
    for problem in (StepProblem.from_json(EXAMPLE), twice, twice.under(Conditions(admit=2))):
        (here / "p.json").write_text(problem.to_json())
        code, _, _ = type_in("solve", "p.json", "--write", f"p{ending}", "--out", "r.json")
        assert code == 0
        result, text = Result.from_json(here / "r.json"), (here / f"p{ending}").read_text()
        program, weights = formulate(problem).weighted()
        expected = result.objective // program.scale
        for stage in result.stages:
            assert f"plus {weights[stage.goal]} units times {stage.goal}" in text
            expected += weights[stage.goal] * stage.value
        solver = highspy.Highs()
        solver.silent()
        solver.setOptionValue("mip_rel_gap", 0.0)
        assert solver.readModel(str(here / f"p{ending}")) == highspy.HighsStatus.kOk
        solver.run()
        assert round(solver.getInfo().objective_function_value) == expected
        asked = [coin_api.pulp_cbc_path, str(here / f"p{ending}"), "ratioGap", "0", "solve"]
        log = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        found = next(line for line in log.splitlines() if line.startswith("Objective value:"))
        assert round(float(found.split(":")[1])) == expected


def test_what_cannot_be_met_is_said_in_one_sentence(type_in, here):
    problem = StepProblem.now([5, 0], [1, 1], [700, 300], [True, False]).under(Conditions(capacity=[512, 600]))
    (here / "p.json").write_text(problem.to_json())
    code, _, said = type_in("solve", "p.json")
    assert code == 2
    assert "request 0 must be admitted, and no worker that may take it has room: it takes 700" in " ".join(said.split())
    (here / "e.json").write_text(PLAIN.under(Conditions(pace=[2, 1, 1])).to_json())
    code, _, said = type_in("solve", "e.json", "--tie", "leximax")
    assert code == 2 and "tie is 'leximax', which a problem with conditions does not take" in " ".join(said.split())


def test_studies_refuse_conditions(type_in, here):
    """Rules do not know them."""
    (here / "p.jsonl").write_text(PLAIN.under(Conditions(pace=[2, 1, 1])).to_json() + "\n")
    code, shown, _ = type_in("solve", "p.jsonl", "--line", "1")
    assert code == 0 and "units of pace" in shown
    code, _, said = type_in("gap", "--problems", "p.jsonl", "--out", "g")
    assert code == 2 and "does not know conditions, and the problem has some" in " ".join(said.split())
