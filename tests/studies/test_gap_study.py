"""The gap study from end to end on three workers: what is averaged, what is not, and what an interruption keeps."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats
from solvers.stated import stated
from studies.small_study import NAMES, gaps, seeds_outcome, small_config, small_outcome

from lbopt.exceptions import InputError
from lbopt.model import barrier_total, check_assignment, objective
from lbopt.policies import make_policy
from lbopt.policies.decide import decide
from lbopt.report.gap_tables import gap_tables, step_record
from lbopt.solvers import solve
from lbopt.studies.gap import GapConfig, SolvedState, decisions, run_gap, study
from lbopt.studies.gap.decisions import read_states, summarise
from lbopt.studies.gap.outcome import COMPARED, Decision, compare
from lbopt.studies.requests import RequestSource


def numbers(outcome):
    """Everything in an outcome but the times of this machine."""
    records = [step_record(solved) for solved in outcome.solved]
    for record in records:
        del record["result"]["seconds"]
    runs = [(r.policy, r.seed, r.steps, r.metrics.to_dict(), r.tally) for r in outcome.long_runs]
    return json.dumps([records, runs, outcome.notes, outcome.trace])


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
        stated(
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


def test_the_word_of_the_search_is_not_counted_as_proved(monkeypatch):
    """What the search calls optimal without a check stands apart, and enters the averages."""

    def unchecked(problem, **options):
        result = solve(problem, **options)
        return dataclasses.replace(result, proof="search", stop_reason="proved")

    monkeypatch.setattr(decisions, "solve", unchecked)
    outcome = run_gap(small_config(policies=("fcfs", "random"), long_runs=False))
    row = summarise(outcome.solved, "random")
    assert (row.states, row.proved, row.searched, row.claimed, row.open) == (5, 0, 5, 0, 0)
    assert row.gap_mean_tokens == row.gap_mean_low_tokens == row.gap_mean_high_tokens
    assert "5 states: 0 proved, 5 by the search, 0 claimed by a solver, 0 open." in gap_tables(outcome)[0].caption
    assert "5 searched" in repr(outcome)


def test_work_limits_states_alike_everywhere():
    config = small_config(policies=("fcfs",), long_runs=False, effort=1, time_limit=60.0)
    first, again = (run_gap(config).solved for _ in range(2))
    assert [(s.best, s.result.bound) for s in first] == [(s.best, s.result.bound) for s in again]
    former = {name: value for name, value in config.to_dict().items() if name != "effort"}
    assert GapConfig.from_dict(former) == dataclasses.replace(config, effort=None)
    with pytest.raises(InputError, match="effort is 0"):
        small_config(effort=0)
    with pytest.raises(InputError, match="effort is for solver='exact'"):
        small_config(effort=9, solver="highs")


def test_open_states_enter_no_average(monkeypatch):
    """States whose bound is below the value are counted as open and left out of every statistic."""
    calls = iter(range(100))
    monkeypatch.setattr(decisions, "solve", lambda p, **o: (feasible_only if next(calls) % 2 else solve)(p, **o))
    outcome = run_gap(small_config(policies=("fcfs", "random"), long_runs=False))
    assert [s.standing for s in outcome.solved] == ["proved", "open", "proved", "open", "proved"]
    closed = [s for s in outcome.solved if s.standing == "proved"]
    row, alone = summarise(outcome.solved, "random"), summarise(closed, "random")
    assert (row.states, row.proved, row.searched, row.claimed, row.open) == (5, 3, 0, 0, 2)
    values = [s.decisions["random"].objective for s in outcome.solved]
    assert row.gap_mean_low_tokens == pytest.approx(np.mean(values) - np.mean([s.best for s in outcome.solved]))
    bounds = [s.result.bound for s in outcome.solved]  # 0 of the open ones
    assert row.gap_mean_high_tokens == pytest.approx(np.mean(values) - np.mean(bounds))
    assert row.gap_mean_high_tokens > row.gap_mean_low_tokens
    assert alone.gap_mean_low_tokens == alone.gap_mean_high_tokens == alone.gap_mean_tokens
    table = gap_tables(outcome)[0]
    assert table.headers[:3] == ("policy", "states", "all, from … to")
    assert {line[1] for line in table.rows} == {"3 of 5"}
    assert "5 states: 3 proved, 0 by the search, 0 claimed by a solver, 2 open." in table.caption
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
    monkeypatch.setattr(decisions, "solve", feasible_only)
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
    return stated(
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
    with pytest.raises(InputError, match="draw=resample"):
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
