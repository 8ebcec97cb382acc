"""The item `faults`: the same faults for rules that hold requests back and for those that bind on arrival."""

import pytest

from tools.studies.staggered import faults


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["one batch in fifty lost", "crash, noticed after 1 s"])
def test_who_loses_prompts(kind):
    rows = faults.measure(place="short-3k", faults=kind, instances=3, requests=300, version="", seed=0)
    assert {(keys["load"], keys["contender"]) for keys, _ in rows} == {
        (load, contender) for load in faults.LOADS for contender in (*faults.CONTENDERS, faults.FREED)
    }
    for keys, values in rows:
        assert values["ttft"] > 0
        held = keys["contender"].startswith(("staggered", "ahead"))
        assert values["stranded"] == 0 if held or "crash" in kind else values["stranded"] > 0
