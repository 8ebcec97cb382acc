"""The gap study from end to end on three workers: what is averaged, what is not, and what an interruption keeps."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats
from studies.small_study import NAMES, POLICIES, ROUTER, seeds_outcome, small_config, small_outcome

from lbopt.exceptions import InputError
from lbopt.model import barrier_total, check_assignment, objective
from lbopt.policies import make_policy
from lbopt.policies.decide import decide
from lbopt.report.gap_report import step_record
from lbopt.simulator import simulate
from lbopt.solvers import Result, solve
from lbopt.studies.gap import GapConfig, SolvedState, optima, run_gap, study
from lbopt.studies.gap.decisions import summarise
from lbopt.studies.gap.long_runs import COMPARED, compare
from lbopt.studies.gap.outcome import Decision
from lbopt.studies.gap.states import read_states
from lbopt.studies.requests import RequestSource


def numbers(outcome):
    """Everything in an outcome but the times of this machine."""
    records = [step_record(solved) for solved in outcome.solved]
    for record in records:
        del record["result"]["seconds"]
    runs = [(r.policy, r.seed, r.steps, r.metrics.to_dict(), r.tally) for r in outcome.long_runs]
    return json.dumps([records, runs, outcome.notes, outcome.trace])


def gaps(outcome):
    """Gaps of every state by policy."""
    return [{name: d.objective - s.best for name, d in s.decisions.items()} for s in outcome.solved]


# ---------------------------------------------------------------- a finished study


def test_every_policy_decides_every_state_and_runs_once():
    """Five states with a decision of each policy, and one long run of each."""
    outcome = small_outcome()
    assert len(outcome.solved) == 5
    assert all(tuple(s.decisions) == NAMES for s in outcome.solved)
    assert [(r.policy, r.seed) for r in outcome.long_runs] == [(name, 1) for name in NAMES]
    assert not outcome.interrupted


def test_no_policy_is_below_a_closed_optimum():
    """Gaps of closed states are never negative, and somewhere positive."""
    found = [
        gap
        for s, by in zip(small_outcome().solved, gaps(small_outcome()), strict=True)
        if s.standing != "open"
        for gap in by.values()
    ]
    assert min(found) >= 0
    assert max(found) > 0


def test_bf_io_has_no_gap_in_one_step():
    """The exact rule is optimal at H = 0 wherever its own solve ended."""
    row = summarise(small_outcome().solved, "bf-io")
    assert row.proved == 5
    assert (row.gap_max_tokens, row.gap_mean_share, row.optimal_share) == (0, 0, 1)


def test_a_row_of_the_table_by_hand():
    """Mean, median, P95, maximum, share of the barrier and share of optima, from the states themselves."""
    solved = small_outcome().solved
    row = summarise(solved, "random")
    own = np.array([s.decisions["random"].objective - s.best for s in solved])
    barriers = np.array([barrier_total(s.state.problem, s.result.assignment) for s in solved])
    assert row.gap_mean_tokens == pytest.approx(own.mean())
    assert row.gap_median_tokens == pytest.approx(np.median(own))
    assert row.gap_p95_tokens == pytest.approx(np.quantile(own, 0.95))
    assert row.gap_max_tokens == own.max()
    assert row.gap_mean_share == pytest.approx((own / barriers).mean())
    assert row.optimal_share == pytest.approx((own == 0).mean())


def test_barrier_time_by_hand():
    """The column is the mean of 112 us a request and 26 ns a token on the worker where that is most."""
    rules = ("iqr", "count-then-load", "level-then-load", "barrier-time")
    outcome = run_gap(small_config(policies=rules, long_runs=False))
    for rule in rules:
        barriers = []
        for s in outcome.solved:
            workers = decide(make_policy(rule), s.state.observation)
            counts, loads = s.state.running.tolist(), s.state.problem.base[:, 0].tolist()
            for i, g in enumerate(workers.tolist()):
                if g >= 0:
                    counts[g] += 1
                    loads[g] += int(s.state.problem.work[i, 0])
            barriers.append(max(112e-6 * b + 26e-9 * k for b, k in zip(counts, loads, strict=True)))
        assert summarise(outcome.solved, rule).barrier_mean_seconds == pytest.approx(np.mean(barriers))
    best = summarise(outcome.solved, "barrier-time").barrier_mean_seconds
    assert all(summarise(outcome.solved, rule).barrier_mean_seconds >= best for rule in rules), "all start the oldest"


def test_equal_configurations_give_equal_numbers():
    """A second run of the same configuration, rebuilt from plain data, differs in times alone."""
    again = GapConfig.from_dict(json.loads(json.dumps(small_config().to_dict())))
    assert again == small_config()
    assert numbers(run_gap(again)) == numbers(small_outcome())


def test_frozen_problems_give_the_same_gaps(tmp_path):
    """Scoring the written steps.jsonl reproduces every gap of the study that wrote it."""
    file = tmp_path / "steps.jsonl"
    file.write_text("".join(json.dumps(step_record(s)) + "\n" for s in small_outcome().solved))
    scored = run_gap(small_config(problems=str(file), long_runs=False))
    assert gaps(scored) == gaps(small_outcome())
    assert [s.state.step for s in scored.solved] == [s.state.step for s in small_outcome().solved]
    assert scored.long_runs == []


def test_bare_step_problems_can_be_scored(tmp_path):
    """A file of bare step problems, blank lines between, is a study with the behaviour 'given'."""
    file = tmp_path / "problems.jsonl"
    lines = [json.dumps(s.state.problem.to_dict()) for s in small_outcome().solved[:2]]
    file.write_text("\n\n".join(lines))
    assert [s.behaviour for s in read_states(file)] == ["given", "given"]
    scored = run_gap(small_config(problems=str(file), long_runs=False, policies=("max-min", "bf-io")))
    assert [s.decisions["bf-io"].objective for s in scored.solved] == [s.best for s in scored.solved]


# ---------------------------------------------------------------- standings


def feasible_only(problem, **options):
    """Solve, and forget that the answer is optimal."""
    result = solve(problem, **options)
    return (
        Result.of(
            problem,
            result.assignment,
            bound=0,
            proof="elementary-bound",
            stop_reason="time",
            solver=result.solver,
            seconds=0.0,
        )
        if result.objective
        else result
    )


def test_open_states_enter_no_average(monkeypatch):
    """States whose bound is below the value are counted as open and left out of every statistic."""
    calls = iter(range(100))
    monkeypatch.setattr(optima, "solve", lambda p, **o: (feasible_only if next(calls) % 2 else solve)(p, **o))
    outcome = run_gap(small_config(policies=("fcfs", "random"), long_runs=False))
    assert [s.standing for s in outcome.solved] == ["proved", "open", "proved", "open", "proved"]
    closed = [s for s in outcome.solved if s.standing == "proved"]
    row, alone = summarise(outcome.solved, "random"), summarise(closed, "random")
    assert (row.states, row.proved, row.claimed, row.open) == (5, 3, 0, 2)
    for name in (
        "gap_mean_tokens",
        "gap_median_tokens",
        "gap_p95_tokens",
        "gap_max_tokens",
        "gap_mean_share",
        "optimal_share",
        "barrier_mean_seconds",
    ):
        assert getattr(row, name) == getattr(alone, name)


def test_a_study_without_closed_states_has_no_averages(monkeypatch):
    """Where every state is open the averages are missing, not zero."""
    monkeypatch.setattr(optima, "solve", feasible_only)
    outcome = run_gap(small_config(policies=("fcfs",), long_runs=False, states=2))
    row = summarise(outcome.solved, "fcfs")
    assert row.open == 2
    assert math.isnan(row.gap_mean_tokens)
    assert math.isnan(row.optimal_share)


def worst_claim(state):
    """A result that claims, on a solver's word, that the greediest nonsense is optimal."""
    problem = state.problem
    size = problem.work[:, 0]
    workers = np.full(size.size, -1)
    slots = np.repeat(np.arange(problem.num_workers), problem.slots)
    workers[np.argsort(-size)[: problem.num_admitted]] = slots[: problem.num_admitted]
    value = objective(problem, check_assignment(problem, workers))
    return Result.of(
        problem, workers, bound=value, proof="claimed:highs", stop_reason="claimed", solver="highs", seconds=0.0
    )


