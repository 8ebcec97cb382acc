"""Families whose requests use experts: traffic of a mixture-of-experts model, after ELDR's two workloads.

    moe-task        four domains of nearly equal shares, strongly marked (legal, code, math, medical)
    moe-language    68 languages of very uneven shares, weakly marked

A family has one world (its gates are drawn once, from a seed of its own); a seed draws `PROFILES` prompts in it and the
requests, each of which is one of those prompts, drawn by itself. Outputs are 512 tokens each and arrivals Poisson, as
in the published runs. Fewer layers than the model has are drawn: expert use is a mean over layers, and time grows with
their number. Prompt lengths are assumed (the source does not give them): lognormal, median 200, cut to 16 to 1,024.

Source: ELDR (arXiv 2607.00466), evaluation; what the gates are calibrated to: `lbopt.locality.workload`, `.workload`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lbopt.model import RequestExperts, Trace

if TYPE_CHECKING:  # compiled code is imported when a draw is asked for, not when a trace is read
    from lbopt.locality import WorkloadConfig

Seed = int | tuple[int, ...]

EXPERT_NAMES = ("moe-task", "moe-language")
PROFILES = 1000
#: Layers that are drawn; the model of the source has 48.
LAYERS = 6
OUTPUT_TOKENS = 512
#: Requests a second, the middle of the published rates of 20 to 100.
EXPERT_RATE = 60.0
_WORLD_SEED = 20260700
_DECODE_STEPS = 32


def expert_workload(family: str) -> WorkloadConfig:
    """Return the workload behind a family, a name from `EXPERT_NAMES`."""
    from lbopt.locality import MoEShape, language_workload, task_workload

    workload = task_workload() if family == "moe-task" else language_workload()
    return replace(workload, shape=MoEShape(LAYERS, 128, 8), decode_steps=_DECODE_STEPS)


def generate_experts(
    family: str, count: int, seed: int, *, rate: float = EXPERT_RATE, profiles: int = PROFILES
) -> Trace:
    """Draw `count` requests that repeat `profiles` prompts; the same seed gives the same trace.

    Parameters
    ----------
    family
        "moe-task" or "moe-language".
    count
        Requests.
    seed
        Seed of the draw.
    rate
        Arrivals a second.
    profiles
        Different prompts.
    """
    workload = expert_workload(family)
    return draw_requests(family, workload, count, _WORLD_SEED, seed, rate=rate, profiles=min(profiles, count))


def draw_requests(
    name: str,
    workload: WorkloadConfig,
    count: int,
    world_seed: Seed,
    seed: Seed,
    *,
    rate: float,
    profiles: int = PROFILES,
) -> Trace:
    """Draw requests in the world of one seed by another.

    Parameters
    ----------
    name
        Name of the trace.
    workload
        Shares of domains and the law of the gate.
    count
        Requests.
    world_seed, seed
        Seeds of the world and of the requests.
    rate
        Arrivals a second.
    profiles
        Different prompts.
    """
    from lbopt.locality import draw_activity, draw_domains, draw_world

    shares = np.array(workload.shares)
    world = draw_world(
        workload.shape, workload.law, shares.size, np.random.default_rng(world_seed), workload.topics_per_domain
    )
    rng = np.random.default_rng(seed)
    domain = draw_domains(shares, profiles, rng)
    tokens = np.clip(np.rint(rng.lognormal(np.log(200.0), 0.5, profiles)), 16, 1024).astype(np.int64)
    activity = draw_activity(world, domain, tokens, workload.decode_steps, rng)
    profile = rng.integers(profiles, size=count)
    return Trace(
        prompt=tokens[profile],
        output=np.full(count, OUTPUT_TOKENS),
        arrival=np.round(np.cumsum(rng.standard_exponential(count)) / rate, 6),
        name=name,
        experts=RequestExperts(
            chosen=activity.counts.astype(np.int32),
            decode=activity.decode.astype(np.float32),
            domain=domain,
            profile=profile,
            model=f"synthetic world {world_seed} of {shares.size} domains",
            gate_prob=None if activity.gate_prob is None else activity.gate_prob.astype(np.float32),
        ),
    )
