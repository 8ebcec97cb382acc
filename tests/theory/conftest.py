"""What the tests of the theory share: a counterexample as its reader would check it."""

import json
import re
import sys

import numpy as np
import pytest

from lbopt.model import StepProblem
from lbopt.model.objective import loads_after, objective


@pytest.fixture
def solved_at_the_terminal(tmp_path, monkeypatch, capsys):
    """A function that has `lbopt solve` open a counterexample, holds the optimum against what it says, and gives the
    problem and the loads (G,) under its assignment."""
    from lbopt.cli import main

    def check(example, *, is_optimal=True):
        step, result = tmp_path / "step.json", tmp_path / "result.json"
        step.write_text(json.dumps(example["problem"]))
        result.unlink(missing_ok=True)
        monkeypatch.setattr(sys, "argv", ["lbopt", "solve", str(step), "--out", str(result)])
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code, capsys.readouterr().err
        claimed = int(re.search(r"least imbalance (\d+)", example["says"]).group(1))
        assert json.loads(result.read_text())["objective"] == claimed
        problem = StepProblem.from_dict(example["problem"])
        workers = np.array(example["assignment"])
        assert (objective(problem, workers) == claimed) == is_optimal
        return problem, loads_after(problem, workers)[:, 0]

    return check
