"""What behaviours really did in a gap study is scored beside the decisions."""

import json
import math

import numpy as np
import pytest
from studies.small_study import ROUTER, gaps, small_config

from lbopt.model import objective
from lbopt.policies import make_policy
from lbopt.report.gap_tables import step_record
from lbopt.simulator import simulate
from lbopt.studies.gap import run_gap
from lbopt.studies.gap.decisions import read_states, summarise


def started(state, run):
    """The worker of each waiting request that the run started in this very step, from its table alone."""
    table, step = run.requests, state.step
    waits = np.flatnonzero((table["reveal_step"] <= step) & (table["start_step"] >= step))
    return [int(table["worker"][i]) if table["start_step"][i] == step else -1 for i in waits]


def own_run(config, behaviour):
    requests = config.scenario.requests.draw_for(config.seed, num_seeds=config.seeds)
    return simulate(requests, make_policy(behaviour), config.scenario.setting, seed=config.seed)


@pytest.mark.some(but=("bf-io:solver=cp-sat",))
@pytest.mark.parametrize(
    "behaviour",
    ["random", "random:admission=pooled", "power-of-two", "jsq", "round-robin", ROUTER, "bf-io", "bf-io:solver=cp-sat"],
)
def test_what_a_behaviour_did_is_scored_in_its_own_states(behaviour):
    """Whatever would not decide alike again gets a row of what it did, recounted here from the table of its run."""
    config = small_config(behaviours=("fcfs", behaviour), policies=("fcfs",), long_runs=False)
    outcome, run = run_gap(config), own_run(config, behaviour)
    name = make_policy(behaviour).name
    assert name == behaviour
    own = [s for s in outcome.solved if s.state.behaviour == name]
    assert (len(own), len(outcome.solved)) == (5, 10)
    skipped = 0
    for one in own:
        problem, did = one.state.problem, started(one.state, run)
        assert one.state.chosen.tolist() == did
        if sum(worker >= 0 for worker in did) == problem.num_admitted:
            loads = problem.base[:, 0].copy()
            for i, worker in enumerate(did):
                if worker >= 0:
                    loads[worker] += problem.work[i, 0]
            value = loads.size * int(loads.max()) - int(loads.sum())
            assert one.decisions[f"{name} (as run)"].objective == value
            assert one.decisions[f"{name} (as run)"].seconds is None
        else:
            skipped += 1
            assert list(one.decisions) == ["fcfs"]
    assert all(list(s.decisions) == ["fcfs"] for s in outcome.solved if s.state.behaviour == "fcfs")
    assert [n for n in outcome.notes if "kept requests back" in n] == (
        [note_of_holding(f"{name} (as run)", skipped)] if skipped else []
    )
    row = summarise(outcome.solved, f"{name} (as run)")
    assert row.states == 5 - skipped
    assert math.isnan(row.microseconds_per_decision)


def note_of_holding(who, count):
    return (
        f"{who} kept requests back in {count} states although slots were free for them or they had to be admitted; "
        "what it did there is not compared with full placements"
    )


@pytest.mark.parametrize(
    "behaviour", ["fcfs", "br-0", "max-min", "jsq:admission=pooled", "round-robin:admission=pooled"]
)
def test_a_rule_that_decides_alike_has_no_second_row(behaviour):
    """What a deterministic pooled compiled rule did is what it decides; that holds for the very loads."""
    outcome = run_gap(small_config(behaviours=(behaviour,), policies=(behaviour,), long_runs=False))
    assert {tuple(s.decisions) for s in outcome.solved} == {(behaviour,)}
    for one in outcome.solved:
        assert objective(one.state.problem, one.state.chosen) == one.decisions[behaviour].objective


def test_what_was_done_is_scored_again_from_the_file(tmp_path):
    """steps.jsonl carries what the behaviour did, and scoring the frozen states gives the same row."""
    config = small_config(behaviours=("random:admission=pooled",), policies=("fcfs",), long_runs=False)
    outcome = run_gap(config)
    file = tmp_path / "steps.jsonl"
    file.write_text("".join(json.dumps(step_record(s)) + "\n" for s in outcome.solved))
    assert [s.chosen.tolist() for s in read_states(file)] == [s.state.chosen.tolist() for s in outcome.solved]
    again = run_gap(small_config(problems=str(file), policies=("fcfs",), long_runs=False))
    assert gaps(again) == gaps(outcome)
    assert {tuple(by) for by in gaps(again)} == {("fcfs", "random:admission=pooled (as run)")}


