"""The rules by which serving engines and their routers place requests in 2026, without options of their own.

Read in the sources named in `ABOUT`, snapshots of July to September 2026. Each binds a request when it arrives, but for
tensorrt-llm, whose ranks take from one queue. What a source says of caches of prefixes, of tokens that are not yet
prefilled and of the ranks that a request wishes for has no counterpart here: prompts are prefilled elsewhere.
"""

from __future__ import annotations

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
#: fewest queued tokens, then fewest requests
tpu_inference = worker_rule("tpu-inference", codes.TPU_INFERENCE, "immediate", allowed=("immediate",))
#: shortest queue in seconds, and a price of the cache in use
smg = worker_rule("smg", codes.SMG, "immediate", allowed=("immediate",))
#: fewest blocks of prompts that the router sent itself
dynamo = worker_rule("dynamo", codes.DYNAMO, "immediate", draws=True, allowed=("immediate",))
#: three scores of equal weight: queue, running requests, cache
llm_d = worker_rule("llm-d", codes.LLM_D, "immediate", draws=True, allowed=("immediate",))
#: fewest requests that the router sent itself
lmdeploy = worker_rule("lmdeploy", codes.LMDEPLOY, "immediate", draws=True, allowed=("immediate",))
#: fewest requests, ties at random
lightllm = worker_rule("lightllm", codes.LIGHTLLM, "immediate", draws=True, allowed=("immediate",))
#: fewest tokens of prompts that the router sent itself
vllm_ascend = worker_rule("vllm-ascend", codes.VLLM_ASCEND, "immediate", allowed=("immediate",))
