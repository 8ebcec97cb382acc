"""Run the house rules and the tests of what changed: `make quick`, or `python -m tests.quick [COMMIT]`.

What changed is the difference to a commit, files that git does not know yet included. Without an argument that commit
is HEAD where the working tree has changes, else the one before HEAD. A changed module stands for the tests that import
it; where none does, for the folder of tests that mirrors its room. `make test` stays the judge.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = "tests/rules"


def git(*words: str) -> list[str]:
    """The lines that a git command prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed(commit: str | None) -> list[str]:
    """Files that differ from `commit` and still exist."""
    new = git("ls-files", "--others", "--exclude-standard")
    if commit is None:
        commit = "HEAD" if new or git("diff", "--name-only", "HEAD") else "HEAD~1"
    return sorted({name for name in (*git("diff", "--name-only", commit), *new) if (ROOT / name).exists()})


def dotted(name: str) -> str:
    """The module of a file."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def tests_of(names: list[str]) -> list[str]:
    """Test files and folders that stand for the changed files."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    chosen: set[str] = set()
    for name in names:
        path = Path(name)
        if name in texts:
            chosen.add(name)
        elif path.suffix == ".py" and path.parts[0] in ("lbopt", "tests", "tools"):
            module = dotted(name).removeprefix("tests.")
            package, _, last = module.rpartition(".")
            phrases = (f"{module} import", f"import {module}", f"from {package} import {last}")
            found = {test for test, text in texts.items() if any(phrase in text for phrase in phrases)}
            room = ROOT / "tests" / path.parts[1]
            if not found and path.parts[0] == "lbopt" and room.is_dir():
                found = {room.relative_to(ROOT).as_posix()}
            chosen |= found
        elif name in ("README.md", "Makefile"):
            chosen |= {"tests/test_readme.py"}
    return sorted({RULES, *chosen})


def main(commit: str | None = None) -> int:
    """Run them side by side."""
    chosen = tests_of(changed(commit))
    print("tests:", *chosen)
    words = ["-q", "-n", "auto", "--dist", "worksteal", "-m", "not slow and not more and not alone", *chosen]
    return subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:2]))
