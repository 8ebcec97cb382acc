"""The compiled rules: what the paper of each leaves open is an option, and engines' rules have none.

auto: the rule that lbopt recommends where a router keeps a pool; see the manual, *One rule*.

BR-0, BalanceRoute without lookahead (arXiv 2605.06113, algorithm 2); what the paper leaves open is a field.

The pool-bypass form of BR-0 (arXiv 2605.06113): bound at once, by virtual load, below a cap on requests.

iqr, the decode rule of staggered batch scheduling (arXiv 2512.16134, algorithm 3).

max-min: largest first, each to the lightest worker with a free slot (BF-IO, appendix A.1.1).

The rules that take requests in order of arrival and choose only the worker, as one table.

Sources: BF-IO appendix A.1.1 and its authors' simulator (fcfs, and their "JSQ", which goes by tokens); the evaluation
of BalanceRoute (arXiv 2605.06113) for the baselines. All break ties by the lowest worker number. By default each binds
requests when its source does.

The rules by which serving engines and their routers place requests in 2026, without options of their own.

Read in the sources named in `ABOUT`, snapshots of July to September 2026. Each binds a request when it arrives, but for
tensorrt-llm, whose ranks take from one queue. What sources say of caches of prefixes and of tokens that are not yet
computed counts for tpu-inference and dynamo where workers compute prompts (`Detail.prefill`), and nowhere else. Ranks
that requests wish for have no counterpart here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies.bf_io import paces_of
from lbopt.policies.editions import EDITIONS, present_edition
from lbopt.policies.observation import Observation
from lbopt.policies.policy import (
    ADMISSIONS,
    LARGEST_OPTION,
    Admission,
    CompiledPolicy,
    check_age_bound,
    check_choice,
    check_option,
    checked_admission,
    labelled,
)


@dataclass(frozen=True, slots=True)
class PacedMaxMin:
    """max-min among workers that differ in speed; decides in Python.

    Of the oldest U requests, or of the U largest of the pool, the largest goes first, to the worker that would be done
    with it first: of least f_g (L_g + s), f_g the factor of its own part of a step and L_g its load; the lower number
    among equal ones. This is list scheduling on uniform machines, largest first (Gonzalez, Ibarra and Sahni, SIAM J.
    Comput. 6 (1), 1977), begun from loads that are there. Where all are alike, or their speed is unknown, it decides
    as `max-min`.

    Parameters
    ----------
    whole_pool
        Whether it takes the U largest of the pool; else the oldest U.
    smallest_first
        Whether the smallest request is placed first: `min-min`.
    """

    whole_pool: bool = False
    smallest_first: bool = False

    @property
    def name(self) -> str:
        """What tables call it."""
        if self.smallest_first:
            return "min-min:scope=pool" if self.whole_pool else "min-min"
        return "max-min:scope=pool,pace=yes" if self.whole_pool else "max-min:pace=yes"

    @property
    def admission(self) -> Admission:
        """Pooled."""
        return "pooled"

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Return the worker of each waiting request, or -1."""
        sizes, U = observation.sizes, observation.num_admissible
        seen = sizes if self.whole_pool else sizes[:U]
        chosen = np.full(sizes.size, -1, dtype=np.int64)
        pace = paces_of(observation.slow)[0]
        if pace is None:
            pace = np.ones(observation.loads.size, dtype=np.int64)
        load, free = observation.loads.copy(), observation.free_slots.copy()
        for i in np.argsort(seen if self.smallest_first else -seen, kind="stable")[:U].tolist():
            open_workers = np.flatnonzero(free)
            g = open_workers[np.argmin(pace[open_workers] * (load[open_workers] + sizes[i]))]
            chosen[i] = g
            load[g] += sizes[i]
            free[g] -= 1
        return chosen


_DEFAULT_WEIGHT = 0.3
_LARGEST_WEIGHT = 1000.0


