"""The rules by which serving engines and their routers place requests in 2026, without options of their own.

Read in the sources named in `ABOUT`, snapshots of July to September 2026. Each binds a request when it arrives, but for
tensorrt-llm, whose ranks take from one queue. What sources say of caches of prefixes and of tokens that are not yet
computed counts for tpu-inference and dynamo where workers compute prompts (`Detail.prefill`), and nowhere else. Ranks
that requests wish for have no counterpart here.
"""

from __future__ import annotations

from collections.abc import Callable

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies.editions import EDITIONS, present_edition
from lbopt.policies.policy import ADMISSIONS, CompiledPolicy, checked_admission
from lbopt.policies.worker_rules import worker_rule


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
    options = [f"version={version}"] if version != present_edition() else []
    options += [f"admission={binds}"] if binds != "immediate" else []
    label = f"vllm:{','.join(options)}" if options else "vllm"
    return CompiledPolicy(name=label, admission=binds, code=codes.VLLM if old else codes.VLLM_2026)


#: fewest tokens, resident and queued, then fewest requests
sglang = worker_rule("sglang", codes.SGLANG, "immediate", allowed=("immediate",))
#: longest prompt first to the fewest prompt tokens
tensorrt_llm = worker_rule("tensorrt-llm", codes.TENSORRT_LLM, "pooled", allowed=("pooled",))


def _by_cache(name: str, code: int, *, draws: bool) -> Callable[..., CompiledPolicy]:
    """Return the factory of a rule that knows what workers' caches of prefixes hold, unless it is told not to."""

    def build(admission: str = "immediate", cache: bool = True) -> CompiledPolicy:
        binds = checked_admission(name, admission, ("immediate",))
        label = name if cache else f"{name}:cache=no"
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
