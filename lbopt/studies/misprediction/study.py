"""`run_misprediction`: sample and solve states once, then let every rule decide and run with every forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lbopt.exceptions import InputError
from lbopt.model import Trace, check_assignment, objective
from lbopt.policies.decide import decide
from lbopt.predictors import make_predictor
from lbopt.simulator import FrozenView
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.gap import LongRun, PolicyGap, SolvedState
from lbopt.studies.gap.decisions import barrier_after, gather_states, over_window, solve_state, summarise
from lbopt.studies.gap.outcome import TIMINGS, Decision, compare, long_run
from lbopt.studies.misprediction.forecasts import EXACT, MYOPIC, NO_WINDOW, Case, MispredictionConfig, cases_of
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Outcome, Study

#: Metrics of the long runs that are compared.
METRICS = ("imbalance_tokens", "throughput_tokens_per_second", "tpot_mean_seconds", "waiting_max_steps")


@dataclass(frozen=True, slots=True)
class LongRunCost:
    """One metric over the seeds, and its paired differences: to the same rule with the exact forecast and without a
    window, and to br-0; None where no seed has both.
    """

    value: MeanOverSeeds
    to_exact: MeanOverSeeds | None
    to_no_window: MeanOverSeeds | None
    to_myopic: MeanOverSeeds | None


@dataclass(frozen=True, slots=True)
class ForecastCost:
    """What one rule makes of one forecast.

    Parameters
    ----------
    case
        Rule and forecast.
    gap
        Its distance to the optimum of the frozen states; None where it decided none.
    seeds
        Seeds of its long runs.
    metrics
        By name from `METRICS`; empty where there is no long run.
    """

    case: Case
    gap: PolicyGap | None
    seeds: int
    metrics: dict[str, LongRunCost]


@dataclass(slots=True, eq=False, repr=False)
class MispredictionOutcome(Outcome):
    """Everything a misprediction study found.

    Parameters
    ----------
    config
        What was asked.
    trace
        Name, digest and number of the requests of the first seed.
    solved
        States with their optima and the decisions by the names of the cases.
    long_runs
        One per case and seed, `policy` being the name of the case.
    notes
        What a reader has to know besides.
    interrupted
        Whether the study was ended early.
    seconds
        Time it took.
    """

    config: MispredictionConfig
    trace: dict[str, Any]
    solved: list[SolvedState] = field(default_factory=list)
    long_runs: list[LongRun] = field(default_factory=list)

    def costs(self) -> list[ForecastCost]:
        """Return one line per case that decided a state or ran."""
        cases = cases_of(self.config)
        to_myopic = _differences(self.long_runs, MYOPIC)
        to_exact: dict[tuple[str, str], MeanOverSeeds] = {}
        to_no_window: dict[tuple[str, str], MeanOverSeeds] = {}
        for rule in self.config.rules:
            own = [run for run in self.long_runs if run.policy.startswith(f"{rule.name} | ")]
            to_exact |= _differences(own, f"{rule.name} | {EXACT}")
            to_no_window |= _differences(own, f"{rule.name} | {NO_WINDOW}")
        values: dict[str, dict[str, MeanOverSeeds]] = {}
        seeds: dict[str, int] = {}
        for case in cases:
            own = [run for run in self.long_runs if run.policy == case.name]
            seeds[case.name] = len(own)
            values[case.name] = {c.metric: c.value for c in compare(own, case.name)}
        found = []
        for case in cases:
            gap = summarise(self.solved, case.name)
            metrics = {
                name: LongRunCost(
                    values[case.name][name],
                    to_exact.get((case.name, name)),
                    to_no_window.get((case.name, name)),
                    to_myopic.get((case.name, name)),
                )
                for name in METRICS
                if values[case.name]
            }
            if gap.states or metrics:
                found.append(ForecastCost(case, gap if gap.states else None, seeds[case.name], metrics))
        return found


def _differences(runs: Sequence[LongRun], baseline: str) -> dict[tuple[str, str], MeanOverSeeds]:
    """Return the paired differences to `baseline` by policy and metric; none to itself."""
    found = compare(runs, baseline)
    return {(c.policy, c.metric): c.difference for c in found if c.policy != baseline}


#: Seeds of the errors in frozen states lie apart by so much, and below the largest that an oracle takes.
_SPREAD, _LARGEST_SEED = 1_000_003, 2**31


def run_misprediction(config: MispredictionConfig, progress: Progress | None = None) -> MispredictionOutcome:
    """Run the study; Ctrl-C keeps the states that every case has decided, and the long runs that are done."""
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
    with outcome.clocked():
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
                outcome.long_runs.append(run.but(policy=case.name))
                progress.advance()
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
            f"predictors have nothing to learn from ({error}); take a larger file, or name other requests by train_on"
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
