"""Measure how simple the house is: `python -m tests.house CHECKOUT ...` prints one column for each checkout.

Everything is counted from the source or from a fresh process that imports that checkout; nothing of lbopt is imported
here, so that any version can be measured by the same program. `docs/results/house.md` holds the result for version 0.1
and for this one.
"""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: A file that holds one function and nothing else is short up to this many lines.
SHORT = 40
HAND_WRITTEN = 20


@cache
def sources(root: Path) -> dict[str, str]:
    """Text of every Python file of the package, by its path in the package."""
    package = root / "lbopt"
    paths = sorted(package.rglob("*.py"))
    return {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@cache
def trees(root: Path) -> dict[str, ast.Module]:
    """The same, parsed."""
    return {name: ast.parse(text) for name, text in sources(root).items()}


def module_of(name: str) -> str:
    """The dotted module of a file of the package."""
    return ("lbopt." + name.removesuffix(".py").replace("/", ".")).removesuffix(".__init__")


def is_kernel(node: Function) -> bool:
    """Whether a function is compiled."""
    return any(ast.unparse(decorator) == "kernel" for decorator in node.decorator_list)


def arguments_of(node: Function) -> list[str]:
    """Names of the arguments, without self and cls."""
    given = node.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions of a module and methods of its classes, by qualified name."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function):
                    yield f"{node.name}.{inner.name}", inner


def is_public(name: str) -> bool:
    """Whether no part of a qualified name begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def is_command(node: Function) -> bool:
    """Whether a function is a verb of the command line: its docstring is the help that users see."""
    return any(
        re.search(r"\btyper\b|\boptions\.|\brunning\.", ast.unparse(a))
        for a in ast.walk(node.args)
        if isinstance(a, ast.expr)
    )


def says_parameters(node: Function) -> bool:
    """Whether the docstring has a Parameters section of numpydoc."""
    return re.search(r"^\s*Parameters\n\s*-{10}\s*$", ast.get_docstring(node) or "", re.MULTILINE) is not None


def without_parameters(root: Path, least: int = 4) -> list[str]:
    """Public functions and kernels of at least `least` arguments without a Parameters section, as module:name."""
    return sorted(
        f"{module_of(file)}:{name}"
        for file, tree in trees(root).items()
        for name, node in functions(tree)
        if (is_public(name) or is_kernel(node))
        and len(arguments_of(node)) >= least
        and not says_parameters(node)
        and not (file.startswith("cli/") and is_command(node))
    )


def _integer(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def family_of(file: str) -> str:
    """The family of a file in the kernels: its folder."""
    parts = Path(file).parts
    return parts[1] if len(parts) > 2 else "kernels"


def literal_indices(root: Path) -> dict[str, int]:
    """Integer literals that index an attribute, such as ``m.counts[2]``, by family of kernels; `shape` is no state."""
    found: dict[str, int] = {}
    for file, tree in trees(root).items():
        if file.startswith("kernels/"):
            count = sum(
                _integer(index)
                for node in ast.walk(tree)
                if isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Attribute)
                and node.value.attr != "shape"
                for index in _indices(node)
            )
            found[family_of(file)] = found.get(family_of(file), 0) + count
    return found


def index_constants(root: Path) -> dict[str, int]:
    """Upper-case constants of the kernels that index an array somewhere in the package, by family of kernels."""
    used = {
        index.attr if isinstance(index, ast.Attribute) else index.id
        for tree in trees(root).values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        for index in _indices(node)
        if isinstance(index, ast.Name | ast.Attribute)
    }
    found: dict[str, int] = {}
    for file, tree in trees(root).items():
        if file.startswith("kernels/"):
            names = {
                n
                for node in tree.body
                if isinstance(node, ast.Assign)
                for target in node.targets
                for n in _names(target)
            }
            names |= {n for node in tree.body if isinstance(node, ast.AnnAssign) for n in _names(node.target)}
            count = sum(name.isupper() and name in used for name in names)
            found[family_of(file)] = found.get(family_of(file), 0) + count
    return found


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Tuple):
        return [name for part in target.elts for name in _names(part)]
    return [target.id] if isinstance(target, ast.Name) else []


def all_index_constants(root: Path) -> int:
    """Upper-case integers of the kernels, whether they index anything or not."""
    return sum(
        name.isupper()
        for file, tree in trees(root).items()
        if file.startswith("kernels/")
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in _names(target)
    )


def one_short_function(root: Path) -> list[str]:
    """Files of at most `SHORT` lines that hold one function and no class."""
    return [
        file
        for file, tree in trees(root).items()
        if not file.endswith("__init__.py")
        and len(sources(root)[file].splitlines()) <= SHORT
        and sum(isinstance(node, Function) for node in tree.body) == 1
        and not any(isinstance(node, ast.ClassDef) for node in tree.body)
    ]


def crowded_commands(root: Path) -> list[str]:
    """Functions of the command line whose signature lists more than `HAND_WRITTEN` parameters."""
    return [
        f"{file}:{name}"
        for file, tree in trees(root).items()
        if file.startswith("cli/")
        for name, node in functions(tree)
        if len(arguments_of(node)) > HAND_WRITTEN
    ]


def occurrences(root: Path, pattern: str, under: str = "") -> int:
    """How often a regular expression occurs in the package, or below one folder of it."""
    found = (re.findall(pattern, text, re.MULTILINE) for file, text in sources(root).items() if file.startswith(under))
    return sum(map(len, found))


def fresh(root: Path, code: str) -> str:
    """What a new process that imports this checkout prints."""
    environment = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout


_MODULES = "import sys, lbopt.cli; print(sum(n == 'lbopt' or n.startswith('lbopt.') for n in sys.modules))"
_HELP = """
import os, subprocess, sys
def once():
    before = os.times()
    subprocess.run([sys.executable, "-m", "lbopt", "--help"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
once()
print(round(min(once() for _ in range(5)), 2))
"""
_WALK = """
import os, sys, lbopt
problem = lbopt.StepProblem(base=[[900], [700], [400], [650]], slots=[2, 3, 2, 3],
                            work=[[310], [260], [150], [120], [80], [500], [45], [33], [217], [118], [64], [90]])
lbopt.solve(problem)
home, stops = os.path.dirname(lbopt.__file__), []
def seen(frame, event, argument):
    name = frame.f_code.co_filename
    if event in ("call", "return") and name.startswith(home):
        here = name if event == "call" else frame.f_back.f_code.co_filename if frame.f_back else ""
        if here.startswith(home) and (not stops or stops[-1] != here):
            stops.append(here)
sys.setprofile(seen)
lbopt.solve(problem)
sys.setprofile(None)
print(len(set(stops)), len(stops) - 1)
"""


def options_shown(root: Path) -> int:
    """Options that `lbopt gap --help` lists."""
    shown = fresh(root, "import sys; sys.argv = ['lbopt', 'gap', '--help']; from lbopt.__main__ import main; main()")
    return len(re.findall(r"^\W*--\w", shown, re.MULTILINE))


def measures(root: Path) -> dict[str, object]:
    """Every measure of a checkout, by its name."""
    texts = sources(root)
    lengths = [len(text.splitlines()) for text in texts.values()]
    public = [
        node
        for tree in trees(root).values()
        for name, node in functions(tree)
        if is_public(name) and len(arguments_of(node)) > 2
    ]
    files, switches = fresh(root, _WALK).split()
    return {
        "files of the package": len(lengths),
        "lines": sum(lengths),
        "median file, lines": int(statistics.median(lengths)),
        "longest file, lines": max(lengths),
        f"files of at most {SHORT} lines with one function": len(one_short_function(root)),
        "upper-case constants of the kernels": all_index_constants(root),
        "of them such that index an array": sum(index_constants(root).values()),
        "literal indices into kernel state": sum(literal_indices(root).values()),
        "public functions of three or more arguments": len(public),
        "of them with a Parameters section": sum(map(says_parameters, public)),
        "public functions and kernels of four or more arguments without one": len(without_parameters(root)),
        "`class Claim`": occurrences(root, r"^class Claim\b"),
        "`CONFIDENCE =`": occurrences(root, r"^_?CONFIDENCE\b[^=\n]*="),
        "half-width formulas (quantiles of Student's t)": occurrences(root, r"(?:\bt\.ppf|stdtrit)\("),
        "hand-written endings of a study (`Exit(130)`)": occurrences(root, r"Exit\((?:code=)?130\)", "cli/"),
        f"functions of the command line with more than {HAND_WRITTEN} parameters": len(crowded_commands(root)),
        "options that `lbopt gap --help` shows": options_shown(root),
        "modules of lbopt that `import lbopt.cli` loads": int(fresh(root, _MODULES)),
        "CPU of `lbopt --help`, s": float(fresh(root, _HELP)),
        "files that a warm solve crosses": int(files),
        "switches between files in it": int(switches),
    }


GOALS = {
    "files of at most 40 lines with one function": "0",
    "of them such that index an array": "those that are mathematics",
    "literal indices into kernel state": "0",
    "public functions and kernels of four or more arguments without one": "0",
    "`class Claim`": "1",
    "`CONFIDENCE =`": "1",
    "half-width formulas (quantiles of Student's t)": "1",
    "hand-written endings of a study (`Exit(130)`)": "0 beside the one in the spine",
    "functions of the command line with more than 20 parameters": "0",
    "options that `lbopt gap --help` shows": "12",
    "modules of lbopt that `import lbopt.cli` loads": "under 60",
    "CPU of `lbopt --help`, s": "under 0.3",
}


def table(roots: list[Path]) -> str:
    """The measures of several checkouts as a table in Markdown."""
    found = [measures(root) for root in roots]
    lines = ["| measure |" + "".join(f" {root.name} |" for root in roots) + " goal |"]
    lines.append("|---|" + "--:|" * len(roots) + "---|")
    rows = ((name, "".join(f" {column[name]:,} |" for column in found)) for name in found[0])
    lines.extend(f"| {name} |{cells} {GOALS.get(name, '')} |" for name, cells in rows)
    return "\n".join(lines)


if __name__ == "__main__":
    print(table([Path(word).resolve() for word in sys.argv[1:] or ["."]]))
