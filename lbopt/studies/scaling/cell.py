"""One rule on one fleet: the function that tasks of a scaling study run, and what theory computes of the fleet."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, Run, SimulationSetting, simulate
from lbopt.studies.grid import Row
from lbopt.theory.chains.batch_means import batch_steps, burn_in_steps, means_of_batches
from lbopt.theory.chains.replete import POOLS, Replete
from lbopt.theory.laws.gap_bounds import onset
from lbopt.theory.laws.leader_walk import levelled_imbalance
from lbopt.theory.laws.load_law import improvement_floor, load_law
from lbopt.theory.laws.slot_law import Growth, slot_law
from lbopt.theory.laws.spacing import least_left

#: The exact rule with a pool that never lacks a size, run by the theory's chain and not by the simulator.
REPLETE = "bf-io-replete"


def measure(
    *,
    policy: str,
    G: int,
    B: int,
    p: float,
    s_max: int,
    batches: int,
    seed: int,
    pool: float = 0.0,
    **more: Any,
) -> dict[str, Any]:
    """Return batch means of the imbalance in tokens, and what the rule made of the waiting.

    The model of the theorems: slots are filled in the first steps, the pool is kept full, and loads are read after
    admission.
    """
    steps, burn_in, length = steps_of(G, B, p, batches), burn_in_steps(G, B, p), batch_steps(p)
    law = POOLS[more.get("sizes", "all")](s_max)
    if policy == REPLETE:
        run = Replete(G, B, p, law).run(batches * length, seed)
        means = means_of_batches([run.steps.imbalance.astype(np.float64)], 0, length)
        return {"batches": means.tolist(), "admitted_prompt": run.mean_admitted, "tally": {}}
    count, waiting = requests_of(G, B, p, steps, pool)
    draw = np.random.default_rng(seed)
    prompt = np.array(law.lengths)[draw.integers(0, len(law.lengths), count)]
    trace = Trace(prompt=prompt, output=draw.geometric(p, count), name="uniform, geometric")
    rule = make_policy(policy, {"time_limit": more["time_limit"]})
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


def steps_of(G: int, B: int, p: float, batches: int) -> int:
    """Return the steps of a cell, burn-in included."""
    return burn_in_steps(G, B, p) + batches * batch_steps(p)


def requests_of(G: int, B: int, p: float, steps: int, pool: float) -> tuple[int, int]:
    """Return the requests that last for so many steps, and those kept waiting.

    Ends are binomial: six standard deviations are added to both.
    """
    each = p * G * B
    waiting = math.ceil(pool * each + 6 * math.sqrt(each)) + G
    taken = math.ceil(steps * each + 6 * math.sqrt(steps * each))
    return G * B + taken + 2 * waiting, waiting


class FleetTheory(Row):
    """What is known of a fleet without running anything, in tokens: of `G`, `B`, `p` and `s_max`.

    `fcfs` is the expected imbalance of FCFS, exactly; `levelled` that of the exact rule below the onset, by the law of
    `lbopt.theory.laws.leader_walk`; `left` the least mean imbalance of any rule where a pool has two sizes, which the
    exact rule reaches for many slots (`lbopt.theory.laws.spacing`), 0 where it has all; `floor` the least improvement
    that Theorem 2 gives in its sharp form, where it speaks; `onset` is B*, slots.
    """

    @classmethod
    @cache
    def of(cls, G: int, B: int, p: float, s_max: int, sizes: str = "all") -> FleetTheory:
        """Compute it."""
        law = POOLS[sizes](s_max)
        slot = slot_law(law, p)
        return cls(
            **{"G": G, "B": B, "p": p, "s_max": s_max},
            fcfs=load_law(slot, B).expected_imbalance(G),
            levelled=levelled_imbalance(G, p, s_max),
            left=0.0 if sizes == "all" else least_left(G, B, p, s_max - 1, Growth.parse("1")).mean,
            floor=improvement_floor(G, B, math.sqrt(slot.variance), s_max),
            onset=onset(G, p, law),
        )
