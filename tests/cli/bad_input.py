"""Files that are wrong, and a terminal that demands a refusal."""

import json

import pytest

PROBLEM = {"format": "lbopt-step-problem", "version": 1, "base": [10, 3, 5], "slots": [1, 2, 0], "work": [4, 7, 9, 2]}
TINY = ("-n", 60, "-G", 3, "-B", 4)
OWN = ("--prompt-column", "p", "--output-column", "o")

ROUTERS = """
import numpy as np
def raises(o): raise RuntimeError("boom")
def none(o): return None
def floats(o): return [0.0] * o.sizes.size
def strings(o): return ["a"] * o.sizes.size
def few(o): return [0]
def many(o): return [-1] * (o.sizes.size + 1)
def outside(o): return [99] * o.sizes.size
def below(o): return [-2] * o.sizes.size
def full(o): return [0] * o.sizes.size
def nothing(o): return [-1] * o.sizes.size
def writes(o): o.loads[0] = 1
def ragged(o): return [[1], [2, 3]]
def when(o): return []
when.admission = "sometimes"
value = 3
"""


@pytest.fixture(autouse=True)
def files(here):
    (here / "p.json").write_text(json.dumps(PROBLEM))
    (here / "times.csv").write_text("t,p,o\n" + "".join(f"{i},{i * 7 % 50 + 1},{i % 9 + 1}\n" for i in range(60)))
    (here / "instant.csv").write_text("t,p,o\n" + "".join(f"4,{i * 7 % 50 + 1},{i % 9 + 1}\n" for i in range(60)))
    (here / "bad.csv").write_text("t,p,o\n0,5,5\n1,x,5\n")
    (here / "short.jsonl").write_text('{"timestamp": 1, "input_len')
    (here / "bytes.bin").write_bytes(b"\xff\xfe\x00\x01" * 9)
    (here / "empty").write_text("")
    (here / "routers.py").write_text(ROUTERS)
    (here / "syntax.py").write_text("def f(:\n")
    (here / "imports.py").write_text("import not_there_at_all\n")
    (here / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (here / "foreign").mkdir()
    (here / "foreign" / "thesis.tex").write_text("x")


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def refused(type_in, here):
    """A function that types a command and demands a refusal that says `expected` and changes no file."""

    def call(expected, *words):
        before = contents(here)
        code, _, said = type_in(*words)
        assert code == 2, said
        assert "Traceback" not in said
        sentences = [line for line in said.splitlines() if line.startswith("error: ")]
        usage = "Usage:" in said and "Error" in said
        assert len(sentences) == 1 or usage, said
        assert expected in (sentences[0] if sentences else said)
        left = {name: data for name, data in contents(here).items() if "__pycache__" not in name}
        assert left == before

    return call