def auto(age_weight: float = _DEFAULT_WEIGHT, age_bound: int | None = None) -> CompiledPolicy:
    """Return the rule.

    Parameters
    ----------
    age_weight
        What waiting counts, from 0 to 1,000, rounded to 0.001: a request that has waited as long as the mean of all is
        preferred to a new one that fits better by at most this share of the mean size. Larger is closer to first come,
        first served. The default was found on two traces and frozen.
    age_bound
        Steps after which a waiting request is placed before all others, oldest first; None = never.
    """
    if not 0 <= age_weight <= _LARGEST_WEIGHT:
        raise InputError(f"policy 'auto': age_weight is {age_weight:g}; expected 0 to {_LARGEST_WEIGHT:g}")
    check_age_bound("auto", age_bound)
    thousandths = round(1000 * age_weight)
    given = {"age_weight": f"{thousandths / 1000:g}", "age_bound": age_bound}
    return CompiledPolicy(
        name=labelled("auto", given, {"age_weight": f"{_DEFAULT_WEIGHT:g}", "age_bound": None}),
        admission="pooled",
        code=codes.AUTO,
        parameters={"age_thousandths": thousandths, "age_bound": -1 if age_bound is None else age_bound},
    )


WINDOW_ORDERS = ("size", "arrival")
KEYS = ("lexicographic", "product")

_DEFAULTS: dict[str, int | str | None] = {
    "stage_switch": 7,
    "window": 4,
    "window_order": "size",
    "key": "lexicographic",
    "age_bound": None,
}


def br_0(
    stage_switch: int = 7,
    window: int = 4,
    window_order: str = "size",
    key: str = "lexicographic",
    age_bound: int | None = None,
) -> CompiledPolicy:
    """Return BR-0.

    Parameters
    ----------
    stage_switch
        S_greedy: stage 1 works while more than this many slots are free. The paper's value is not known; 7 is that
        of the authors' earlier simulator. 0 = stage 1 alone.
    window
        R_max: requests that stage 2 looks at, 1 to 16; 4 in the deployment.
    window_order
        "size": the largest waiting requests; "arrival": the oldest. The paper sorts by prompt length.
    key
        Which worker stage 2 serves next: "lexicographic" (free slots, then margin) or their "product".
    age_bound
        Steps after which a waiting request is placed before all others, oldest first; None = never.
    """
    check_option("br-0", "stage_switch", stage_switch, 0, LARGEST_OPTION)
    check_option("br-0", "window", window, 1, codes.LARGEST_WINDOW)
    check_choice("br-0", "window_order", window_order, WINDOW_ORDERS)
    check_choice("br-0", "key", key, KEYS)
    check_age_bound("br-0", age_bound)
    given = {
        "stage_switch": stage_switch,
        "window": window,
        "window_order": window_order,
        "key": key,
        "age_bound": age_bound,
    }
    return CompiledPolicy(
        name=labelled("br-0", given, _DEFAULTS),
        admission="pooled",
        code=codes.BR_0,
        parameters={
            "stage_switch": stage_switch,
            "window_size": window,
            "window_by_arrival": int(window_order == "arrival"),
            "key_product": int(key == "product"),
            "age_bound": -1 if age_bound is None else age_bound,
        },
    )


TIES = ("load", "index")
_DEFAULT_OVERBOOKING = 2


def br_0_bypass(overbooking: int | None = _DEFAULT_OVERBOOKING, ties: str = "load") -> CompiledPolicy:
    """Return the rule.

    Parameters
    ----------
    overbooking
        Requests that may be bound to a worker beyond its B slots; where every worker holds B + overbooking, running
        and queued, the next request is held at the router until one ends. The paper says "a small fixed margin"
        without its value, and nothing of what happens then. None = any number.
    ties
        Among workers of equal F: "load", the one of smallest virtual load; "index", the first, as in a plain argmax.
        With "index" the lowest-numbered workers collect the requests that fit their margins.
    """
    if overbooking is not None and not 0 <= overbooking <= LARGEST_OPTION:
        raise InputError(
            f"policy 'br-0-bypass': overbooking is {overbooking}; expected 0 to {LARGEST_OPTION} requests, or none"
        )
    check_choice("br-0-bypass", "ties", ties, TIES)
    return CompiledPolicy(
        name=labelled(
            "br-0-bypass",
            {"overbooking": overbooking, "ties": ties},
            {"overbooking": _DEFAULT_OVERBOOKING, "ties": TIES[0]},
        ),
        admission="immediate",
        code=codes.BR_0_BYPASS,
        parameters={
            "overbooking": -1 if overbooking is None else overbooking,
            "ties_by_number": int(ties == "index"),
        },
    )


