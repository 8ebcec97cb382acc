"""`run_gap`: the recipe of a gap study. Ctrl-C ends it early and keeps what is done."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, Policy
from lbopt.simulator import FrozenView
from lbopt.studies.gap.config import GapConfig
from lbopt.studies.gap.decisions import AS_RUN, decide_state, judged_step_by_step, score_as_run
from lbopt.studies.gap.long_runs import long_run
from lbopt.studies.gap.optima import solve_state
from lbopt.studies.gap.outcome import TIMINGS, GapOutcome
from lbopt.studies.gap.states import gather_states
from lbopt.studies.logs import refuse_logs_of_other_requests
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Study
from lbopt.studies.training import said_of_training, training_for


def run_gap(config: GapConfig, progress: Progress | None = None) -> GapOutcome:
    """Sample or read states, solve them, let every policy decide them, and run every policy over the requests."""
    begin = time.perf_counter()
    progress = progress or Silent()
    held_back: Counter[str] = Counter()
    policies = _policies(config)
    wants_requests = config.problems is None or config.long_runs
    outcome = GapOutcome(config, _describe(_requests(config, config.seed)) if wants_requests else {})
    if config.problems is None:
        outcome.notes.extend(said_of_training(config.scenario, policies))
    try:
        states, notes = gather_states(config, progress)
        outcome.notes.extend(notes)
        decided = {p.name for p in map(config.build, config.behaviours) if _decides_alike(p)}
        outcome.notes.extend(
            f"policy {policy.name} cannot decide a frozen state; it is judged in its long run alone"
            for policy in policies
            if not judged_step_by_step(policy)
        )
        progress.begin("solving and deciding", len(states))
        training = training_for(config.scenario, policies, config.seed, num_seeds=config.seeds)
        if config.problems is not None and training is not None:
            outcome.notes.append(
                f"predictors learned from {len(training)} requests of '{training.name}'; where the problems in "
                f"'{config.problems}' come from others, name those as the trace or by --train-on"
            )
        view = FrozenView(training)
        for state in states:
            solved = solve_state(state, config)
            held_back.update(decide_state(solved, policies, view, seed=config.seed))
            if state.behaviour not in decided and not score_as_run(solved):
                held_back[f"{state.behaviour}{AS_RUN}"] += 1
            outcome.solved.append(solved)
            progress.advance()
        if config.long_runs:
            progress.begin("long runs", config.seeds * len(policies))
            for seed in range(config.seed, config.seed + config.seeds):
                requests = _requests(config, seed)
                training = training_for(config.scenario, policies, seed, num_seeds=config.seeds)
                for spec in config.policies:
                    outcome.long_runs.append(long_run(config.build(spec), requests, training, config, seed))
                    progress.advance()
            outcome.notes.extend(_capacity_notes(outcome, config))
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.notes.extend(
        f"{who} kept requests back in {count} states although slots were free for them or they had to be admitted; "
        "what it did there is not compared with full placements"
        for who, count in held_back.items()
    )
    outcome.seconds = time.perf_counter() - begin
    return outcome


def _decides_alike(behaviour: Policy) -> bool:
    """Return whether what a behaviour did in its own state is what it would decide there again."""
    return isinstance(behaviour, CompiledPolicy) and behaviour.admission == "pooled" and not behaviour.draws


def _capacity_notes(outcome: GapOutcome, config: GapConfig) -> list[str]:
    """Name the policies under which a worker held more tokens than it has room for."""
    capacity = config.scenario.kv_capacity
    worst: dict[str, float] = {}
    for run in outcome.long_runs:
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
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise InputError(f"policy '{doubled.pop()}' is named twice")
    sampled = [config.build(spec) for spec in config.behaviours]
    if config.problems is None:
        source = config.scenario.requests
        refuse_logs_of_other_requests(source, policies, num_seeds=config.seeds)
        refuse_logs_of_other_requests(source, sampled, num_seeds=1 if source.is_family else config.seeds)
    if baseline_of(config) not in names:
        raise InputError(f"baseline '{config.baseline}' is not among the policies: {', '.join(names)}")
    return policies


def _requests(config: GapConfig, seed: int) -> Trace:
    return config.scenario.requests.draw_for(seed, num_seeds=config.seeds)


def _describe(requests: Trace) -> dict[str, Any]:
    return {
        "name": requests.name,
        "requests": len(requests),
        "left_out": dict(requests.left_out),
        "digest": requests.digest,
        "prompt_mean_tokens": float(requests.prompt.mean()),
        "output_mean_tokens": float(requests.output.mean()),
    }


STUDY = Study(
    name="gap",
    format="lbopt-gap",
    config=GapConfig,
    run=run_gap,
    tables=("gap", "long_runs", "differences"),
    figures=("gap_distribution", "imbalance_course", "waiting_trade"),
    account=("trace", "interrupted", "notes", "seconds"),
    timings=TIMINGS,
)
