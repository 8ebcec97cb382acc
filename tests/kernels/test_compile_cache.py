"""Compiled kernels are kept on disk, and an edit of a callee in another file is seen (numba#3588)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lbopt
from lbopt.kernels.compile import kernel

# Sizes 13 and 10 at margin 12 on 3 workers: F = 10 and 10, so the larger wins, which has rank 0.
ASK = """
import json
import numpy as np
from lbopt.kernels import machine_code as compile
from lbopt.kernels.arrays import records
from lbopt.kernels.routing.balance_route import TERM, best_ranked
terms = records(1, TERM)
terms.reward, terms.penalty, terms.margin = 1, 3, 12
MODULE = best_ranked.__module__
sizes = np.array([13, 10])
answer = int(best_ranked(terms, sizes[:, None], np.arange(2), sizes, 2))
hits = sum(best_ranked.stats.cache_hits.values())
print(json.dumps([compile.__file__, compile.source_hash(MODULE), str(compile.cache_folder(MODULE)), answer, hits]))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package root and its kernels, which import nothing else of lbopt."""
    here = Path(lbopt.__file__).parent
    package = tmp_path / "lbopt"
    shutil.copytree(here / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(here / "__init__.py", package)
    return package


def ask(copy, variable, script=ASK):
    kept = ("NUMBA_CACHE_DIR", "LBOPT_CACHE", "NUMBA_DISABLE_JIT", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    environment |= {"PYTHONPATH": str(copy.parent), variable: str(copy.parent / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=copy.parent, env=environment, capture_output=True, text=True, check=True
    )
    file, *told = json.loads(done.stdout)
    assert Path(file) == copy / "kernels" / "machine_code.py"
    return told


@pytest.mark.some(1)
@pytest.mark.jit
@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "LBOPT_CACHE"])
def test_an_edited_callee_is_compiled_anew(copy, variable):
    first_hash, first_folder, answer, hits = ask(copy, variable)
    assert (answer, hits) == (0, 0)
    assert Path(first_folder).is_relative_to(copy.parent / "cache")

    again_hash, again_folder, answer, hits = ask(copy, variable)
    assert (again_hash, again_folder, answer) == (first_hash, first_folder, 0)
    assert hits == 1  # the second process compiled nothing

    callee = copy / "kernels" / "routing" / "horizon.py"
    before = "* tokens - terms[h].penalty"
    text = callee.read_text()
    assert text.count(before) == 1
    callee.write_text(text.replace(before, "* tokens - 2 * terms[h].penalty"))  # now F = 7 and 10
    new_hash, new_folder, answer, hits = ask(copy, variable)
    assert new_hash != first_hash
    assert new_folder != first_folder
    assert (answer, hits) == (1, 0)

    callee.write_text(text)
    stranger = copy / "kernels" / "prefill" / "loop.py"
    stranger.write_text(stranger.read_text() + "\n# an edit of a file that the kernel does not use\n")
    assert ask(copy, variable) == [first_hash, first_folder, 0, 1]  # and back, without compiling


@pytest.mark.more
@pytest.mark.jit
def test_copies_of_the_same_sources_share_one_cache(copy, tmp_path):
    """The path of a copy and the age of its files do not matter."""
    cache = tmp_path / "shared"
    other = tmp_path / "elsewhere" / "lbopt"
    shutil.copytree(copy, other)
    told = []
    for package in (copy, other):
        kept = ("NUMBA_CACHE_DIR", "LBOPT_CACHE", "NUMBA_DISABLE_JIT", "PYTHONPATH")
        environment = {name: value for name, value in os.environ.items() if name not in kept}
        environment |= {"PYTHONPATH": str(package.parent), "LBOPT_CACHE": str(cache)}
        done = subprocess.run(
            [sys.executable, "-c", ASK], cwd=package.parent, env=environment, capture_output=True, text=True, check=True
        )
        file, *rest = json.loads(done.stdout)
        assert Path(file) == package / "kernels" / "machine_code.py"
        told.append(rest)
    (first, first_folder, answer, hits), (second, second_folder, again, found) = told
    assert (first, first_folder, answer) == (second, second_folder, again)
    assert (hits, found) == (0, 1)


@pytest.mark.jit
def test_where_nothing_can_be_written_kernels_compile_all_the_same(copy):
    (copy.parent / "cache").write_text("a file where the folder should be")
    _, folder, answer, hits = ask(copy, "NUMBA_CACHE_DIR")
    assert (folder, answer, hits) == ("None", 0, 0)


@kernel
def called_by_another(x):
    """One more."""
    return x + 1


@kernel
def outermost(x):
    """Twice one more."""
    return 2 * called_by_another(x)


@pytest.mark.jit
def test_a_kernel_that_only_kernels_call_gets_no_machine_code_of_its_own():
    """It becomes part of the outermost one; where Python calls it too, it is compiled for Python then."""
    assert outermost(3) == 8
    assert called_by_another.signatures == []
    assert called_by_another(3) == 4
    assert len(called_by_another.signatures) == 1
    assert outermost(3) == 8


MANY = """
import sys
import numpy as np
from lbopt.kernels.arrays import records
from lbopt.kernels.routing.balance_route import TERM, best_ranked
terms = records(1, TERM)
terms.reward, terms.penalty, terms.margin = 1, 3, 12
sizes = np.array([13, 10], dtype=np.int64 if int(sys.argv[1]) % 2 else np.int32)
answer = best_ranked(terms, sizes[:, None], np.arange(2), sizes, 2)
print(int(answer), sum(best_ranked.stats.cache_misses.values()))
"""


@pytest.mark.more
@pytest.mark.jit
def test_processes_that_start_together_compile_a_kernel_once_for_each_type(copy):
    """Four processes, two element types: all answer right, two compile, and a fifth finds both in the cache."""
    environment = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    environment |= {"PYTHONPATH": str(copy.parent), "LBOPT_CACHE": str(copy.parent / "cache")}
    command = [sys.executable, "-c", MANY]

    def start(at):
        return subprocess.Popen(
            [*command, str(at)], cwd=copy.parent, env=environment, stdout=subprocess.PIPE, text=True
        )

    answers = [process.communicate(timeout=300)[0].split() for process in [start(at) for at in range(4)]]
    assert [answer for answer, _ in answers] == ["0"] * 4
    assert sum(int(misses) for _, misses in answers) == 2
    assert [start(at).communicate(timeout=300)[0].split() for at in (0, 1)] == [["0", "0"]] * 2


RECORD = """from typing import NamedTuple


class {name}(NamedTuple):
    {fields}: int
    last: int
"""
ASK_RECORD = """
import json
from lbopt.kernels import machine_code
from lbopt.kernels.any_first import first
from lbopt.kernels.a_record import {name}
print(json.dumps([machine_code.__file__, int(first({name}(one=1, two=2, last=3)))]))
"""


@pytest.mark.jit
def test_a_record_that_changed_is_not_taken_for_the_old_one(copy):
    """The kernel's own file does not import the record: its fields, and whether it is there, stand in the key."""
    kernels = copy / "kernels"
    compiled = "from lbopt.kernels.compile import kernel\n\n\n@kernel\ndef first(record):\n    return record[0]\n"
    (kernels / "any_first.py").write_text(compiled)
    for number, (name, fields, answer) in enumerate(
        (("Pair", "one: int\n    two", 1), ("Pair", "two: int\n    one", 2), ("Other", "one: int\n    two", 1))
    ):
        # Python takes a file of the same second and size for the one that it has bytecode of.
        size = "#" * 10 * number
        (kernels / "a_record.py").write_text(RECORD.format(name=name, fields=fields) + size)
        assert ask(copy, "LBOPT_CACHE", ASK_RECORD.format(name=name)) == [answer]