LARGEST_MULTIPLIER = 1000
#: The percentile conventions that are offered, under NumPy's names.
PERCENTILES = {
    "linear": codes.PERCENTILE_LINEAR,
    "lower": codes.PERCENTILE_LOWER,
    "higher": codes.PERCENTILE_HIGHER,
    "nearest": codes.PERCENTILE_NEAREST,
    "weibull": codes.PERCENTILE_WEIBULL,
}


def iqr(multiplier: float = 1.5, percentile: str = "linear", admission: str = "pooled") -> CompiledPolicy:
    """Return the rule.

    Parameters
    ----------
    multiplier
        k: a worker is masked whose load exceeds Q3 + k (Q3 - Q1). Rounded to 0.001, in which it is exact.
    percentile
        Which percentile Q1 and Q3 are, by NumPy's names; the paper does not say. "linear" is NumPy's default.
    admission
        "pooled": the oldest U of the pool, longest first, each to a worker with a free slot. "immediate": each request
        when it becomes known, to any worker; requests and tokens that are queued there count.
    """
    check_option("iqr", "multiplier", multiplier, 0, LARGEST_MULTIPLIER)
    check_choice("iqr", "percentile", percentile, PERCENTILES)
    binds = checked_admission("iqr", admission)
    thousandths = round(1000 * multiplier)
    given = {"multiplier": f"{thousandths / 1000:g}", "percentile": percentile, "admission": binds}
    return CompiledPolicy(
        name=labelled("iqr", given, {"multiplier": "1.5", "percentile": "linear", "admission": "pooled"}),
        admission=binds,
        code=codes.IQR,
        parameters={"thousandths": thousandths, "percentile": PERCENTILES[percentile]},
    )


SCOPES = ("oldest", "pool")


def max_min(scope: str = "oldest", pace: bool = False) -> CompiledPolicy | PacedMaxMin:
    """Return the rule over the oldest U requests (starves no request) or over the whole pool (admits the U largest).

    With `pace` loads count by the speed of their workers, where it is known; that rule decides in Python.
    """
    if scope not in SCOPES:
        raise InputError(f"policy 'max-min' cannot use scope '{scope}'; expected {' or '.join(SCOPES)}")
    if pace:
        return PacedMaxMin(whole_pool=scope == "pool")
    return CompiledPolicy(
        name=labelled("max-min", {"scope": scope}, {"scope": "oldest"}),
        admission="pooled",
        code=codes.MAX_MIN,
        parameters={"whole_pool": int(scope == "pool")},
    )


def min_min(scope: str = "oldest") -> PacedMaxMin:
    """Return the rule that places the smallest of the oldest U requests first, or the U smallest of the whole pool.

    Loads count by the speed of their workers, where it is known.
    """
    check_choice("min-min", "scope", scope, SCOPES)
    return PacedMaxMin(whole_pool=scope == "pool", smallest_first=True)


def worker_rule(
    name: str, code: int, default: Admission, *, draws: bool = False, allowed: tuple[Admission, ...] = ADMISSIONS
) -> Callable[..., CompiledPolicy]:
    """Return the factory of a rule without parameters other than when it binds.

    Parameters
    ----------
    default
        When it binds by default.
    draws
        Whether it draws random numbers.
    """

    def build(admission: str = default) -> CompiledPolicy:
        binds = checked_admission(name, admission, allowed)
        label = labelled(name, {"admission": binds}, {"admission": default})
        return CompiledPolicy(name=label, admission=binds, code=code, draws=draws)

    return build