def test_a_decision_below_a_claimed_optimum_opens_the_state():
    """One better decision refutes a solver's word; an equal one does not."""
    state = max((s for s in small_outcome().solved), key=lambda s: s.decisions["random"].objective - s.best).state
    solved = SolvedState(state, worst_claim(state))
    assert solved.standing == "claimed"
    solved.decisions["equal"] = Decision(solved.best, 0.0)
    assert solved.standing == "claimed"
    solved.decisions["better"] = Decision(solved.best - 1, 0.0)
    assert solved.standing == "open"
    row = summarise([solved], "better")
    assert (row.claimed, row.open) == (0, 1)
    assert math.isnan(row.gap_mean_tokens)


def test_a_refuted_claim_in_a_study_never_gives_a_negative_gap(monkeypatch):
    """With a solver that lies about every state, no negative gap is averaged."""
    monkeypatch.setattr(study, "solve_state", lambda state, config: SolvedState(state, worst_claim(state)))
    outcome = run_gap(small_config(long_runs=False))
    assert outcome.count("open") > 0
    for name in NAMES:
        assert not summarise(outcome.solved, name).gap_mean_tokens < 0


# ---------------------------------------------------------------- long runs


def test_paired_differences_by_hand():
    """Each difference is the mean over seeds of policy minus baseline, with SciPy's interval."""
    outcome = seeds_outcome()
    table = {(c.policy, c.metric): c for c in compare(outcome.long_runs, "fcfs")}
    assert len(table) == 3 * (len(COMPARED) - 2)  # without limits there is no goodput
    value = {(r.policy, r.seed): r.metrics for r in outcome.long_runs}
    for metric in {metric for _, metric in table}:
        own = [float(getattr(value["random", seed], metric)) for seed in (1, 2, 3)]
        base = [float(getattr(value["fcfs", seed], metric)) for seed in (1, 2, 3)]
        found = table["random", metric]
        differences = np.subtract(own, base)
        assert found.value.mean == pytest.approx(np.mean(own))
        assert found.difference.mean == pytest.approx(differences.mean())
        if differences.std() > 0:
            expected = stats.t.interval(0.95, 2, loc=differences.mean(), scale=stats.sem(differences))
            assert (found.difference.low, found.difference.high) == pytest.approx(expected)
        none = table["fcfs", metric].difference
        assert (none.mean, none.low, none.high) == (0, 0, 0)


