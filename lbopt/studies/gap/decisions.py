"""Step problems, sampled under each behaviour or read from a file; their optima; and what every policy decides there.

What a decision leaves on the table is the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.files import called, json_lines, read_text
from lbopt.model import check_assignment, objective
from lbopt.model.integers import IntArray
from lbopt.policies import CompiledPolicy, Policy
from lbopt.policies.decide import decide, repeats_alike, seconds_per_decision
from lbopt.policies.decode_programs import ALPHA, BETA
from lbopt.policies.replay import Replay
from lbopt.simulator import FrozenView, SampledState, sample_states
from lbopt.solvers import solve
from lbopt.solvers.registry import compiled
from lbopt.studies.gap.outcome import STANDINGS, Decision, PolicyGap, SolvedState
from lbopt.studies.progress import Progress
from lbopt.studies.scenario import Scenario
from lbopt.studies.training import training_for

#: Bytes of a file of states; each line is read by itself.
LARGEST_STATES = 2**30


def gather_states(
    behaviours: Sequence[Policy], scenario: Scenario, count: int, seed: int, num_seeds: int, progress: Progress
) -> tuple[list[SampledState], list[str]]:
    """Return states sampled under each behaviour, and remarks about what could not be had.

    Parameters
    ----------
    seed, num_seeds
        Seed of the requests and of the sample, and number of seeds of the study, which decides how a file is drawn.
    progress
        Shows one stage, a unit for each behaviour.

    Raises
    ------
    InputError
        If no behaviour makes a decision with a real choice.
    """
    states: list[SampledState] = []
    notes: list[str] = []
    progress.begin("sampling states", len(behaviours))
    requests, setting = scenario.requests.draw_for(seed, num_seeds=num_seeds), scenario.setting
    for policy in behaviours:
        training = training_for(scenario, [policy], seed, num_seeds=num_seeds)
        found, run = sample_states(requests, policy, setting, count, seed=seed, training=training)
        metrics = run.metrics()
        if len(found) < count:
            notes.append(
                f"behaviour {policy.name}: {len(found)} states instead of {count}; its run has no more "
                f"decisions with a real choice between warm-up and cool-down (requests are admitted "
                f"until step {run.window.last}; "
                f"{metrics.real_choice_share:.1%} real choices, occupancy {metrics.occupancy:.1%})"
            )
        states.extend(found)
        progress.advance()
    if not states:
        raise InputError(
            "no decision between warm-up and cool-down of these runs has a real choice, so every policy ties; "
            "use more requests, more than one worker, or requests that differ in size"
        )
    return states, notes


def over_window(states: Sequence[SampledState], horizon: int, new: str) -> list[SampledState]:
    """Return the states with the problems by which they are judged: over a window of `horizon` steps, 0 for none."""
    return [state.over_window(horizon, new) for state in states] if horizon else list(states)


def read_states(path: Path) -> list[SampledState]:
    """Read states from a file with one JSON object a line, as `steps.jsonl` or as bare step problems."""
    source = called(path)
    states = [
        SampledState.from_dict(data, source=f"{source}, line {number}")
        for number, data in json_lines(read_text(path, f"the problems in '{source}'", largest=LARGEST_STATES), source)
    ]
    if not states:
        raise InputError(f"'{path}' holds no step problem")
    return states


@dataclass(frozen=True, slots=True)
class Budget:
    """By which solver each state is solved, in how many seconds and units of work (None = no limit), and which seed."""

    solver: str
    time_limit: float | None
    seed: int
    effort: int | None = None


def solve_state(state: SampledState, budget: Budget) -> SolvedState:
    """Return the state with its optimum, or with the best known value and bound at the time limit."""
    solver = compiled(budget.solver)
    result = solve(state.problem, solver=solver, time_limit=budget.time_limit, seed=budget.seed, effort=budget.effort)
    if result.stop_reason == "interrupted":  # the solver has caught Ctrl-C; the study has to end, too
        raise KeyboardInterrupt
    return SolvedState(state, result)


ALL = "all"

#: Behind a behaviour's name: what it really did in its own states, as opposed to what it would decide in any state.
AS_RUN = " (as run)"


def judged_step_by_step(policy: Policy) -> bool:
    """Return whether a policy can decide a frozen state.

    A log knows only what happened (see `score_as_run`), and a Python rule that binds on arrival is asked one request
    at a time. Compiled rules that bind on arrival decide in their pooled form: by the same signal, in order of arrival.
    """
    return isinstance(policy, CompiledPolicy) or (policy.admission == "pooled" and not isinstance(policy, Replay))


def decide_state(solved: SolvedState, policies: Sequence[Policy], view: FrozenView, *, seed: int) -> list[str]:
    """Let each policy decide the state as `view` shows it, check the decision, and note imbalance and time.

    Returns the names of the policies whose decision keeps back a request that has to be admitted: it is legal for a
    router, but its imbalance is not comparable with the optimum over full placements, and is left out.

    Parameters
    ----------
    solved
        The state and its optimum; decisions are added to it.
    """
    problem = solved.state.problem
    held_back = []
    for policy in policies:
        if not judged_step_by_step(policy):
            continue
        observation = view.observe(solved.state, policy)
        begin = compile_time.clock()
        assignment = decide(policy, observation, seed=seed, round_robin_at=solved.state.step)
        seconds = compile_time.clock() - begin
        if repeats_alike(policy):  # microseconds need warm repeats; others are asked once
            seconds = seconds_per_decision(policy, observation)
        who = f"policy '{policy.name}', in step {solved.state.step} under {solved.state.behaviour},"
        legal = check_assignment(problem, assignment, who=who, full=False)
        if not _noted(solved, policy.name, legal, seconds):
            held_back.append(policy.name)
    return held_back


def _noted(solved: SolvedState, name: str, workers: IntArray, seconds: float | None = None) -> bool:
    """Note a decision; False where it keeps back a request for which there is a slot, or which has to be admitted."""
    problem, admits = solved.state.problem, workers >= 0
    full = int(admits.sum()) == problem.num_admitted and bool(admits[problem.must_admit].all())
    if full:
        barrier = barrier_after(solved.state, workers)
        solved.decisions[name] = Decision(objective(problem, workers), seconds, barrier)
    return full


def score_as_run(solved: SolvedState) -> bool:
    """Note the imbalance after what the behaviour really did; False where it left slots empty while a request waited.

    A rule that binds on arrival may leave a slot empty while a request waits elsewhere. Its imbalance then is not
    comparable with the optimum over full placements, and is left out.
    """
    chosen, problem = solved.state.chosen, solved.state.problem
    if chosen is None:
        return True
    workers = check_assignment(problem, chosen, who=f"the log of '{solved.state.behaviour}'", full=False)
    return _noted(solved, solved.state.behaviour + AS_RUN, workers)


def barrier_after(state: SampledState, workers: IntArray) -> int:
    """Return the largest ALPHA * requests + BETA * tokens of a worker in the present step (ns; SBS, section 9.2)."""
    problem, started = state.problem, workers >= 0
    counts, loads = state.running.copy(), problem.base[:, 0].copy()
    np.add.at(counts, workers[started], 1)
    np.add.at(loads, workers[started], problem.work[started, 0])
    return int((ALPHA * counts + BETA * loads).max())


def summarise(solved: Sequence[SolvedState], policy: str, behaviour: str = ALL) -> PolicyGap:
    """Return one line of the gap table; open states are counted, and enter the interval alone."""
    chosen = [s for s in solved if behaviour in (ALL, s.state.behaviour) and policy in s.decisions]
    standings = [s.standing for s in chosen]
    closed = [s for s in chosen if s.standing != "open"]
    gaps = np.array([s.decisions[policy].objective - s.best for s in closed], dtype=np.float64)
    barriers = np.array([max(1, s.barrier) for s in closed], dtype=np.float64)
    times = [seconds for s in chosen if (seconds := s.decisions[policy].seconds) is not None]
    steps = np.array([s.decisions[policy].barrier for s in closed], dtype=np.float64)
    low = [s.decisions[policy].objective - min(s.best, *(d.objective for d in s.decisions.values())) for s in chosen]
    high = [s.decisions[policy].objective - (s.result.bound if s.standing == "open" else s.best) for s in chosen]

    def over(values: Sequence[Any] | NDArray[Any], mean: Callable[..., Any] = np.mean) -> float:
        return float(mean(values)) if len(values) else np.nan

    return PolicyGap(
        **{"behaviour": behaviour, "policy": policy, "states": len(chosen)},
        **{standing: standings.count(standing) for standing in STANDINGS},
        gap_mean_tokens=over(gaps),
        gap_mean_low_tokens=over(low),
        gap_mean_high_tokens=over(high),
        gap_median_tokens=over(gaps, np.median),
        gap_p95_tokens=over(gaps, partial(np.quantile, q=0.95)),
        gap_max_tokens=over(gaps, np.max),
        gap_mean_share=over(gaps / barriers),
        optimal_share=over(gaps == 0),
        barrier_mean_seconds=1e-9 * over(steps),
        microseconds_per_decision=1e6 * over(times, np.median),
    )
