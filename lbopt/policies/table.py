"""The table of policies, and the text form `name:option=value,option=value` in which users name one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbopt.exceptions import InputError
from lbopt.policies import worker_rules
from lbopt.policies.bf_io import BfIo
from lbopt.policies.br_0 import br_0
from lbopt.policies.br_0_bypass import br_0_bypass
from lbopt.policies.br_h import BrH
from lbopt.policies.decode_programs import BarrierTime, CountThenLoad, LevelThenLoad
from lbopt.policies.domain import domain
from lbopt.policies.eldr import eldr
from lbopt.policies.fast_phi import FastPhi
from lbopt.policies.iqr import iqr
from lbopt.policies.max_min import max_min
from lbopt.policies.policy import Policy
from lbopt.policies.python_file import load_callable
from lbopt.policies.replay import load_replay
from lbopt.spec import options_of, unknown

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
}


def look_ahead(horizon: int | None, predictor: str | None) -> dict[str, Any]:
    """Return the options of a user who asks for a window or a predictor, for `make_policy`."""
    return {name: value for name, value in (("horizon", horizon), ("predictor", predictor)) if value is not None}


def make_policy(spec: str, given: Mapping[str, Any] | None = None) -> Policy:
    """Build the policy that `spec` names.

    `spec` is a name from `POLICIES`, optionally with options (``br-0:stage_switch=4,age_bound=50``),
    ``replay:FILE``, or ``path/to/file.py:function``. `given` are values of options that the text leaves out, used where
    the rule has such an option.

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
    return factory(**options_of("policy", name, rest, factory, given))
