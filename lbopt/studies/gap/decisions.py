"""Every policy decides the same step problem; what it leaves on the table is the gap."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from lbopt.model import StepProblem, check_assignment, objective
from lbopt.model.integers import IntArray
from lbopt.policies import CompiledPolicy, Policy
from lbopt.policies.decide import decide, repeats_alike, seconds_per_decision
from lbopt.policies.decode_programs import ALPHA, BETA
from lbopt.policies.replay import Replay
from lbopt.simulator import FrozenView, SampledState
from lbopt.studies.gap.outcome import Decision, PolicyGap, SolvedState

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
    policies
        Rules that decide.
    view
        Shows the state to a rule.
    seed
        Seed of rules that draw.
    """
    problem = solved.state.problem
    held_back = []
    for policy in policies:
        if not judged_step_by_step(policy):
            continue
        observation = view.observe(solved.state, policy)
        begin = time.perf_counter()
        assignment = decide(policy, observation, seed=seed, round_robin_at=solved.state.step)
        seconds = time.perf_counter() - begin
        if repeats_alike(policy):  # microseconds need warm repeats; others are asked once
            seconds = seconds_per_decision(policy, observation)
        who = f"policy '{policy.name}', in step {solved.state.step} under {solved.state.behaviour},"
        legal = check_assignment(problem, assignment, who=who, full=False)
        if _is_full(problem, legal):
            solved.decisions[policy.name] = Decision(
                objective(problem, legal), seconds, barrier_after(solved.state, legal)
            )
        else:
            held_back.append(policy.name)
    return held_back


def _is_full(problem: StepProblem, workers: IntArray) -> bool:
    admits = workers >= 0
    return int(admits.sum()) == problem.num_admitted and bool(admits[problem.must_admit].all())


def score_as_run(solved: SolvedState) -> bool:
    """Note the imbalance after what the behaviour really did; False where it left slots empty while somebody waited.

    A rule that binds on arrival may leave a slot empty while somebody waits elsewhere. Its imbalance then is not
    comparable with the optimum over full placements, and is left out.
    """
    chosen, problem = solved.state.chosen, solved.state.problem
    if chosen is None:
        return True
    workers = check_assignment(problem, chosen, who=f"the log of '{solved.state.behaviour}'", full=False)
    if not _is_full(problem, workers):
        return False
    decision = Decision(objective(problem, workers), None, barrier_after(solved.state, workers))
    solved.decisions[solved.state.behaviour + AS_RUN] = decision
    return True


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
    known = gaps.size > 0
    return PolicyGap(
        behaviour=behaviour,
        policy=policy,
        states=len(chosen),
        proved=standings.count("proved"),
        searched=standings.count("searched"),
        claimed=standings.count("claimed"),
        open=standings.count("open"),
        gap_mean_tokens=float(gaps.mean()) if known else np.nan,
        gap_mean_low_tokens=float(np.mean(low)) if chosen else np.nan,
        gap_mean_high_tokens=float(np.mean(high)) if chosen else np.nan,
        gap_median_tokens=float(np.median(gaps)) if known else np.nan,
        gap_p95_tokens=float(np.quantile(gaps, 0.95)) if known else np.nan,
        gap_max_tokens=float(gaps.max()) if known else np.nan,
        gap_mean_share=float((gaps / barriers).mean()) if known else np.nan,
        optimal_share=float((gaps == 0).mean()) if known else np.nan,
        barrier_mean_seconds=1e-9 * float(steps.mean()) if known else np.nan,
        microseconds_per_decision=1e6 * float(np.median(times)) if times else np.nan,
    )
