"""What verbs need is compiled ahead: afterwards they compile nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from frozen.runs import RUNS

from lbopt import warm_up
from lbopt.cli import VERBS
from lbopt.exceptions import InputError
from lbopt.warming import NEEDS, PARTS

#: Small commands of each verb, run after `lbopt warm VERB`.
AFTER = {
    "simulate": [f"simulate -n 60 -G 2 -B 4 -p {rule}" for rule in ("jsq", "br-0", "fcfs", "max-min", "random")]
    + ["simulate azure-like -n 60 -G 2 -B 4 --arrivals trace --load 0.9 -p power-of-two"],
    "prefill": [*RUNS["prefill by default"]],
    "predict": [*RUNS["predict"]],
    "gap": ["gap burstgpt-like -n 300 -G 3 -B 4 --states 3 --seed 1 --behaviour fcfs -p fcfs -p br-0 -o out"],
    "hindsight": [
        "hindsight burstgpt-like -n 40 -G 2 -B 4 -p jsq -p auto --effort 2 -o out",
        "hindsight burstgpt-like -n 120 -G 2 -B 8 -p br-0 --effort 2 -o other",
    ],
    "solve": [
        f"solve {Path(__file__).parents[1] / 'examples' / 'one_step.json'} --solver search",
        f"solve {Path(__file__).parents[1] / 'examples' / 'one_step.json'} --solver search --tie leximax",
        f"solve {Path(__file__).parents[1] / 'examples' / 'one_step_conditions.json'} --solver search",
    ],
}


def test_every_need_is_a_part_and_every_part_is_needed():
    assert {part for needs in NEEDS.values() for part in needs} == set(PARTS)
    assert set(NEEDS) - {"audit", "lookahead"} <= set(VERBS)


def test_an_unknown_verb_is_refused():
    with pytest.raises(InputError, match="simulat"):
        warm_up("simulat")


def run(words: str, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR",)}
    environment |= {"LBOPT_CACHE": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "lbopt", *words.split()]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def compiled(folder: Path) -> set[Path]:
    return set((folder / "cache").rglob("*.nbc"))


def check(verb: str, folder: Path) -> None:
    said = run(f"warm {verb}", folder)
    assert "compiling kernels once" not in said
    before = compiled(folder)
    assert before
    for words in AFTER[verb]:
        assert "compiling kernels" not in run(words, folder)
        assert compiled(folder) == before, words


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.jit
@pytest.mark.parametrize("verb", AFTER)
def test_a_warm_verb_compiles_nothing(verb, tmp_path):
    check(verb, tmp_path)


@pytest.mark.alone
@pytest.mark.jit
def test_without_warming_one_line_is_said(tmp_path):
    said = run("predict azure-like -n 200 --horizon 5 --predictor survival", tmp_path)
    first, *later = [line for line in said.splitlines() if "compiling" in line]
    assert first == "note: compiling kernels once (about 5 s)"
    assert all(line.startswith("note: compiling kernel ") for line in later)