def test_seeds_change_the_requests_and_states_come_from_the_first():
    """Seeds 1, 2, 3 run different requests; the states do not depend on the number of seeds."""
    runs = seeds_outcome().long_runs
    assert [(r.policy, r.seed) for r in runs] == [(p, s) for s in (1, 2, 3) for p in ("fcfs", "random", "br-0")]
    assert len({r.metrics.imbalance_tokens for r in runs if r.policy == "fcfs"}) == 3
    one = run_gap(small_config(policies=("fcfs",), behaviours=("fcfs", "br-0"), states=3, long_runs=False))
    assert [s.state.problem for s in one.solved] == [s.state.problem for s in seeds_outcome().solved]


def test_the_course_belongs_to_the_first_seed():
    """Only the first seed keeps its imbalance over time, and its mean is the metric."""
    for run in seeds_outcome().long_runs:
        assert (run.imbalance_course is not None) == (run.seed == 1)
    run = small_outcome().long_runs[0]
    assert 0 < run.imbalance_course.size <= 400
    assert run.imbalance_course.mean() == pytest.approx(run.metrics.imbalance_tokens, rel=0.02)


def test_seeds_of_a_file_in_order_are_refused(tmp_path):
    """Three seeds of the same rows in order would be three equal runs, and are refused with the way out."""
    file = tmp_path / "own.csv"
    file.write_text("p,o\n" + "".join(f"{i % 7 + 1},{i % 3 + 1}\n" for i in range(50)))
    source = RequestSource(trace=str(file), draw="order", prompt_column="p", output_column="o")
    with pytest.raises(InputError, match="--draw resample"):
        run_gap(small_config(requests=source, seeds=3, policies=("fcfs",)))
    assert source.draw_for(0).prompt.tolist()[:7] == [1, 2, 3, 4, 5, 6, 7]
    resampled = dataclasses.replace(source, draw="auto")
    assert resampled.draw_for(0, num_seeds=2).digest != resampled.draw_for(1, num_seeds=2).digest


