"""Every policy decides the same step problem; what it leaves on the table is the gap."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from lbopt.model import check_assignment, objective
from lbopt.policies import CompiledPolicy, Policy
from lbopt.policies.decide import decide, seconds_per_decision
from lbopt.policies.replay import Replay
from lbopt.studies.gap.outcome import Decision, PolicyGap, SolvedState

ALL = "all"

#: Behind a behaviour's name: what it really did in its own states, as opposed to what it would decide in any state.
AS_RUN = " (as run)"


def decide_state(solved: SolvedState, policies: Sequence[Policy], *, seed: int) -> None:
    """Let each policy decide the state, check the decision, and note imbalance and time.

    A log knows only what happened: it is scored by `score_as_run`, in its own states.
    """
    problem, observation = solved.state.problem, solved.state.observation
    for policy in policies:
        if isinstance(policy, Replay):
            continue
        begin = time.perf_counter()
        assignment = decide(policy, observation, seed=seed, round_robin_at=solved.state.step)
        seconds = time.perf_counter() - begin
        if isinstance(policy, CompiledPolicy):  # microseconds need warm repeats; Python policies are asked once
            seconds = seconds_per_decision(policy, observation)
        feasible = check_assignment(problem, assignment, who=f"policy '{policy.name}'")
        solved.decisions[policy.name] = Decision(objective(problem, feasible), seconds)


def score_as_run(solved: SolvedState) -> bool:
    """Note the imbalance after what the behaviour really did; return whether it filled as many slots as it could.

    A rule that binds on arrival may leave a slot empty while somebody waits elsewhere. Its imbalance then is not
    comparable with the optimum over full placements, and is left out.
    """
    chosen, problem = solved.state.chosen, solved.state.problem
    if chosen is None or int((chosen >= 0).sum()) != problem.num_admitted:
        return False
    value = objective(problem, check_assignment(problem, chosen, who=f"the log of '{solved.state.behaviour}'"))
    solved.decisions[solved.state.behaviour + AS_RUN] = Decision(value, None)
    return True


def summarise(solved: Sequence[SolvedState], policy: str, behaviour: str = ALL) -> PolicyGap:
    """Return one line of the gap table; open states are counted and enter no average."""
    chosen = [s for s in solved if behaviour in (ALL, s.state.behaviour) and policy in s.decisions]
    standings = [s.standing for s in chosen]
    closed = [s for s in chosen if s.standing != "open"]
    gaps = np.array([s.decisions[policy].objective - s.best for s in closed], dtype=np.float64)
    barriers = np.array([max(1, s.barrier) for s in closed], dtype=np.float64)
    times = [seconds for s in chosen if (seconds := s.decisions[policy].seconds) is not None]
    known = gaps.size > 0
    return PolicyGap(
        behaviour=behaviour,
        policy=policy,
        states=len(chosen),
        proved=standings.count("proved"),
        claimed=standings.count("claimed"),
        open=standings.count("open"),
        gap_mean_tokens=float(gaps.mean()) if known else np.nan,
        gap_median_tokens=float(np.median(gaps)) if known else np.nan,
        gap_p95_tokens=float(np.quantile(gaps, 0.95)) if known else np.nan,
        gap_max_tokens=float(gaps.max()) if known else np.nan,
        gap_mean_share=float((gaps / barriers).mean()) if known else np.nan,
        optimal_share=float((gaps == 0).mean()) if known else np.nan,
        microseconds_per_decision=1e6 * float(np.median(times)) if times else np.nan,
    )
