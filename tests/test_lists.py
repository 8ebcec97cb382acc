"""Rules that the package does not follow everywhere yet: what offends is listed, and the lists only get shorter."""

from __future__ import annotations

import ast
import inspect
from functools import cache

import pytest

import lbopt
from tests import house
from tests.rules import lists

SHRINK = "run `python -m tests.rules.shrink`, which takes out what has been mended, moved or deleted"


def test_the_package_keeps_its_budgets():
    """No size grows: a change that adds statements takes out as many, or says in its message why not."""
    sizes, most = house.sizes(lists.ROOT), lists.budgets()
    assert {name: count for name, count in sizes.items() if count > most[name]} == {}, f"allowed are {most}"


def test_public_functions_say_their_parameters():
    """Every function that `lbopt` offers by name has a Parameters section; inside, a record documents its fields."""
    functions = {name: getattr(lbopt, name) for name in lbopt.__all__ if inspect.isfunction(getattr(lbopt, name))}
    asked = [name for name, function in functions.items() if inspect.signature(function).parameters]
    assert len(asked) > 10
    lacking = [name for name in asked if "Parameters\n---" not in inspect.getdoc(functions[name])]
    assert lacking == []


def test_state_of_kernels_has_names():
    """No family of kernels gains a literal index into state or an index constant."""
    listed, present = lists.listed_indices(), {f: n for f, n in lists.present_indices().items() if any(n)}
    more = {f: n for f, n in present.items() if any(a > b for a, b in zip(n, listed.get(f, (0, 0)), strict=True))}
    assert more == {}, f"give the part of the state a name; allowed are {listed}"
    assert present == listed, SHRINK


@cache
def imports_of(module: str) -> frozenset[str]:
    """Modules of lbopt that a module imports anywhere in it, packages on the way included."""
    path = lists.ROOT / (module.replace(".", "/") + ".py")
    if not path.exists():
        path = lists.ROOT / module.replace(".", "/") / "__init__.py"
    return frozenset(imported(path)) if path.exists() else frozenset()


def imported(path):
    found = set()
    own = lists.ROOT / "lbopt"
    inside = path.is_relative_to(own)
    tree = house.trees(lists.ROOT)[path.relative_to(own).as_posix()] if inside else ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("lbopt."):
            found.add(node.value)  # tables of what is imported on use
    helpers = {name for name in found if (lists.ROOT / "tests" / (name.replace(".", "/") + ".py")).exists()}
    return {name for name in found if name.startswith("lbopt")} | {f"tests.{name}" for name in helpers}


def reached_from(path) -> set[str]:
    """Modules that a test file imports, directly or through others."""
    reached, todo = set(), list(imported(path))
    while todo:
        module = todo.pop()
        if module not in reached:
            reached.add(module)
            todo.extend(imports_of(module))
    return reached


def test_every_module_of_kernels_names_its_check():
    """Kernels are compared with a naive twin or with exhaustion; the map says by which test."""
    listed, modules = set(lists.listed_twins()), set(lists.kernel_modules())
    assert sorted(modules - listed) == [], "name the test that compares these kernels with a twin or with exhaustion"
    assert sorted(listed - modules) == [], SHRINK


@pytest.mark.parametrize("test", sorted(set(lists.listed_twins().values())))
def test_a_named_check_exists_and_reaches_its_kernels(test):
    """The test function is there, and its file imports the kernels, directly or through what it calls."""
    file, _, name = test.partition("::")
    path = lists.ROOT / file
    names = {n.name for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)}
    assert name in names
    reached = reached_from(path)
    kernels = [module for module, check in lists.listed_twins().items() if check == test]
    assert [module for module in kernels if house.module_of(module) not in reached] == []
