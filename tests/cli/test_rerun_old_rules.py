"""A folder that was written before rules had editions says `vllm` and means the rule of then."""

import json

import pytest

from lbopt.policies.editions import edition
from lbopt.report.cost_sources import read_cost_source


def as_written_then(folder):
    """Let a run.json be one of before there were editions."""
    path = folder / "run.json"
    account = json.loads(path.read_text())
    assert account["versions"].pop("rules") == "2025"
    path.write_text(json.dumps(account))
    return account


@pytest.mark.some(but=("command1",))
@pytest.mark.jit
@pytest.mark.parametrize(
    "command",
    [
        "simulate burstgpt-like -n 300 -G 3 -B 4 -p vllm -o out",
        "gap burstgpt-like -n 300 -G 3 -B 4 --behaviour vllm --states 2 -p fcfs -p vllm --time-limit 60 -o out",
    ],
)
def test_an_old_folder_reruns_unchanged(type_in, here, command):
    """And is priced as it was: `lbopt cost` names the version to the runs that it makes on other fleets."""
    with edition(2025):
        assert type_in(*command.split())[0] == 0
    account = as_written_then(here / "out")
    code, shown, said = type_in("verify", "out")
    assert (code, shown) == (0, "identical: every number but the times\n"), said
    rerun = read_cost_source(here / "out", "vllm").rerun
    assert rerun.routers["vllm"][0] == "vllm:version=2025"
    account["versions"]["rules"] = "2026"
    (here / "out" / "run.json").write_text(json.dumps(account))
    code, shown, _ = type_in("verify", "out")
    assert (code, shown.startswith("differs: ")) == (1, True)
