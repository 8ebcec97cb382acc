"""The table of routing rules, and what users read of them.

The table of policies, and the text form `name:option=value,option=value` in which users name one.

The routing rules as users read of them: in words, with the options of their factories.

`br-0:published`, `br-h:published`: rules as their papers have them, whatever the bare names come to mean.

What a paper leaves open stands here as lbopt chose it when it first had the rule. Options may follow and change single
values: ``br-0:published,age_bound=50``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.kinds import typed
from lbopt.policies import compiled_rules
from lbopt.policies.bf_io import BfIo
from lbopt.policies.br_h import BrH
from lbopt.policies.classical import AntColony, Carton, HoneyBee, OlbLbmm, PowerOfD, Throttled
from lbopt.policies.compiled_rules import auto, br_0, br_0_bypass, iqr, max_min, min_min
from lbopt.policies.decode_programs import BarrierTime, CountThenLoad, LevelThenLoad
from lbopt.policies.editions import VERSIONED, present_edition
from lbopt.policies.experts import domain, eldr
from lbopt.policies.fast_phi import FastPhi
from lbopt.policies.policy import Policy
from lbopt.policies.python_file import load_callable
from lbopt.policies.relative_age import RelativeAge, with_steps, with_told_waits
from lbopt.policies.replay import load_replay
from lbopt.spec import options_of, unknown

POLICIES: dict[str, Callable[..., Policy]] = {
    "fcfs": compiled_rules.fcfs,
    "round-robin": compiled_rules.round_robin,
    "random": compiled_rules.random,
    "power-of-two": compiled_rules.power_of_two,
    "jsq": compiled_rules.jsq,
    "jsq-load": compiled_rules.jsq_load,
    "vllm": compiled_rules.vllm,
    "auto": auto,
    "max-min": max_min,
    "br-0": br_0,
    "br-h": BrH,
    "br-0-bypass": br_0_bypass,
    "iqr": iqr,
    "bf-io": BfIo,
    "count-then-load": CountThenLoad,
    "level-then-load": LevelThenLoad,
    "barrier-time": BarrierTime,
    "fast-phi": FastPhi,
    "eldr": eldr,
    "domain": domain,
    "sglang": compiled_rules.sglang,
    "tensorrt-llm": compiled_rules.tensorrt_llm,
    "tpu-inference": compiled_rules.tpu_inference,
    "smg": compiled_rules.smg,
    "dynamo": compiled_rules.dynamo,
    "llm-d": compiled_rules.llm_d,
    "lmdeploy": compiled_rules.lmdeploy,
    "lightllm": compiled_rules.lightllm,
    "vllm-ascend": compiled_rules.vllm_ascend,
    "min-min": min_min,
    "power-of-d": PowerOfD,
    "throttled": Throttled,
    "honey-bee": HoneyBee,
    "olb-lbmm": OlbLbmm,
    "carton": Carton,
    "ant-colony": AntColony,
}


@dataclass(frozen=True, slots=True)
class About:
    """A rule in words: what it does, what it needs to know, and where it is from."""

    does: str
    needs: str
    source: str


#: What users read of each rule; its options and when it binds are read from the rule itself.
ABOUT: dict[str, About] = {
    "fcfs": About("fills the first worker with free slots, in order of arrival", "free slots", "BF-IO, appendix A.1.1"),
    "round-robin": About("takes the workers in turn", "nothing", "BalanceRoute, evaluation"),
    "random": About("takes any worker, all equally likely", "nothing", "BalanceRoute, evaluation"),
    "power-of-two": About("takes the one with fewer requests of two random workers", "requests", "BalanceRoute"),
    "jsq": About("takes the worker with the fewest requests", "requests, running and queued", "BalanceRoute"),
    "jsq-load": About("takes the worker with the fewest tokens", "tokens, resident and queued", "BF-IO, simulator"),
    "vllm": About(
        "takes the worker with the least max(C · own in flight, waiting + running); queues at full caches count more",
        "requests, running and queued; own requests in flight; share of the KV cache in use",
        "vLLM, vllm/v1/engine/core_client.py at 00080ee1 (PR 49204); version=2025: 4 · waiting + running",
    ),
    "auto": About(
        "recommended: each lightest worker takes what fits the common level best, where waiting counts in favour",
        "sizes and waits of waiting requests, loads, free slots",
        "lbopt",
    ),
    "max-min": About("largest request first, each to the lightest worker", "sizes, loads", "BF-IO, appendix A.1.1"),
    "br-0": About("BalanceRoute without lookahead", "sizes, loads, free slots", "arXiv 2605.06113, algorithm 2"),
    "br-h": About(
        "BalanceRoute with lookahead",
        "sizes, loads, free slots, a forecast of every running request",
        "arXiv 2605.06113, algorithm 3",
    ),
    "br-0-bypass": About(
        "BR-0 without a pool: bound on arrival, below a cap on requests",
        "size of the request, tokens and requests of workers",
        "arXiv 2605.06113",
    ),
    "iqr": About(
        "masks workers with outlying loads, then fewest requests",
        "sizes, requests, loads",
        "SBS, arXiv 2512.16134, algorithm 3",
    ),
    "bf-io": About(
        "solves the BF-IO program exactly at every decision",
        "sizes, loads, free slots; memory and speed where known; over a window a forecast of every running request",
        "arXiv 2601.17855, algorithm 1",
    ),
    "count-then-load": About(
        "exact counterpart of iqr: least largest count, then least largest load",
        "sizes, requests, loads, free slots",
        "lbopt, after SBS",
    ),
    "level-then-load": About(
        "the same with counts as level as possible", "sizes, requests, loads, free slots", "lbopt, after SBS"
    ),
    "barrier-time": About(
        "the same with the least largest step time", "sizes, requests, loads, free slots", "lbopt, after SBS"
    ),
    "fast-phi": About(
        "least expected rise of the heaviest worker over the life of the request",
        "tokens and ages of all running requests, lengths of past outputs",
        "J. Li, The EP Barrier Tax (2026)",
    ),
    "eldr": About(
        "takes a worker with similar experts, within a band of similarity",
        "experts that the prompt used, requests of workers",
        "ELDR, arXiv 2607.00466",
    ),
    "domain": About(
        "gives each domain of requests a block of workers",
        "label of the request, requests of workers",
        "ELDR, arXiv 2607.00466, baseline",
    ),
    "sglang": About(
        "takes the worker with the fewest tokens, then the fewest requests",
        "tokens and requests, running and queued",
        "SGLang, managers/data_parallel_controller.py (DPBudget, total_tokens)",
    ),
    "tensorrt-llm": About(
        "longest prompt first, each to the worker with the fewest prompt tokens, numbers of requests kept even",
        "prompts of waiting and running requests, free slots",
        "TensorRT-LLM, _torch/pyexecutor/scheduler/adp_router.py at 02385f29 (default; without wished ranks)",
    ),
    "tpu-inference": About(
        "takes the worker with the fewest prompt tokens to do, here queued ones, then the fewest requests",
        "queued tokens, requests",
        "tpu-inference, core/sched/dp_scheduler.py at b8692ff (PR 3315; cache where prompts are computed; no last tie)",
    ),
    "smg": About(
        "takes the worker with the least queued tokens / 2000 + 0.15 · u / (1 - u), u the share of its KV cache in use",
        "queued tokens, share of the KV cache in use",
        "smg, model_gateway/src/policies/least_load.rs at 73da68c",
    ),
    "dynamo": About(
        "takes the worker with the fewest 16-token blocks of prompts among the requests that this router sent",
        "own requests in flight and their prompts",
        "Dynamo, lib/kv-router/src/scheduling/selector/default.rs at 07a6c9ce (prefill term if prompts are computed)",
    ),
    "llm-d": About(
        "takes the worker with the best sum of three scores: short queue, few running, free KV cache",
        "requests, running and queued; share of the KV cache in use",
        "llm-d-router, pkg/epp/framework/plugins/scheduling/scorer at ebab687 (equal weights are our choice)",
    ),
    "lmdeploy": About(
        "takes the worker with the fewest requests among those that this router sent",
        "own requests in flight",
        "LMDeploy, lmdeploy/serve/proxy/proxy.py at 1263d5c (workers of equal speed)",
    ),
    "lightllm": About(
        "takes the worker with the fewest requests, any of equal ones",
        "requests, running and queued",
        "LightLLM, dp_balancer/bs.py at 87881ae",
    ),
    "vllm-ascend": About(
        "takes the worker with the fewest prompt tokens among the requests that this router sent",
        "own requests in flight and their prompts",
        "vllm-ascend, load_balance_proxy_server_example.py at 182b75e (decode side)",
    ),
    "min-min": About("smallest request first, each to the lightest worker", "sizes, loads", "BF-IO, appendix A.1.1"),
    "power-of-d": About(
        "takes the one with the fewest requests of d random workers", "requests", "BF-IO, appendix A.1.1"
    ),
    "throttled": About("takes the first worker below a number of requests", "requests", "BF-IO, appendix A.1.1"),
    "honey-bee": About("draws a worker, light ones more often", "loads", "BF-IO, appendix A.1.1"),
    "olb-lbmm": About(
        "takes the worker with the fewest requests, once in some steps min-min",
        "requests, loads",
        "BF-IO, appendix A.1.1",
    ),
    "carton": About(
        "takes the worker with the most credit for prompt tokens, less of it for heavy ones",
        "sizes, loads",
        "BF-IO, appendix A.1.1",
    ),
    "ant-colony": About(
        "searches by ants for the placement of least imbalance", "sizes, loads, free slots", "BF-IO, appendix A.1.1"
    ),
}


def look_ahead(horizon: int | None, predictor: str | None) -> dict[str, Any]:
    """Return the options of a user who asks for a window or a predictor, for `make_policy`."""
    return {name: value for name, value in (("horizon", horizon), ("predictor", predictor)) if value is not None}


@typed
def make_policy(spec: str, given: Mapping[str, Any] | None = None) -> Policy:
    """Build the policy that `spec` names.

    Parameters
    ----------
    spec
        A name from `POLICIES`, optionally with options (``br-0:stage_switch=4,age_bound=50``) or as published
        (``br-0:published``); ``replay:FILE``; or ``path/to/file.py:function``.
    given
        Values of options that `spec` leaves out, used where the rule has such an option.

    Returns
    -------
    Policy
        The rule, for `simulate` and for live use.

    Raises
    ------
    InputError
        If the rule, an option or a value is unknown.

    Examples
    --------
    >>> import lbopt
    >>> lbopt.make_policy("br-0:age_bound=50").name
    'br-0:age_bound=50'
    """
    name, _, rest = spec.partition(":")
    if name == "replay":
        return load_replay(rest)
    if spec.rpartition(":")[0].endswith(".py"):
        return load_callable(spec)
    if name not in POLICIES and spec.endswith(".py"):
        raise InputError(f"policy file '{spec}' needs a function: expected {spec}:function")
    if name not in POLICIES:
        raise unknown("policy", name, POLICIES, " (also replay:FILE and file.py:function)")
    factory = POLICIES[name]
    if name in VERSIONED:
        given = {"version": present_edition(), **(given or {})}
    rest, given = without_published(name, rest, given or {})
    rest, multiple = with_told_waits(rest)
    if multiple is not None:
        return _relative(spec, name, rest, multiple, given)
    return factory(**options_of("policy", name, rest, factory, given))


def _relative(spec: str, name: str, rest: str, multiple: float, given: Mapping[str, Any]) -> RelativeAge:
    """Return the rule whose age bound waits for a run; a wrong option is refused now.

    Parameters
    ----------
    spec, name, rest
        As the user wrote it, the rule, and its options.
    multiple
        Of the wait of first come, first served.
    given
        Values of options that the text leaves out.
    """
    factory = POLICIES[name]

    def with_bound(steps: int) -> Policy:
        return factory(**options_of("policy", name, with_steps(rest, steps), factory, given))

    with_bound(1)
    return RelativeAge(spec, multiple, with_bound)


@dataclass(frozen=True, slots=True)
class RuleDescription:
    """A rule.

    Parameters
    ----------
    name
        As `make_policy` reads it.
    does
        What it does, in a few words.
    needs
        What it has to know of requests and workers.
    admission
        By default "pooled", where requests wait in one pool for a free slot, or "immediate", bound on arrival.
    options
        Name and default of each option, as `make_policy` reads them.
    source
        Where the rule is from.
    """

    name: str
    does: str
    needs: str
    admission: str
    options: dict[str, str]
    source: str


def describe_policies(name: str | None = None) -> list[RuleDescription]:
    """Return all rules, or the one that is named.

    Raises
    ------
    InputError
        If there is no such rule.
    """
    if name is not None and name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    return [_describe(rule) for rule in POLICIES if name in (None, rule)]


def _describe(name: str) -> RuleDescription:
    options = {
        parameter.name: "none" if parameter.default is None else str(parameter.default)
        for parameter in inspect.signature(POLICIES[name]).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    }
    about = ABOUT[name]
    return RuleDescription(name, about.does, about.needs, make_policy(name).admission, options, about.source)


WORD = "published"

#: Every option of each rule by its value.
PUBLISHED: dict[str, dict[str, Any]] = {
    "br-0": {"stage_switch": 7, "window": 4, "window_order": "size", "key": "lexicographic", "age_bound": None},
    "br-h": {
        **{"horizon": 80, "alpha": 1.0, "beta": 48.0, "gamma": 0.9},
        **{"stage_switch": 7, "window": 4, "window_order": "size", "key": "lexicographic", "age_bound": None},
        **{"subset": "enumerate", "growth": 1, "departures": "cut", "boundary": "alive", "update": "constant"},
        **{"predictor": "survival", "refresh": None, "gate": 0.5, "floor": 1.0, "hold_anchor": False},
    },
}


def without_published(name: str, text: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the options that are left of `text`, and the values that hold where these do not say otherwise.

    Parameters
    ----------
    text
        ``option=value,option=value``, perhaps with ``published`` before.
    given
        Values of the caller, which go before published ones.
    """
    first, _, rest = text.partition(",")
    if first != WORD:
        return text, dict(given)
    if name not in PUBLISHED:
        known = " or ".join(f"{rule}:{WORD}" for rule in PUBLISHED)
        raise InputError(f"policy '{name}' has no published form of its own; expected {known}, or {name} alone")
    return rest, {**PUBLISHED[name], **given}