def log_of(config, behaviour, file):
    run = own_run(config, behaviour)
    table = zip(run.requests["worker"].tolist(), run.requests["start_step"].tolist(), strict=True)
    file.write_text("worker,start_step\n" + "".join(f"{g},{k}\n" for g, k in table))
    return f"replay:{file}"


def test_a_log_is_judged_by_what_it_did(tmp_path):
    """A log decides no frozen state: it has its long run, a row of what it did, and a note that says so."""
    config = small_config(policies=("fcfs",), behaviours=("br-0",))
    log = log_of(config, "br-0", tmp_path / "log.csv")
    outcome = run_gap(small_config(policies=("br-0", log), behaviours=(log,), states=3))
    name = make_policy(log).name
    assert outcome.notes == [f"policy {name} cannot decide a frozen state; it is judged in its long run alone"]
    assert [s.state.behaviour for s in outcome.solved] == [name] * 3
    assert {tuple(s.decisions) for s in outcome.solved} == {("br-0", f"{name} (as run)")}
    assert all(len({d.objective for d in s.decisions.values()}) == 1 for s in outcome.solved)  # br-0 wrote the log
    assert [r.policy for r in outcome.long_runs] == ["br-0", name]
    assert len({r.metrics.imbalance_tokens for r in outcome.long_runs}) == 1


def test_a_python_rule_that_binds_on_arrival_decides_no_frozen_state(tmp_path):
    """It is asked one request at a time: a long run, no decision, one note. A compiled one decides in pooled form."""
    file = tmp_path / "now.py"
    file.write_text("def first(o):\n    return [int(o.loads.argmin())]\nfirst.admission = 'immediate'\n")
    spec = f"{file}:first"
    outcome = run_gap(small_config(policies=("jsq:admission=immediate", spec), states=2))
    assert outcome.notes == [f"policy {spec} cannot decide a frozen state; it is judged in its long run alone"]
    assert {tuple(s.decisions) for s in outcome.solved} == {("jsq",)}
    assert [(r.policy, r.admission) for r in outcome.long_runs] == [("jsq", "immediate"), (spec, "immediate")]


def test_a_policy_that_holds_requests_back_is_skipped_and_counted(tmp_path):
    """Holding back is legal for a router: it costs the comparison in that state, not the study."""
    file = tmp_path / "holds.py"
    file.write_text(
        "import numpy as np\n"
        "def sometimes(o):\n"
        "    workers = np.full(o.sizes.size, -1)\n"
        "    places = np.repeat(np.arange(o.free_slots.size), o.free_slots)[: o.num_admissible]\n"
        "    workers[: places.size] = places\n"
        "    if o.step % 2: workers[places.size - 1] = -1\n"
        "    return workers\n"
    )
    spec = f"{file}:sometimes"
    outcome = run_gap(small_config(policies=("fcfs", spec), states=12, long_runs=False))
    odd = [s.state.step % 2 == 1 for s in outcome.solved]
    assert 0 < sum(odd) < 12
    assert [spec not in s.decisions for s in outcome.solved] == odd
    assert all("fcfs" in s.decisions for s in outcome.solved)
    assert outcome.notes == [note_of_holding(spec, sum(odd))]
    row = summarise(outcome.solved, spec)
    assert row.states == 12 - sum(odd)
    assert row.gap_mean_tokens >= 0


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("bf-io", "bf-io"),
        ("bf-io:solver=exact", "bf-io"),
        ("bf-io:solver=cp-sat", "bf-io:solver=cp-sat"),
        ("bf-io:age_bound=9,solver=highs", "bf-io:solver=highs,age_bound=9"),
        ("bf-io:time_limit=5", "bf-io:time_limit=5.0"),
        (ROUTER, ROUTER),
    ],
)
def test_a_name_tells_the_options(spec, name):
    """Two bf-io with different options, or functions of one name in two files, are two policies in a table."""
    assert make_policy(spec).name == name