def test_a_file_that_changed_is_read_again(tmp_path):
    """In one process, say a notebook, a file that was written anew gives its new requests."""
    file = tmp_path / "own.csv"
    source = RequestSource(trace=str(file), prompt_column="p", output_column="o")
    file.write_text("p,o\n1,1\n2,2\n")
    assert source.draw_for(0).prompt.tolist() == [1, 2]
    file.write_text("p,o\n30,1\n40,2\n50,3\n")
    assert source.draw_for(0).prompt.tolist() == [30, 40, 50]


# ---------------------------------------------------------------- configurations that cannot be


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"baseline": "br-0"}, "baseline 'br-0' is not among the policies"),
        ({"baseline": "brr-0"}, "unknown policy 'brr-0'"),
        ({"policies": ("fcfs", "random", "fcfs")}, "policy 'fcfs' is named twice"),
        ({"policies": ("br-0", "br-0:stage_switch=7")}, "policy 'br-0' is named twice"),
        ({"policies": ("fcfs", "nonsense")}, "unknown policy 'nonsense'"),
        ({"behaviours": ("nonsense",)}, "unknown policy 'nonsense'"),
        ({"problems": "/nowhere/steps.jsonl", "long_runs": False}, "cannot read the problems"),
    ],
)
def test_a_study_that_cannot_be_is_refused_before_it_begins(changes, expected, monkeypatch):
    """Baselines that are not there, policies named twice and typos are named before a single state is solved."""
    monkeypatch.setattr(study, "solve_state", lambda *_: pytest.fail("the study began"))
    with pytest.raises(InputError, match=expected):
        run_gap(small_config(**changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"states": 0}, "states is 0"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"policies": ()}, "no policies given"),
        ({"behaviours": ()}, "no behaviours given"),
        ({"arrivals": "poisson"}, "arrivals 'poisson' is unknown"),
        ({"load": 0.9}, "load has a meaning only"),
        ({"arrivals": "trace", "reveal_target": 3}, "reveal_target has a meaning only"),
        ({"time_limit": 0.0}, "time_limit is 0.0"),
        ({"time_limit": -1.0}, "time_limit is -1.0"),
        ({"time_limit": math.nan}, "time_limit is nan"),
        ({"solver": "highz"}, "'highz'"),
        ({"num_workers": 0}, "worker"),
        ({"slots_per_worker": 0}, "slot"),
        ({"kv_capacity": 0}, "capacity"),
        ({"event_order": "random"}, "'random'"),
        ({"arrivals": "trace", "load": 0.0}, "load"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_at_once(changes, expected):
    """A configuration is checked when it is made."""
    with pytest.raises(InputError, match=expected):
        small_config(**changes)


def test_a_run_without_choices_says_so():
    """One request leaves nothing to choose: an error that names ways out, not an empty report."""
    with pytest.raises(InputError, match="real choice"):
        run_gap(small_config(requests=RequestSource(trace="burstgpt-like", count=1)))


def test_fewer_states_than_wanted_are_noted():
    """Where a run has fewer choices than states wanted, the study goes on and says so."""
    outcome = run_gap(
        small_config(
            requests=RequestSource(trace="burstgpt-like", count=20), policies=("fcfs",), states=500, long_runs=False
        )
    )
    assert 0 < len(outcome.solved) < 500
    assert len(outcome.notes) == 1
    assert outcome.notes[0].startswith(
        f"behaviour fcfs: {len(outcome.solved)} states instead of 500; its run has no more decisions with a real choice"
    )


# ---------------------------------------------------------------- what behaviours really did


def started(state, run):
    """The worker of each waiting request that the run started in this very step, from its table alone."""
    table, step = run.requests, state.step
    waits = np.flatnonzero((table["reveal_step"] <= step) & (table["start_step"] >= step))
    return [int(table["worker"][i]) if table["start_step"][i] == step else -1 for i in waits]


def own_run(config, behaviour):
    requests = config.scenario.requests.draw_for(config.seed, num_seeds=config.seeds)
    return simulate(requests, make_policy(behaviour), config.scenario.setting, seed=config.seed)


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


# ---------------------------------------------------------------- interruptions


def interrupting(function, after):
    """`function`, with Ctrl-C instead of call number `after`, counted from 0."""
    calls = iter(range(10_000))

    def call(*arguments, **options):
        if next(calls) == after:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return call


def test_ctrl_c_between_states_keeps_what_is_done(monkeypatch):
    """Interrupted at the third state: two states with all their decisions, no long run, and the mark."""
    monkeypatch.setattr(study, "solve_state", interrupting(study.solve_state, 2))
    outcome = run_gap(small_config())
    assert outcome.interrupted
    assert len(outcome.solved) == 2
    assert all(tuple(s.decisions) == NAMES for s in outcome.solved)
    assert outcome.long_runs == []


def test_ctrl_c_between_long_runs_keeps_what_is_done(monkeypatch):
    """Interrupted at the third long run: all states and two runs."""
    monkeypatch.setattr(study, "long_run", interrupting(study.long_run, 2))
    outcome = run_gap(small_config())
    assert outcome.interrupted
    assert len(outcome.solved) == 5
    assert [r.policy for r in outcome.long_runs] == ["fcfs", "random"]


def test_ctrl_c_while_sampling_ends_the_study(monkeypatch):
    """Interrupted before the first state: an empty outcome that says so."""
    monkeypatch.setattr(study, "gather_states", interrupting(study.gather_states, 0))
    outcome = run_gap(small_config())
    assert outcome.interrupted
    assert (outcome.solved, outcome.long_runs) == ([], [])


def test_ctrl_c_that_a_solver_swallowed_ends_the_study(monkeypatch):
    """A solve that reports "interrupted" means that the user wants to stop, not that the next state is due."""

    def stopped(problem, **options):
        result = solve(problem, **options)
        return dataclasses.replace(result, stop_reason="interrupted")

    monkeypatch.setattr(optima, "solve", stopped)
    outcome = run_gap(small_config(policies=("fcfs",)))
    assert outcome.interrupted
    assert len(outcome.solved) <= 1
    assert outcome.long_runs == []


def test_progress_is_told_stage_by_stage():
    """Somebody who listens hears three stages, each to its end."""

    class Listener:
        def __init__(self):
            self.stages = []

        def begin(self, what, total):
            self.stages.append([what, total, 0])

        def advance(self, units=1):
            self.stages[-1][2] += units

    listener = Listener()
    run_gap(small_config(policies=("fcfs", "random")), listener)
    assert [stage[1] for stage in listener.stages] == [1, 5, 2]
    assert all(total == done for _, total, done in listener.stages)


def test_a_policy_that_breaks_a_rule_is_named(tmp_path):
    """A router that sends too many requests to a worker ends the study with its name."""
    file = tmp_path / "bad.py"
    file.write_text("def all_to_zero(o):\n    return [0] * o.sizes.size\n")
    with pytest.raises(ValueError, match="all_to_zero"):
        run_gap(small_config(policies=(*POLICIES[:1], f"{file}:all_to_zero"), long_runs=False))
