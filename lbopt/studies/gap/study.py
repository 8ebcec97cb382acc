"""`run_gap`: the recipe of a gap study. Ctrl-C ends it early and keeps what is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, Policy
from lbopt.simulator import FrozenView
from lbopt.studies.gap.config import GapConfig
from lbopt.studies.gap.decisions import (
    AS_RUN,
    decide_state,
    gather_states,
    judged_step_by_step,
    over_window,
    read_states,
    score_as_run,
    solve_state,
)
from lbopt.studies.gap.outcome import TIMINGS, GapOutcome, LongRun, long_run
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario
from lbopt.studies.study import Study, always
from lbopt.studies.training import refuse_logs_of_other_requests, said_of_training, training_for


def run_gap(config: GapConfig, progress: Progress | None = None) -> GapOutcome:
    """Sample or read states, solve them, let every policy decide them, and run every policy over the requests."""
    progress = progress or Silent()
    scenario, seed, num_seeds, problems = config.scenario, config.seed, config.seeds, config.problems
    policies, behaviours = _policies(config), [config.build(spec) for spec in config.behaviours]
    _refuse_foreign_logs(scenario.requests, policies, behaviours, num_seeds, sampled=problems is None)
    described = {}
    if problems is None or config.long_runs:
        described = _describe(scenario.requests.draw_for(seed, num_seeds=num_seeds))
    outcome = GapOutcome(config, described)
    held_back: Counter[str] = Counter()
    with outcome.clocked():
        if problems is None:
            outcome.notes += said_of_training(scenario, policies)
            states, notes = gather_states(behaviours, scenario, config.states, seed, num_seeds, progress)
            outcome.notes += notes
        else:
            states = read_states(Path(problems))
            for state in states:
                state.problem.refuse_conditions("a gap study")
        states = over_window(states, config.horizon, config.new)
        outcome.notes += _not_judged(policies)
        training = training_for(scenario, policies, seed, num_seeds=num_seeds)
        if problems is not None and training is not None:
            outcome.notes.append(_trained_elsewhere(training, problems))
        decided = {policy.name for policy in behaviours if _decides_alike(policy)}
        view, budget = FrozenView(training), config.budget
        progress.begin("solving and deciding", len(states))
        for state in states:
            solved = solve_state(state, budget)
            held_back.update(decide_state(solved, policies, view, seed=seed))
            if state.behaviour not in decided and not score_as_run(solved):
                held_back[f"{state.behaviour}{AS_RUN}"] += 1
            outcome.solved.append(solved)
            progress.advance()
        if config.long_runs:
            progress.begin("long runs", num_seeds * len(config.run_over_time))
            for run in _long_runs(scenario, policies, config.run_over_time, config.build, config.all_seeds):
                outcome.long_runs.append(run)
                progress.advance()
            outcome.notes += _capacity_notes(outcome.long_runs, scenario.kv_capacity)
    outcome.notes.extend(
        f"{who} kept requests back in {count} states although slots were free for them or they had to be admitted; "
        "what it did there is not compared with full placements"
        for who, count in held_back.items()
    )
    return outcome


def _long_runs(
    scenario: Scenario, policies: Sequence[Policy], specs: Sequence[str], build: Callable[[str], Policy], seeds: range
) -> Iterator[LongRun]:
    """Yield the run of every policy with every seed; a policy is built anew of its text for each, since it may learn.

    Parameters
    ----------
    policies, specs
        The policies, and the texts that name them.
    seeds
        The first one's runs keep the course of their imbalance.
    """
    setting = scenario.setting
    for seed in seeds:
        requests = scenario.requests.draw_for(seed, num_seeds=len(seeds))
        training = training_for(scenario, policies, seed, num_seeds=len(seeds))
        for spec in specs:
            yield long_run(build(spec), requests, training, setting, seed, with_course=seed == seeds[0])


def _not_judged(policies: Sequence[Policy]) -> list[str]:
    return [
        f"policy {policy.name} cannot decide a frozen state; it is judged in its long run alone"
        for policy in policies
        if not judged_step_by_step(policy)
    ]


def _trained_elsewhere(training: Trace, problems: str) -> str:
    return (
        f"predictors learned from {len(training)} requests of '{training.name}'; where the problems in "
        f"'{problems}' come from others, name those as the trace or by train_on"
    )


def _decides_alike(behaviour: Policy) -> bool:
    """Return whether what a behaviour did in its own state is what it would decide there again."""
    return isinstance(behaviour, CompiledPolicy) and behaviour.admission == "pooled" and not behaviour.draws


def _capacity_notes(runs: Sequence[LongRun], capacity: int | None) -> list[str]:
    """Name the policies under which a worker held more tokens than it has room for."""
    worst: dict[str, float] = {}
    for run in runs:
        worst[run.policy] = max(worst.get(run.policy, 0.0), run.metrics.over_capacity_share)
    return [
        f"policy {policy}: {share:.2%} of all worker-steps exceed the KV capacity of {capacity} tokens"
        for policy, share in worst.items()
        if share > 0
    ]


def baseline_of(config: GapConfig) -> str:
    """Return the name of the baseline policy: the one named, else the first."""
    return config.build(config.baseline or config.policies[0]).name


def _policies(config: GapConfig) -> list[Policy]:
    """Build all policies before anything long begins, so that a typo costs nothing."""
    policies = [config.build(spec) for spec in config.policies]
    names = [policy.name for policy in policies]
    if (doubled := repeated(names)) is not None:
        raise InputError(f"policy '{doubled}' is named twice")
    return policies


def _refuse_foreign_logs(
    source: RequestSource, policies: Sequence[Policy], behaviours: Sequence[Policy], num_seeds: int, *, sampled: bool
) -> None:
    """Refuse logs of other requests than those that are run; frozen problems need none."""
    if sampled:
        refuse_logs_of_other_requests(source, policies, num_seeds=num_seeds)
        refuse_logs_of_other_requests(source, behaviours, num_seeds=1 if source.is_family else num_seeds)


def _describe(requests: Trace) -> dict[str, Any]:
    return {
        "name": requests.name,
        "requests": len(requests),
        "left_out": dict(requests.left_out),
        "digest": requests.digest,
        "prompt_mean_tokens": float(requests.prompt.mean()),
        "output_mean_tokens": float(requests.output.mean()),
    }


HELP = """Sample decode steps, solve each to optimality, and measure how far every policy stays behind.

Writes gap.csv, long_runs.csv, differences.csv, steps.jsonl, pictures, report.html and run.json.

Example: `lbopt gap burstgpt-like --requests 3000 --states 20 --out demo-gap`
"""

STUDY = Study(
    name="gap",
    config=GapConfig,
    help=HELP,
    folder="lbopt-gap",
    run=run_gap,
    account=("trace", "interrupted", "notes", "seconds"),
    has_results=always,
    timings=TIMINGS,
)
