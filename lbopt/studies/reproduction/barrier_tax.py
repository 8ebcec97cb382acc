"""The simulations of the EP-barrier post, as far as it describes them: what its two tables have in common.

The post gives a step of max_g a L_g + b mean L, about 70 % utilisation and 5,000 requests, and says not how its clock
runs. With arrivals by the clock, throughput below saturation is what arrives, but for ramp and drain. Its tables make
sense where requests arrive by steps: whoever is where then does not depend on b, and throughput is the tokens made over
the sum of step times,

    gain(b) = (x + b) / (y + b) - 1,        x = E[max] / E[mean] under JSQ, y under the other rule.

So arrivals are counted in steps here (a constant step of 60 ms), and the law is applied to the loads afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from lbopt.studies.reproduction.config import ReproductionConfig
from lbopt.studies.reproduction.drawn import pool_of
from lbopt.studies.reproduction.question import Cell

B = 72
LOAD = 0.7
STEP_SECONDS = 0.060
BY_STEPS = f"affine:fixed={STEP_SECONDS!r},per_token=0"
#: All bind on arrival; BR-0 is the post's single-request rule, without the cap of the deployed bypass.
RULES = {
    "JSQ": "jsq",
    "JSQ-Load": "jsq-load:admission=immediate",
    "Fast-Phi": "fast-phi",
    "BR-0": "br-0-bypass:overbooking=none",
}


def cell(config: ReproductionConfig, item: str, rule: str, G: int, load: float | None, step_time: str) -> Cell:
    """Return the run of a rule.

    Parameters
    ----------
    config
        What is asked.
    item
        The item.
    rule
        Name of the rule.
    G
        Number of workers.
    load
        Share of saturation; None for a closed loop.
    step_time
        The step-time law.
    """
    trace = config.trace("burstgpt")
    return Cell(
        requests=(("trace", trace), ("longer_than", 0)),
        content=pool_of(trace, 0).digest,
        count=config.count(item, G),
        G=G,
        B=B,
        policy=RULES[rule],
        load=load,
        step_time=step_time,
    )


def law_as_clock(config: ReproductionConfig, overhead: float) -> str:
    """Return the post's step time with a scaled so that a step takes 60 ms where all slots hold the mean request."""
    tokens = B * pool_of(config.trace("burstgpt"), 0).mean_resident_tokens
    own = STEP_SECONDS / (tokens * (1 + overhead))
    return f"mean-term:per_token={own!r},per_mean_token={own * overhead!r},fixed=0"


def throughput(run: Mapping[str, float], overhead: float) -> float:
    """Return tokens a unit of time, a = 1, of a run whose steps did not depend on the law."""
    return run["running"] / (run["max_load"] + overhead * run["mean_load"])


def gain(run: Mapping[str, float], jsq: Mapping[str, float], overhead: float) -> float:
    """Return the throughput over JSQ's in %."""
    return 100 * (throughput(run, overhead) / throughput(jsq, overhead) - 1)
