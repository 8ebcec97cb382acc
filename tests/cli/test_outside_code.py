"""A folder from elsewhere runs no Python code unless the user allows it, and then only that it was made with."""

import json
import subprocess
import sys

import pytest
from cli.terminal import environment

POLICY = """
from pathlib import Path
import numpy as np
with Path("ran.txt").open("a") as stream:
    stream.write("ran\\n")
def first(o):
    workers = np.full(o.sizes.size, -1)
    places = np.repeat(np.arange(o.free_slots.size), o.free_slots)[: o.num_admissible]
    workers[: places.size] = places
    return workers
"""

SIMULATE = "simulate burstgpt-like -n 60 -G 2 -B 3 -p mine.py:first -o out"
GAP = "gap burstgpt-like -n 200 -G 2 -B 3 --states 1 -p fcfs -p mine.py:first --solver brute-force -o out"

pytestmark = pytest.mark.jit


@pytest.fixture
def made(type_in, here):
    """A function that runs a study with a policy file, and forgets that it did."""
    (here / "mine.py").write_text(POLICY)

    def call(command):
        code, _, said = type_in(*command.split())
        assert code == 0, said
        (here / "ran.txt").unlink()
        return here / "out" / "run.json"

    return call


def test_rerun_refuses_code_unless_it_is_allowed(made, type_in, here):
    account = json.loads(made(SIMULATE).read_text())
    assert list(account["code"]) == ["mine.py"]
    assert len(account["code"]["mine.py"]) == 64
    code, shown, said = type_in("verify", "out")
    assert (code, shown) == (2, "")
    assert "policy file 'mine.py' is Python code that 'out/run.json' names, and it would be run" in said
    assert "read it, and add --allow-code (from Python: allow_code=True) if you trust it" in said
    assert not (here / "ran.txt").exists()
    code, shown, said = type_in("verify", "out", "--allow-code")
    assert (code, shown) == (0, "identical: every number but the times\n"), said
    assert (here / "ran.txt").exists()


@pytest.mark.parametrize("change", ["edited", "gone", "not recorded"])
def test_a_changed_policy_file_is_named_and_not_run(made, type_in, here, change):
    """Whoever allows code allows that of the folder; the numbers could not be compared anyway."""
    path = made(SIMULATE)
    if change == "edited":
        (here / "mine.py").write_text(POLICY + "# another\n")
    elif change == "gone":
        (here / "mine.py").unlink()
    else:  # of a version that did not record it
        account = json.loads(path.read_text())
        del account["code"]
        path.write_text(json.dumps(account))
    code, shown, _ = type_in("verify", "out", "--allow-code")
    if change == "not recorded":
        assert (code, shown) == (0, "identical: every number but the times\n")
        return
    assert code == 1
    assert shown.startswith("differs: policy file 'mine.py': SHA-256 ")
    assert not (here / "ran.txt").exists()


@pytest.mark.more
def test_cost_refuses_code_of_its_folder(made, type_in, here):
    """A gap folder that names a policy file, and a cost folder whose command leads to one."""
    made(GAP)
    price = ("cost", "out", "--device", "h800", "--draws", 100, "-o", "price")
    code, shown, said = type_in(*price)
    assert (code, shown) == (2, "")
    assert "is Python code that 'out/run.json' names" in said
    assert not (here / "ran.txt").exists()
    code, _, said = type_in(*price, "--allow-code")
    assert code == 0, said
    (here / "ran.txt").unlink()
    assert "--allow-code" in json.loads((here / "price" / "run.json").read_text())["command"]
    code, _, said = type_in("verify", "price")
    assert code == 2
    assert "is Python code that" in said
    assert not (here / "ran.txt").exists()
    assert type_in("verify", "price", "--allow-code")[0] == 0
    (here / "ran.txt").unlink()
    (here / "mine.py").write_text(POLICY + "# another\n")
    code, _, said = type_in(*price, "--allow-code")
    assert code == 2
    assert "cannot be priced: policy file 'mine.py'" in said
    assert not (here / "ran.txt").exists()


def test_other_fleets_of_a_simulation_do_not_run_its_code(made, type_in, here):
    """Its loads can be priced without; simulating it again would run the file."""
    made(SIMULATE)
    price = ("cost", "out", "--device", "h800", "--draws", 100)
    assert type_in(*price)[0] == 0
    assert not (here / "ran.txt").exists()
    code, _, said = type_in(*price, "--what-if", "workers=3")
    assert code == 2
    assert "is Python code that" in said
    assert not (here / "ran.txt").exists()
    assert type_in(*price, "--what-if", "workers=3", "--allow-code")[0] == 0


def test_compiled_files_beside_a_policy_are_not_run(here, type_in):
    """What is noted and compared is what runs."""
    (here / "mine.py").write_text(POLICY)
    type_in(*SIMULATE.split())
    assert not (here / "__pycache__").exists()


def test_modules_in_the_present_folder_do_not_reach_a_task(here):
    """A task's process finds its modules where its parent does, not where the user happens to be."""
    (here / "json.py").write_text("raise SystemExit('planted')")
    code = (
        "import sys; sys.path = [p for p in sys.path if p]\n"
        "from lbopt.runner import Isolated, Task\n"
        "print([outcome.answer for outcome in Isolated().run([Task('math:factorial', {}, None)])][:0], 'ended')"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=here, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[] ended\n", "")
