"""One rule on one fleet: the function that tasks of a scaling study run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, Run, SimulationSetting, simulate
from lbopt.studies.scaling.config import REPLETE, requests_of, steps_of
from lbopt.theory.chains.batch_means import batch_steps, burn_in_steps, means_of_batches
from lbopt.theory.chains.replete import run_replete
from lbopt.theory.laws.prompt_law import PromptLaw


def measure(
    *,
    policy: str,
    G: int,
    B: int,
    p: float,
    s_max: int,
    batches: int,
    version: str,
    seed: int,
    pool: float = 0.0,
    time_limit: float = 0.0,
) -> dict[str, Any]:
    """Return batch means of the imbalance in tokens, and what the rule made of the waiting; `version` is for the key.

    Slots are filled in the first steps, the pool is kept full, and loads are read after admission: the model
    of the theorems.

    Parameters
    ----------
    policy
        Name of the rule.
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    batches
        Number of batches of the mean.
    version
        Version of the code; it is part of the key of the task and not used otherwise.
    seed
        Seed of the draws.
    pool
        Requests kept waiting, in multiples of a step's mean ends.
    time_limit
        Seconds of a step of the exact rule.
    """
    steps, burn_in, length = steps_of(G, B, p, batches), burn_in_steps(G, B, p), batch_steps(p)
    if policy == REPLETE:
        run = run_replete(G, B, p, PromptLaw.uniform(s_max), batches * length, burn_in, seed)
        means = means_of_batches([run.imbalance.astype(np.float64)], 0, length)
        return {"batches": means.tolist(), "admitted_prompt": run.mean_admitted, "tally": {}}
    count, waiting = requests_of(G, B, p, steps, pool)
    draw = np.random.default_rng(seed)
    trace = Trace(prompt=draw.integers(1, s_max + 1, count), output=draw.geometric(p, count), name="uniform, geometric")
    rule = make_policy(policy, {"time_limit": time_limit})
    setting = SimulationSetting(Fleet(G, B), ClosedLoop(waiting), "theory")
    done = simulate(trace, rule, setting, seed=seed)
    imbalance = (G * done.steps["read_max"] - done.steps["read_sum"])[:steps].astype(np.float64)
    looked = slice(burn_in, steps)
    if imbalance.size < steps or (done.steps["free_slots"][looked] > done.steps["waiting"][looked]).any():
        raise InputError(f"a pool of {waiting} requests ran dry at G = {G}, B = {B}; take a larger pool than {pool}")
    return {"batches": means_of_batches([imbalance], burn_in, length).tolist(), **_waiting(done, burn_in, steps, trace)}


def _waiting(run: Run, burn_in: int, steps: int, trace: Trace) -> dict[str, Any]:
    """Return what the rule made of the requests that started while the imbalance was averaged."""
    start, reveal = run.requests["start_step"], run.requests["reveal_step"]
    counted: NDArray[np.bool_] = (start >= burn_in) & (start < steps)
    wait = (start - reveal)[counted]
    return {
        "admitted_prompt": float(trace.prompt[counted].mean()),
        "wait_mean": float(wait.mean()),
        "wait_max": int(wait.max()),
        "tally": dict(run.tally),
    }