#: worker 0 is filled from the head of the queue, then worker 1, ...
fcfs = worker_rule("fcfs", codes.FCFS, "pooled", allowed=("pooled",))
#: the workers in turn
round_robin = worker_rule("round-robin", codes.ROUND_ROBIN, "immediate")
#: any worker, all equally likely
random = worker_rule("random", codes.RANDOM, "immediate", draws=True)
#: of two random workers the one with fewer requests
power_of_two = worker_rule("power-of-two", codes.POWER_OF_TWO, "immediate", draws=True)
#: fewest requests
jsq = worker_rule("jsq", codes.JSQ, "immediate")
#: fewest tokens
jsq_load = worker_rule("jsq-load", codes.JSQ_LOAD, "pooled")


def vllm(version: int = EDITIONS[-1], admission: str = "immediate") -> CompiledPolicy:
    """Build the rule of vLLM's balancer between data-parallel ranks.

    Parameters
    ----------
    version
        2026: since pull request 49204, by requests in flight of the front end itself, ties in turn; 2025: before it, by
        4 * waiting + running, ties to the lowest number.
    admission
        When it binds; that of 2026 on arrival only.
    """
    if version not in EDITIONS:
        raise InputError(f"policy 'vllm': version is {version}; expected {' or '.join(map(str, EDITIONS))}")
    old = version == EDITIONS[0]
    binds = checked_admission("vllm", admission, ADMISSIONS if old else ("immediate",))
    usual = {"version": present_edition(), "admission": "immediate"}
    label = labelled("vllm", {"version": version, "admission": binds}, usual)
    return CompiledPolicy(name=label, admission=binds, code=codes.VLLM if old else codes.VLLM_2026)


#: fewest tokens, resident and queued, then fewest requests
sglang = worker_rule("sglang", codes.SGLANG, "immediate", allowed=("immediate",))
#: longest prompt first to the fewest prompt tokens
tensorrt_llm = worker_rule("tensorrt-llm", codes.TENSORRT_LLM, "pooled", allowed=("pooled",))


def _by_cache(name: str, code: int, *, draws: bool) -> Callable[..., CompiledPolicy]:
    """Return the factory of a rule that knows what workers' caches of prefixes hold, unless it is told not to."""

    def build(admission: str = "immediate", cache: bool = True) -> CompiledPolicy:
        binds = checked_admission(name, admission, ("immediate",))
        label = labelled(name, {"cache": cache}, {"cache": True})
        return CompiledPolicy(name=label, admission=binds, code=code, parameters={"by_cache": int(cache)}, draws=draws)

    return build


#: fewest tokens to compute before the request's own first token, then fewest requests
tpu_inference = _by_cache("tpu-inference", codes.TPU_INFERENCE, draws=False)
#: shortest queue in seconds, and a price of the cache in use
smg = worker_rule("smg", codes.SMG, "immediate", allowed=("immediate",))
#: fewest blocks of prompts that the router sent itself, and blocks to compute
dynamo = _by_cache("dynamo", codes.DYNAMO, draws=True)
#: three scores of equal weight: queue, running requests, cache
llm_d = worker_rule("llm-d", codes.LLM_D, "immediate", draws=True, allowed=("immediate",))
#: fewest requests that the router sent itself
lmdeploy = worker_rule("lmdeploy", codes.LMDEPLOY, "immediate", draws=True, allowed=("immediate",))
#: fewest requests, ties at random
lightllm = worker_rule("lightllm", codes.LIGHTLLM, "immediate", draws=True, allowed=("immediate",))
#: fewest tokens of prompts that the router sent itself
vllm_ascend = worker_rule("vllm-ascend", codes.VLLM_ASCEND, "immediate", allowed=("immediate",))
