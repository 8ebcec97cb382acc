"""`run_misprediction`: sample and solve states once, then let every rule decide and run with every forecast."""

from __future__ import annotations

import time
from dataclasses import replace

from lbopt.exceptions import InputError
from lbopt.model import Trace, check_assignment, objective
from lbopt.policies.decide import decide
from lbopt.predictors import make_predictor
from lbopt.simulator import FrozenView
from lbopt.studies.gap import SolvedState
from lbopt.studies.gap.decisions import barrier_after
from lbopt.studies.gap.long_runs import long_run
from lbopt.studies.gap.optima import solve_state
from lbopt.studies.gap.outcome import TIMINGS, Decision
from lbopt.studies.gap.states import gather_states, over_window
from lbopt.studies.misprediction.config import MispredictionConfig
from lbopt.studies.misprediction.forecasts import Case, cases_of
from lbopt.studies.misprediction.outcome import MispredictionOutcome
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Study

#: Seeds of the errors in frozen states lie apart by so much, and below the largest that an oracle takes.
_SPREAD, _LARGEST_SEED = 1_000_003, 2**31


def run_misprediction(config: MispredictionConfig, progress: Progress | None = None) -> MispredictionOutcome:
    """Run the study; Ctrl-C keeps the states that every case has decided, and the long runs that are done."""
    begin = time.perf_counter()
    progress = progress or Silent()
    cases = cases_of(config)
    requests = _requests(config, config.seed)
    own, other = _training(config, config.seed)
    for case in cases:  # refuses what a predictor refuses, before anything long begins
        if case.variant is not None and case.variant.learns:
            learnt = other if case.variant.other else own
            make_predictor(case.variant.predictor, requests=requests, training=learnt, horizon=config.horizon)
    outcome = MispredictionOutcome(
        config,
        {
            "name": requests.name,
            "digest": requests.digest,
            "requests": len(requests),
            "left_out": dict(requests.left_out),
            "training_requests": len(own),
            "other_trace": config.other,
            "other_training_requests": len(other),
        },
    )
    try:
        gap, scenario = config.gap, config.scenario
        behaviours = [gap.build(config.behaviour)]
        states, notes = gather_states(behaviours, scenario, config.states, config.seed, config.seeds, progress)
        states = over_window(states, config.horizon, config.new)
        outcome.notes.extend(notes)
        views = (FrozenView(own), FrozenView(other))
        progress.begin("solving and deciding", len(states))
        for state in states:
            solved = solve_state(state, gap.budget)
            for case in cases:
                _decide(solved, case, views, config.seed)
            outcome.solved.append(solved)
            progress.advance()
        progress.begin("long runs", config.seeds * len(cases))
        for seed in range(config.seed, config.seed + config.seeds):
            requests = _requests(config, seed)
            own, other = _training(config, seed)
            for case in cases:
                learnt = other if case.variant is not None and case.variant.other else own
                run = long_run(
                    case.build(seed), requests, learnt, scenario.setting, seed, with_course=seed == config.seed
                )
                outcome.long_runs.append(replace(run, policy=case.name))
                progress.advance()
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.seconds = time.perf_counter() - begin
    return outcome


def _decide(solved: SolvedState, case: Case, views: tuple[FrozenView, FrozenView], seed: int) -> None:
    """Note the imbalance after what the case decides in the state."""
    state = solved.state
    policy = case.build((_SPREAD * seed + state.step) % _LARGEST_SEED)
    view = views[1] if case.variant is not None and case.variant.other else views[0]
    who = f"policy '{policy.name}', in step {state.step} under {state.behaviour},"
    assignment = check_assignment(state.problem, decide(policy, view.observe(state, policy)), who=who)
    solved.decisions[case.name] = Decision(objective(state.problem, assignment), None, barrier_after(state, assignment))


def _requests(config: MispredictionConfig, seed: int) -> Trace:
    return config.scenario.requests.draw_for(seed, num_seeds=config.seeds)


def _training(config: MispredictionConfig, seed: int) -> tuple[Trace, Trace]:
    """Return the requests to learn from: others of the same source, and those of the other trace."""
    source = config.scenario.requests
    elsewhere = replace(source, train_on=config.other, train_share=0.0)
    try:
        own = source.training_for(seed, num_seeds=config.seeds)
    except InputError as error:
        raise InputError(
            f"predictors have nothing to learn from ({error}); take a larger file, or name other requests by --train-on"
        ) from None
    return own, elsewhere.training_for(seed)


HELP = """Give rules that look ahead worse and worse forecasts, and measure what each costs.

With --out, writes misprediction.csv, long_runs.csv, steps.jsonl, misprediction.png, misprediction.svg and run.json.

Example: `lbopt study misprediction burstgpt-like --requests 4000 --states 20 --out my-study`
"""

STUDY = Study(
    name="misprediction",
    config=MispredictionConfig,
    help=HELP,
    run=run_misprediction,
    account=("trace", "interrupted", "notes", "seconds"),
    timings=TIMINGS,
)
