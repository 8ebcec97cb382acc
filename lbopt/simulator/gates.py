"""Gates by name: when a rank that decodes may compute prompts, ``vllm:interval=8``, with the sources' names for knobs.

What each gate does: the manual, page *detail*, "Gates"; the rules themselves: `lbopt.kernels.gating`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.kernels import gating
from lbopt.kernels.arrays import Record, record
from lbopt.spec import unknown


class Knob(NamedTuple):
    """A knob of a gate: its default (None = off, NaN = must be named), range, and whether it is a whole number."""

    default: float | None
    least: float
    most: float
    whole: bool = False


_STEPS = 2.0**30
_SHARE = (0.0, 1.0)
_LOW = Knob(None, *_SHARE)

#: Gates in the order of their codes: their knobs, by the sources' names.
GATES: dict[str, dict[str, Knob]] = {
    "none": {},
    "vllm-ascend": {},
    "vllm": {"interval": Knob(math.nan, 1, _STEPS, True)},
    "sglang": {
        "max_delay_passes": Knob(30, 1, _STEPS, True),
        "token_usage_low_watermark": _LOW,
        "queue_min_ratio": Knob(None, 0, 1e6),
        "max_delay_ms": Knob(5000, 0, 1e12),
    },
    "trtllm": {"timeout_iters": Knob(50, 0, _STEPS, True), "batching_wait_iters": Knob(10, 0, _STEPS, True)},
    "atom": {
        "target_fill": Knob(0.7, *_SHARE),
        "ttft_max_ticks": Knob(30, 1, _STEPS, True),
        "partial_max_ticks": Knob(8, 1, _STEPS, True),
        "stall_ticks": Knob(3, 1, _STEPS, True),
        "kv_high_watermark": Knob(0.9, *_SHARE),
        "token_usage_low_watermark": _LOW,
        "max_queue_ms": Knob(None, 0, 1e12),
    },
    "sbs": {"window": Knob(8, 1, 10_000, True), "default_pass": Knob(0, 0, 1e6), "latency": Knob(0, 0, 1e6)},
}

#: Shorter names that knobs may be given.
_SHORT = {
    "max_passes": "max_delay_passes",
    "low": "token_usage_low_watermark",
    "queue_ratio": "queue_min_ratio",
    "timeout": "timeout_iters",
    "wait": "batching_wait_iters",
    "fill": "target_fill",
}


class ChosenGate(NamedTuple):
    """A gate as the loop takes it."""

    code: int
    knobs: Record  # gating.KNOBS

    @property
    def computes(self) -> bool:
        """Whether it concerns prompts that workers compute."""
        return self.code >= gating.VLLM

    @property
    def by_memory(self) -> bool:
        """Whether it was told to go by the share of memory in use, which must be known then."""
        return not math.isnan(self.knobs.token_usage_low_watermark)


def read_gate(text: str) -> ChosenGate:
    """Read ``sglang:max_delay_passes=30,queue_min_ratio=0.2``; within other options knobs are parted by semicolons.

    Raises
    ------
    InputError
        If gate, knob or value is unknown or out of range.
    """
    name, _, said = text.partition(":")
    if name not in GATES:
        raise unknown("gate", name, GATES)
    knobs = GATES[name]
    given: dict[str, float | None] = {}
    for part in filter(None, said.replace(";", ",").split(",")):
        short, equals, value = part.partition("=")
        knob = _SHORT.get(short, short)
        if knob not in knobs:
            raise InputError(f"gate '{name}' has no knob {shown(short)}; it takes {', '.join(knobs) or 'none'}")
        if knob in given:
            raise InputError(f"gate '{name}': {knob} is given twice; leave one out")
        given[knob] = _value(f"gate '{name}': {knob}", value if equals else "", knobs[knob])
    for knob, kind in knobs.items():
        if knob not in given and kind.default is not None and math.isnan(kind.default):
            raise InputError(f"gate '{name}' needs {knob}, such as {name}:{knob}=8")
    chosen = record(gating.KNOBS)
    for knob in gating.KNOBS.names or ():
        number = given.get(knob, knobs[knob].default if knob in knobs else None)
        setattr(chosen, knob, math.nan if number is None else number)
    return ChosenGate(list(GATES).index(name), chosen)


def _value(what: str, text: str, knob: Knob) -> float | None:
    if text == "none" and knob.default is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not knob.least <= value <= knob.most or (knob.whole and value != int(value)):
        kind = "a whole number" if knob.whole else "a number"
        raise InputError(
            f"{what} is {shown(text)}; expected {kind} from {knob.least:g} to {knob.most:g}"
            + (", or none" if knob.default is None else "")
        )
    return value
