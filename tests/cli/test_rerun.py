"""`lbopt verify` repeats every study from its folder, and names the first number that differs."""

import csv
import json
from importlib import import_module

import pytest
from cli.terminal import ROOT

from lbopt.report.study_report import report_of
from lbopt.studies.registry import STUDIES, find_study

#: A small run of every study.
SMALL = {
    "audit": f"audit {ROOT / 'examples' / 'logs' / 'fleet.csv'} -p jsq -p br-0 --states 3 -o out",
    "ranks": f"audit {ROOT / 'tests' / 'stored' / 'rank_logs' / 'sglang.log'} -o out",
    "gap": "gap burstgpt-like -n 300 -G 3 -B 4 --behaviour fcfs --states 2 -p fcfs -p br-0 --time-limit 60 -o out",
    "hindsight": "hindsight burstgpt-like -n 200 -G 3 -B 4 -p jsq -p auto --effort 2 -o out",
    "batches": "gap --side prefill -n 200 --states 1 --behaviour pbaa --time-limit 60 -o out",
    "simulation": "simulate burstgpt-like -n 300 -G 3 -B 4 -p br-0 --window 5:100 -o out",
    "misprediction": "study misprediction burstgpt-like -n 300 -G 2 -B 4 --states 1 --seeds 1 --horizon 4 --noise 1 "
    "--bias 2 --shuffled 0.5 --time-limit 60 -o out",
    "prediction": "predict azure-like -n 300 --horizon 20 --predictor survival -o out",
    "prefill": "prefill azure-like -n 300 -p round-robin -p staggered:window=50/pbaa -o out",
    "scaling": "study scaling -G 2 -B 4 --policy fcfs -o out",
    "stale": "study stale burstgpt-like -n 300 -G 2 -B 4 -p jsq-load --period 1 -o out",
    "staggered": "study staggered load --place short-3k --seeds 1 --requests 500 --waits 1000 -o out",
    "locality": "study locality band --workload task --seeds 1 --rates 60 --seconds 20 --warm-up 5 --prompts 100 "
    "--layers 1 -o out",
    "placement": "study placement -R 4 -k uniform --worlds 1 --clusters 1 --layers 1 --requests 20 --draws 10 "
    "--experts 16 --top-k 2 -o out",
    "cost": "cost --mean-load 85000 --imbalance 200000 --workers 8 --running 35 --what-if workers=16 "
    "--draws 100 -o out",
    "check": "check lemma-1-printed --seed 1 -o out",
}

pytestmark = pytest.mark.jit


@pytest.mark.some(7, but=("hindsight", "placement", "misprediction"))
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_can_be_run_again(type_in, here, monkeypatch, name):
    """Identical at first; after one number of the first table was changed, file, column and value are named.

    The folder with the changed number is compared with what the first repetition found: a third run finds no more.
    """
    verb, found = import_module("lbopt.cli.verify"), []
    run_again = verb._run_again
    code, _, said = type_in(*SMALL[name].split())
    assert code in (0, 1), said
    monkeypatch.setattr(verb, "_run_again", lambda *given: found.append(run_again(*given)) or found[0])
    code, shown, said = type_in("verify", "out")
    assert (code, shown) == (0, "identical: every number but the times\n"), said
    study = find_study(name)
    monkeypatch.setattr(verb, "_run_again", lambda *given: found[0])
    table = next(path for one in report_of(name).csv if (path := here / "out" / f"{one}.csv").exists())
    with table.open(newline="") as stream:
        rows = list(csv.reader(stream))
    column = next(
        place for place, head in enumerate(rows[0]) if head not in study.timings and rows[1][place][:1].isdigit()
    )
    before, rows[1][column] = rows[1][column], "123456789"
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    code, shown, _ = type_in("verify", "out")
    assert code == 1
    assert shown.startswith(f"differs: {table.name} row 1 (")
    assert f"{rows[0][column]}: 123456789 then, {before} now" in shown


def test_a_cost_folder_that_no_command_line_made_is_refused(type_in, here):
    """The loads of a cost study are named by its command alone."""
    type_in(*SMALL["cost"].split())
    path = here / "out" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"command": "python my_script.py"}))
    code, shown, said = type_in("verify", "out")
    assert (code, shown) == (2, "")
    assert "the loads are named by the command" in said
