"""The rules of the house, as programs that read the source."""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests import house

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lbopt"
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 600
SOLVER_HOMES = {"highspy": "solvers/highs.py", "ortools": "solvers/cp_sat.py", "pulp": "solvers/pulp_cbc.py"}


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path):
    """A file, parsed once; nobody changes it."""
    return house.trees(ROOT)[name_of(path)]


@cache
def imported(path):
    """Top-level packages that a file imports anywhere."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def importers(package):
    return [name_of(path) for path in FILES if package in imported(path)]


def public(tree):
    """Public classes and functions of a module, methods of public classes included."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                        yield f"{node.name}.{inner.name}", inner


def test_the_package_is_read():
    """The rules below look at real files."""
    assert len(FILES) > 80


def test_every_kernel_has_a_docstring_or_is_private():
    """Compiled code is the hardest to read: each @kernel function says what it does, or is somebody's inner part."""
    silent, seen = [], 0
    for path in (PACKAGE / "kernels").rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and any(ast.unparse(d) == "kernel" for d in node.decorator_list):
                seen += 1
                if not node.name.startswith("_") and not ast.get_docstring(node):
                    silent.append(f"{name_of(path)}: {node.name}")
    assert seen > 20
    assert silent == []


def test_printing_only_on_the_command_line():
    """print( stands nowhere outside cli/."""
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        if not name_of(path).startswith("cli/")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


def test_the_wall_clock_only_dates_results():
    """It may jump by hours: no deadline, lock or store depends on it."""
    today = {"now", "utcnow", "today", "fromtimestamp"}
    clocks = {"time": {"time", "time_ns", "localtime", "gmtime", "ctime", "CLOCK_REALTIME"}}
    clocks |= {"datetime": today, "date": today}
    found = {
        name_of(path)
        for path in FILES
        for node in ast.walk(tree_of(path))
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in clocks.get(node.value.id, ())
        )
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "time"
            and clocks["time"] & {alias.name for alias in node.names}
        )
    }
    assert found == {"hardware/measure/measurement.py", "runner/row.py", "serving/record/writer.py"}


def test_numba_lives_in_the_kernels():
    """Numba is imported under kernels/ alone."""
    found = importers("numba")
    assert found
    assert [name for name in found if not name.startswith("kernels/")] == []


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_pictures_and_pages_live_in_the_report(package):
    """Drawing and templates are imported under report/ alone."""
    found = importers(package)
    assert found
    assert [name for name in found if not name.startswith("report/")] == []


@pytest.mark.parametrize("package", SOLVER_HOMES)
def test_each_solver_has_one_file(package):
    """Each third-party solver is imported in one file, which can be deleted without breaking another.

    CP-SAT has a second: programs that place requests on units with rows of their own are no step problems.
    """
    others = ["solvers/placing_program.py"] if package == "ortools" else []
    assert sorted(importers(package)) == sorted([*others, SOLVER_HOMES[package]])


def test_learning_has_one_file():
    """scikit-learn is imported in one file, on use: everything else works without it."""
    assert importers("sklearn") == ["predictors/learned.py"]


@pytest.mark.parametrize("package", ["aiohttp", "msgspec", "prometheus_client", "uvloop"])
def test_http_is_spoken_in_the_serving_room(package):
    """HTTP and its metrics are imported under serving/ alone, so that all else works without them."""
    found = importers(package)
    assert found
    assert [name for name in found if not name.startswith("serving/")] == []


def test_no_file_is_long():
    """A file holds one idea, which a reader wants to see whole; 600 lines are the hard stop."""
    files = {name_of(path): path for path in FILES}
    files |= {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "tests").rglob("*.py")}
    long = {name: count for name, path in files.items() if (count := len(path.read_text().splitlines())) > LONGEST}
    assert long == {}


def test_every_room_has_a_name():
    """No file or folder is called utils, helpers, common or misc."""
    empty = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [p for p in PACKAGE.rglob("*") if p.stem.lower() in empty] == []


def test_everything_public_says_what_it_is():
    """Every module, public class, function and method has a docstring."""
    named = ((path, [("the module", tree_of(path)), *public(tree_of(path))]) for path in FILES)
    silent = [f"{name_of(path)}: {name}" for path, nodes in named for name, n in nodes if not ast.get_docstring(n)]
    assert silent == []


def fresh(code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_importing_lbopt_is_light():
    """`import lbopt` loads neither Numba nor a solver, nor pandas, SciPy, matplotlib or NumPy's weight class."""
    heavy = "numba scipy pandas sklearn highspy ortools pulp matplotlib jinja2 typer rich requests pooch aiohttp"
    code = f"import sys, lbopt; print([n for n in '{heavy}'.split() if n in sys.modules])"
    assert fresh(code) == "[]"


@pytest.mark.alone
def test_importing_lbopt_is_quick():
    """`import lbopt` takes less than 0.3 s, best of five fresh processes."""
    code = "import time; t = time.perf_counter(); import lbopt; print(time.perf_counter() - t)"
    best = min(float(fresh(code)) for _ in range(5))
    if os.getloadavg()[0] > 4 * (os.cpu_count() or 1):
        pytest.skip(f"the machine is overloaded; best of five was {best:.3f} s")
    assert best < 0.3


def test_every_public_name_can_be_had():
    """Each name of `lbopt.__all__` is there on first use, and an unknown one is an AttributeError."""
    code = (
        "import lbopt\nassert all(getattr(lbopt, n) is not None for n in lbopt.__all__)\n"
        "try:\n    lbopt.nonsense\nexcept AttributeError as e:\n    print('offers' in str(e))"
    )
    assert fresh(code) == "True"
