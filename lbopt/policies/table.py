"""The table of policies, and the text form `name:option=value,option=value` in which users name one."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from lbopt.exceptions import InputError
from lbopt.policies import worker_rules
from lbopt.policies.bf_io import BfIo
from lbopt.policies.br_0 import br_0
from lbopt.policies.max_min import max_min
from lbopt.policies.policy import Policy
from lbopt.policies.python_file import load_callable
from lbopt.policies.replay import load_replay

POLICIES: dict[str, Callable[..., Policy]] = {
    "fcfs": worker_rules.fcfs,
    "round-robin": worker_rules.round_robin,
    "random": worker_rules.random,
    "power-of-two": worker_rules.power_of_two,
    "jsq": worker_rules.jsq,
    "jsq-load": worker_rules.jsq_load,
    "vllm": worker_rules.vllm,
    "max-min": max_min,
    "br-0": br_0,
    "bf-io": BfIo,
}


def make_policy(spec: str) -> Policy:
    """Build the policy that `spec` names.

    `spec` is a name from `POLICIES`, optionally with options (``br-0:stage_switch=4,age_bound=50``),
    ``replay:FILE``, or ``path/to/file.py:function``.
    """
    name, _, rest = spec.partition(":")
    if name == "replay":
        return load_replay(rest)
    if spec.rpartition(":")[0].endswith(".py"):
        return load_callable(spec)
    if name not in POLICIES and spec.endswith(".py"):
        raise InputError(f"policy file '{spec}' needs a function: expected {spec}:function")
    if name not in POLICIES:
        near = difflib.get_close_matches(name, POLICIES, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(POLICIES)}"
        raise InputError(f"unknown policy '{name}': {hint} (also replay:FILE and file.py:function)")
    factory = POLICIES[name]
    return factory(**_options(name, rest, factory))


def _options(name: str, text: str, factory: Callable[..., Policy]) -> dict[str, Any]:
    known = {option: parameter.default for option, parameter in inspect.signature(factory).parameters.items()}
    chosen: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        option, equals, value = part.partition("=")
        if option not in known:
            raise InputError(f"policy '{name}' has no option '{option}'; it takes {', '.join(known) or 'none'}")
        if not equals:
            raise InputError(f"policy '{name}': option {option} has no value; expected {option}=VALUE")
        chosen[option] = _parsed(name, option, value, known[option])
    return chosen


def _parsed(name: str, option: str, value: str, default: Any) -> Any:
    """Read `value` as the kind of thing that the default is; limits may be 'none'."""
    if value == "none":
        return None
    if isinstance(default, str):
        return value
    kind: Callable[[str], Any] = float if isinstance(default, float) else int
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"policy '{name}': {option} is '{value}'; expected a number") from None
