"""`lbopt verify --strict`: a bound that nobody can check is not enough."""

import json
import random

import pytest

from lbopt import InputError, Result, StepProblem, solve, verify
from lbopt.solvers.certificates.formal import find_checker

#: Too large to be searched again, and elementary reasoning does not close it.
DRAW = random.Random(1)
PROBLEM = StepProblem.now(
    loads=[DRAW.randrange(6000) for _ in range(6)],
    slots=[3, 2, 3, 2, 2, 3],
    sizes=[DRAW.randrange(3000) for _ in range(18)],
)


pytestmark = pytest.mark.jit


@pytest.fixture(scope="module")
def result():
    return solve(PROBLEM, solver="exact", time_limit=60.0)


@pytest.mark.more
def test_strict_asks_for_an_established_bound(result, type_in, here):
    assert result.proof == "certificate", "the problem has become too easy for this test"
    (here / "p.json").write_text(PROBLEM.to_json())
    (here / "whole.json").write_text(result.to_json(certificate=True))
    (here / "bare.json").write_text(result.to_json())
    (here / "false.json").write_text(json.dumps(json.loads(result.to_json()) | {"objective": 1}))
    for name, plain, strict in (("whole", 0, 0), ("bare", 0, 1), ("false", 1, 1)):
        code, shown, _ = type_in("verify", "p.json", f"{name}.json")
        assert code == plain
        assert ("not verified: that no assignment is below" in shown) == (name == "bare")
        assert type_in("verify", "p.json", f"{name}.json", "--strict")[:2] == (strict, shown)


@pytest.mark.skipif(find_checker() is None, reason="the verified checker is not built: make proofs")
def test_formal_asks_the_verified_checker(result, type_in, here):
    (here / "p.json").write_text(PROBLEM.to_json())
    (here / "whole.json").write_text(result.to_json(certificate=True))
    (here / "bare.json").write_text(result.to_json())
    code, shown, _ = type_in("verify", "p.json", "whole.json", "--formal")
    assert code == 0
    assert shown.endswith(f"established: no assignment is below {result.bound}, by the verified checker\n")
    code, _, said = type_in("verify", "p.json", "bare.json", "--formal")
    assert code == 1
    assert "rejected: the result has no certificate, which the verified checker needs" in said


def test_formal_without_the_program_says_how_to_get_it(result, type_in, here, monkeypatch):
    monkeypatch.setenv("LBOPT_CHECKED", "absent")
    (here / "p.json").write_text(PROBLEM.to_json())
    (here / "whole.json").write_text(result.to_json(certificate=True))
    code, shown, said = type_in("verify", "p.json", "whole.json", "--formal")
    assert code == 2
    assert shown == ""
    assert "the verified checker is not built: run `make proofs` in a checkout" in said


def test_what_no_check_can_reach_is_named(result, type_in, here):
    """Another solver and other seconds pass every check, so they are listed."""
    forged = json.loads(result.to_json(certificate=True)) | {"solver": "magic\n", "seconds": 0.001}
    report = verify(PROBLEM, Result.from_dict(forged))
    assert report.bound_established and not report.unverified
    assert report.unchecked == ("that the solver was 'magic\\n'", "that it took 0.001 s")
    (here / "p.json").write_text(PROBLEM.to_json())
    (here / "r.json").write_text(json.dumps(forged))
    code, shown, _ = type_in("verify", "p.json", "r.json", "--strict")
    assert code == 0
    assert shown.endswith(
        "cannot be verified: that the solver was 'magic\\n'\ncannot be verified: that it took 0.001 s\n"
    )


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_said_to_be_one(text):
    with pytest.raises(InputError, match="the result is an empty text; expected JSON, or the path of a file"):
        Result.from_json(text)
