"""Measure how simple the house is: `python -m tests.house CHECKOUT ...` prints one column for each checkout.

Everything is counted from the source or from a fresh process that imports that checkout; nothing of lbopt is imported
here, so that any version can be measured by the same program. `--rooms` prints statements by room.
`docs/results/house.md` holds the results, `tests/rules/budgets.toml` what a count may be at most.
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
#: A call or a signature of more arguments lacks a record.
MANY = 8


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


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def statements(tree: ast.Module) -> int:
    """Statements without docstrings and imports, so that neither longer lines nor fewer words make a file smaller."""
    left = (ast.Import, ast.ImportFrom)
    return sum(isinstance(n, ast.stmt) and not isinstance(n, left) and not _is_text(n) for n in ast.walk(tree))


def nodes(tree: ast.Module) -> int:
    """Nodes of the syntax tree, so that two statements packed into one are counted, too."""
    return sum(not isinstance(node, ast.expr_context) for node in ast.walk(tree))


def crowded_functions(root: Path) -> list[str]:
    """Functions and methods of more than `MANY` parameters, self among them, as file:name."""
    return [
        f"{file}:{node.name}"
        for file, tree in trees(root).items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
        and len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs) > MANY
    ]


def crowded_calls(root: Path) -> int:
    """Calls with more than `MANY` arguments."""
    return sum(
        isinstance(node, ast.Call) and len(node.args) + len(node.keywords) > MANY
        for tree in trees(root).values()
        for node in ast.walk(tree)
    )


def rooms(root: Path) -> dict[str, int]:
    """Statements by room of the package, and of the kernels by family."""
    found: dict[str, int] = {}
    for file, tree in trees(root).items():
        parts = Path(file).parts
        room = "/".join(parts[:2]) if parts[0] == "kernels" and len(parts) > 2 else parts[0]
        found[room] = found.get(room, 0) + statements(tree)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def sizes(root: Path) -> dict[str, int]:
    """What has a budget and is counted from the source."""
    parsed = trees(root).values()
    tests = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (root / "tests").rglob("*.py"))
    lines = sum(len(text.splitlines()) for text in sources(root).values())
    return {
        "statements of the package": sum(map(statements, parsed)),
        "nodes of the syntax tree": sum(map(nodes, parsed)),
        "files of the package": len(parsed),
        "lines of the longest file": max(len(text.splitlines()) for text in sources(root).values()),
        f"functions of more than {MANY} parameters": len(crowded_functions(root)),
        f"calls with more than {MANY} arguments": crowded_calls(root),
        "lines of the tests, percent of the package's": round(100 * tests / lines),
    }


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
_VERBS = """
import typer
from lbopt.cli import app
def leaves(command):
    names = command.list_commands(typer.Context(command)) if hasattr(command, "list_commands") else ()
    inner = [command.get_command(typer.Context(command), name) for name in names]
    return [leaf for one in inner for leaf in leaves(one)] if names else [command]
verbs = leaves(typer.main.get_command(app))
shown = [given for verb in verbs for given in verb.params if not getattr(given, "hidden", False)]
print(len(verbs), sum(given.opts[0].startswith("-") and given.name not in ("help", "help_all") for given in shown))
"""
_STEP = """
import numpy as np, lbopt
problem = lbopt.StepProblem(base=[[900], [700], [400], [650]], slots=[2, 3, 2, 3],
                            work=[[310], [260], [150], [120], [80], [500], [45], [33], [217], [118], [64], [90]])
def run():
    lbopt.solve(problem)
"""
_CONDITIONED = _STEP.replace(
    "def run", "problem = problem.under(lbopt.Conditions(capacity=np.array([1500] * 4)))\ndef run"
)
_GAP = """
import lbopt
def run():
    lbopt.gap(policies=["fcfs"], behaviours=["fcfs"], requests=120, workers=3, slots=4, states=10)
"""
#: Counts files of lbopt and calls and returns between them in a second run of `run`.
_WALK = """
import os, sys
run()
home, stops = os.path.dirname(lbopt.__file__), []
def seen(frame, event, argument):
    name = frame.f_code.co_filename
    if event in ("call", "return") and name.startswith(home):
        here = name if event == "call" else frame.f_back.f_code.co_filename if frame.f_back else ""
        if here.startswith(home) and (not stops or stops[-1] != here):
            stops.append(here)
sys.setprofile(seen)
run()
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
    files, switches = fresh(root, _STEP + _WALK).split()
    conditioned_files, conditioned_switches = fresh(root, _CONDITIONED + _WALK).split()
    verbs, options = fresh(root, _VERBS).split()
    return {
        **sizes(root),
        "lines": sum(lengths),
        "median file, lines": int(statistics.median(lengths)),
        "leaf verbs": int(verbs),
        "options of all verbs": int(options),
        f"files of at most {SHORT} lines with one function": len(one_short_function(root)),
        "upper-case constants of the kernels": all_index_constants(root),
        "of them such that index an array": sum(index_constants(root).values()),
        "literal indices into kernel state": sum(literal_indices(root).values()),
        "public functions of three or more arguments": len(public),
        "of them with a Parameters section": sum(map(says_parameters, public)),
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
        "files that a warm solve under conditions crosses": int(conditioned_files),
        "switches between files in that": int(conditioned_switches),
        "switches between files in a small gap study": int(fresh(root, _GAP + _WALK).split()[1]),
    }


GOALS = {
    "statements of the package": "42,000",
    "nodes of the syntax tree": "453,700",
    "files of the package": "620",
    "lines of the longest file": "600",
    "functions of more than 8 parameters": "10, none public",
    "calls with more than 8 arguments": "60",
    "lines of the tests, percent of the package's": "80",
    "median file, lines": "120 to 250",
    "leaf verbs": "26",
    "options of all verbs": "220",
    "files that a warm solve crosses": "8",
    "switches between files in it": "40",
    "files that a warm solve under conditions crosses": "8",
    "switches between files in that": "40",
    "switches between files in a small gap study": "5,000",
    "files of at most 40 lines with one function": "0",
    "of them such that index an array": "those that are mathematics",
    "literal indices into kernel state": "0",
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
    asked = [Path(word).resolve() for word in sys.argv[1:] if word != "--rooms"] or [Path().resolve()]
    if "--rooms" in sys.argv:
        for root in asked:
            print(root.name, *(f"{room} {count:,}" for room, count in rooms(root).items()), sep="\n")
    else:
        print(table(asked))
