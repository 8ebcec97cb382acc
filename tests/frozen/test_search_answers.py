"""The frozen answers of lbopt's own search, without the other solvers: quick enough to run as plain Python too.

A search whose bounds or branching have changed mostly comes to the same optimum. Its certificate tells: prices, trees
and ranges of envelopes are part of the digest.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from frozen import answers, digests

KEPT = json.loads((Path(__file__).with_name("data") / "answers.json").read_text(encoding="utf-8"))

#: Takes half a minute without compilation.
LONG = {"own-1"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.jit] * (n in LONG)) for n in answers.problems()])
def test_the_search_comes_to_its_answer_in_the_same_way(name):
    kept, now = dict(KEPT["answers"][f"{name} search any"]), answers.answer(name, "search", "any")
    assert digests.same(kept.pop("result"), now.pop("result"), KEPT["machine"])
    assert now == kept
