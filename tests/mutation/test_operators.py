"""What the mutants of a small module are, and that edits elsewhere do not rename them."""

from tests.mutation.gate import row_of, table
from tests.mutation.operators import mutants_of
from tests.mutation.records import KILLED, SURVIVED, TIMEOUT, Record, Records, hash_of
from tests.mutation.scope import Room

TEXT = '''"""A module of two functions."""

LIMIT = 3


def first(a: int, b: int) -> bool:
    """Compare."""
    if a < b and not a == LIMIT:
        return True
    raise ValueError(f"{a} + 1")


def second(values: list[int]) -> int:
    total = 0
    for k in range(len(values)):
        total += divmod(values[k], total)[0]
    return total - 1
'''


def changes(text):
    return {mutant.id.split("::", 1)[1]: mutant.change for mutant in mutants_of("m.py", text)}


def test_every_operator_is_used():
    assert changes(TEXT) == {
        "<module>::constant#1": "3 -> 4",
        "first::negate#1": "a < b and not a == LIMIT -> not (a < b and (not a == LIMIT))",
        "first::boolean#1": "a < b and not a == LIMIT -> (a < b or not a == LIMIT)",
        "first::compare#1": "a < b -> (a <= b)",
        "first::boolean#2": "not a == LIMIT -> (a == LIMIT)",
        "first::compare#2": "a == LIMIT -> (a != LIMIT)",
        "first::return#1": "True -> not (True)",
        "first::constant#1": "True -> False",
        "first::drop#1": 'raise ValueError(f"{a} + 1") -> pass',
        "second::constant#1": "0 -> 1",
        "second::boundary#1": "range(len(values)) -> range(len(values) - 1)",
        "second::drop#1": "total += divmod(values[k], total)[0] -> pass",
        "second::arithmetic#1": "total += divmod(values[k], total)[0] -> total -= divmod(values[k], total)[0]",
        "second::swap#1": "divmod(values[k], total) -> divmod(total, values[k])",
        "second::constant#2": "0 -> 1",
        "second::return#1": "total - 1 -> (total - 1) + 1",
        "second::arithmetic#2": "total - 1 -> (total + 1)",
        "second::constant#3": "1 -> 2",
    }


def test_a_mutant_differs_in_one_place_and_compiles():
    for mutant in mutants_of("m.py", TEXT):
        compile(mutant.text, "m.py", "exec")
        assert mutant.text.replace(mutant.after, "", 1) != TEXT
        assert mutant.text != TEXT
        assert TEXT.splitlines()[mutant.line - 1] not in ("", '    """Compare."""')


def test_an_edit_of_one_function_renames_no_mutant_of_another():
    edited = TEXT.replace("    total = 0\n", "    total = 0 + 0\n    total -= 5\n")
    before, after = changes(TEXT), changes(edited)
    assert {k: v for k, v in before.items() if "second" not in k} == {
        k: v for k, v in after.items() if "second" not in k
    }


def record(mutant, outcome, tests="t"):
    return Record(mutant.id, mutant.hash, mutant.change, tests, outcome, "", 0.1)


def test_a_survivor_is_tried_again_when_its_tests_change_and_a_killed_one_is_not(tmp_path):
    killed, survivor = mutants_of("m.py", TEXT)[:2]
    tests = ["tests/mutation/test_operators.py"]
    records = Records(tmp_path / "r.jsonl")
    records.add(record(killed, KILLED, "other tests"))
    records.add(record(survivor, SURVIVED, hash_of(tests)))
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('{"id": "m.py::fir')  # stopped while writing
    again = Records(tmp_path / "r.jsonl")
    assert again.find(killed, tests).outcome == KILLED
    assert again.find(survivor, tests).outcome == SURVIVED
    assert again.find(survivor, []) is None
    assert again.find(mutants_of("m.py", TEXT + "\nMORE = 1\n")[0], tests) is None  # the file has changed


def test_the_gate_counts_time_limits_as_killed_and_fails_below_the_goal():
    mutants = mutants_of("m.py", TEXT)[:10]
    outcomes = dict(zip(mutants, [SURVIVED] * 2 + [TIMEOUT] + [KILLED] * 7, strict=True))
    row = row_of(Room("m", 10, 0.9), mutants, lambda mutant: record(mutant, outcomes[mutant]))
    assert (row.tried, row.killed, row.timeouts, len(row.survivors), row.share) == (10, 7, 1, 2, 0.8)
    assert not row.passes
    assert row_of(Room("m", 10, 0.8), mutants, lambda mutant: record(mutant, outcomes[mutant])).passes
    assert "| `m` | 10 | 7 | 1 | 0 | 2 | 80.0% | 90% |" in table([row])
