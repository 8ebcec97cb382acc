"""Small runs of every verb and study leave the same files, keys, headers and numbers as they did when frozen.

`make frozen` writes them anew; a changed number needs a reason in the commit. New files, keys and columns may be added.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from frozen import answers, digests, runs

DATA = Path(__file__).with_name("data")
ANSWERS = json.loads((DATA / "answers.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.jit


def test_every_run_is_frozen():
    """Each run has its file, and each file its run."""
    assert {path.stem for path in (DATA / "runs").iterdir()} == {runs.file_name(name) for name in runs.RUNS}
    assert set(ANSWERS["answers"]) == {" ".join(case) for case in answers.cases()}


@pytest.mark.some(but=("study misprediction", "check chains", "check adversaries", "check lemma 1"))
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in runs.SLOW else []) for name in runs.RUNS]
)
def test_a_run_leaves_what_it_left(name, tmp_path):
    """Exit codes, files, keys of run.json, headers of tables, and every column and document but times."""
    frozen = json.loads((DATA / "runs" / f"{runs.file_name(name)}.json").read_text(encoding="utf-8"))
    now = runs.frozen_of(name, tmp_path)
    assert now["exit"] == frozen["exit"]
    assert sorted(set(frozen["files"]) - set(now["files"])) == []
    for folder, keys in frozen["keys"].items():
        assert sorted(set(keys) - set(now["keys"][folder])) == [], f"keys of {folder}/run.json"
    for file, columns in frozen["tables"].items():
        found = now["tables"][file]
        assert [column for column in found if column in columns] == list(columns), f"header of {file}"
        changed = [name for name, kept in columns.items() if not digests.same(kept, found[name], frozen["machine"])]
        assert changed == [], f"columns of {file}"
    documents = frozen["documents"].items()
    changed = [file for file, kept in documents if not digests.same(kept, now["documents"][file], frozen["machine"])]
    assert changed == [], "documents"


@pytest.mark.parametrize("name", sorted({case[0] for case in answers.cases()}))
def test_answers_to_step_problems(name):
    """Every solver gives the kept placement, value, bound and origin; lbopt's own search the same certificate too."""
    for case in answers.cases():
        if case[0] == name:
            kept, now = dict(ANSWERS["answers"][" ".join(case)]), answers.answer(*case)
            assert digests.same(kept.pop("result"), now.pop("result"), ANSWERS["machine"]), case
            assert now == kept, case
