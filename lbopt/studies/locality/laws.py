"""Step times of the study: the assumed constants over their plausible ranges, and the shapes of the other models.

A law is named by a text, which a run is filed under: nothing for Qwen3-30B-A3B with the constants of
`ExpertStepTime.of_eldr`, "other=1ms,request=10us" for the same with other constants, the name of a model, or
"gpt-oss,other=1ms,request=10us". Measured constants may follow: "layer=15us,expert=3us,token=33ns", and
"h100-measured" has those of an H100 alone; "h100-measured,other=6ms,request=20us" adds a host's part. "+prefill" behind
a name delays every request by a prefill of its whole prompt.

**Plausible ranges.** What a step takes beside experts is printed nowhere. From below: Qwen3-30B-A3B reads 2.4 GB of
other weights a step (attention: 18.9 million numbers a layer; output layer: 311 million), 0.66 ms at 3.71 TB/s; so
1 ms. From above: ELDR prints a cut of 7.0 to 13.9 % of the time per token for 22 % fewer experts, so that experts are
36 to 72 % of a step. With the 9 ms that ours takes for them, all else is at most 16 ms, of which requests and tokens
are some 3: so 12 ms. A request: 13 us of arithmetic (3.3e9 active numbers, twice, at 500 TFLOP/s), so 10 us from below.
ELDR says that the batch size "barely" moves a layer's time; at 100 us thirty requests are 3 ms of a step of 17: so 100
us from above.

**Other models.** An expert has 3 * hidden * width numbers; 3.71 TB/s is 0.7 of 5.3. The ratio c0 / c1 is published for
Qwen3-30B-A3B alone ("the same dominance" for the others), and taken for all; so are 6 ms and 50 us a request.

| model | hidden, width, layers, k | bytes a number | KV heads x size |
|---|---|---|---|
| GPT-OSS-120B | 2880, 2880, 36, 4 | 17 / 32 (mxfp4: 4 bits and 8 for 32) | 8 x 64, every second layer 128 tokens |
| Gemma-4-26B-A4B | 2816, 704, 30, 8 | 2 | 8 x 256, every sixth layer 2 x 512 with keys for values |
| Qwen3-235B-A22B | 4096, 1536, 94, 8 | 2 | 4 x 128 |

They are from the models' published configurations. The synthetic gate is that of Qwen3; with four experts a token it
has two generalists instead of four, or these would be all that a token uses.

Qwen3-235B-A22B runs on four ranks with 32 experts each. A step waits for the busiest rank, which has 9 % more than a
quarter of the active experts in the study of placements (16 to 18 at four ranks, one to two above the mean). Fixed time
of a layer as for one rank; beside it 94 / 48 times 6 ms, and 20 us a layer for two exchanges between ranks, assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware import ExpertStepTime

#: s: what a step takes beside experts, requests and tokens: ends of the plausible range. What a request adds: both
#: ends, and the default between them.
OTHER_SECONDS, SECONDS_PER_REQUEST = (1e-3, 12e-3), (10e-6, 50e-6, 100e-6)

#: Bytes a second that a step reads.
_RATE = 0.7 * 5.3e12

_PREFILL = "+prefill"


@dataclass(frozen=True, slots=True)
class ModelLaw:
    """A model's step time, and its gate where it is not that of the workload.

    Parameters
    ----------
    step
        Seconds of a step.
    experts_per_token
        k.
    generalists
        Experts of a layer that nearly every request uses.
    """

    step: ExpertStepTime
    experts_per_token: int = 8
    generalists: int = 4


def _of(per_expert: float, per_token: float, layers: int, chosen: int) -> ExpertStepTime:
    """Return a step time with the ratio of fixed time and 6 ms and 50 us of Qwen3-30B-A3B.

    Parameters
    ----------
    per_expert
        Bytes of an expert.
    per_token
        Bytes of KV cache that a token adds to a step.
    layers, chosen
        Layers with experts, and experts of a token.
    """
    base = ExpertStepTime.of_eldr()
    ratio = base.layer_seconds / base.seconds_per_expert
    return replace(
        base,
        seconds_per_token=per_token / _RATE,
        layer_seconds=ratio * per_expert / _RATE,
        seconds_per_expert=per_expert / _RATE,
        layers=layers,
        experts_per_token=chosen,
    )


def _of_235b() -> ExpertStepTime:
    base, ranks, busiest = ExpertStepTime.of_eldr(), 4, 1.09
    return replace(
        base,
        other_seconds=base.other_seconds * 94 / 48 + 94 * 20e-6,
        seconds_per_token=2 * 2 * 4 * 128 * 94 / ranks / _RATE,
        seconds_per_expert=busiest * 3 * 4096 * 1536 * 2 / ranks / _RATE,
        layers=94,
    )


MODELS = {
    "gpt-oss": ModelLaw(_of(3 * 2880 * 2880 * 17 / 32, 2 * 2 * 8 * 64 * 18, 36, 4), 4, 2),
    "gemma": ModelLaw(_of(3 * 2816 * 704 * 2, 2 * 2 * 8 * 256 * 25 + 2 * 2 * 512 * 5, 30, 8)),
    "qwen-235b": ModelLaw(_of_235b()),
}


#: Step times of Qwen3-30B-A3B whose constants were measured on a device alone, without an engine's host part.
MEASURED = {"h100-measured": "other=1.92ms,request=6.9us,layer=24.47us,expert=3.065us,token=32.1ns"}

#: Constants in a name of a law: the field that each is, its unit, and how many of these are a second.
_CONSTANTS = {
    "other": ("other_seconds", "ms", 1e3),
    "request": ("seconds_per_request", "us", 1e6),
    "layer": ("layer_seconds", "us", 1e6),
    "expert": ("seconds_per_expert", "us", 1e6),
    "token": ("seconds_per_token", "ns", 1e9),
}


def with_constants(other: float, per_request: float) -> str:
    """Return the name of the law with these seconds; the empty name for those that are the default."""
    base = ExpertStepTime.of_eldr()
    if (other, per_request) == (base.other_seconds, base.seconds_per_request):
        return ""
    return f"other={1e3 * other:g}ms,request={1e6 * per_request:g}us"


def law_of(name: str) -> ModelLaw:
    """Return the law of a name."""
    name = name.removesuffix(_PREFILL)
    if not name:
        return ModelLaw(ExpertStepTime.of_eldr())
    if name in MODELS:
        return MODELS[name]
    first, _, rest = name.partition(",")
    base, given = ModelLaw(ExpertStepTime.of_eldr()), name
    if first in MODELS:
        base, given = MODELS[first], rest
    elif first in MEASURED:
        given = f"{MEASURED[first]},{rest}"
    parts = dict(part.split("=", 1) for part in given.split(",") if "=" in part)
    try:
        changed: dict[str, Any] = {
            _CONSTANTS[key][0]: float(text.removesuffix(_CONSTANTS[key][1])) / _CONSTANTS[key][2]
            for key, text in parts.items()
        }
    except (KeyError, ValueError):
        changed = {}
    if not {"other_seconds", "seconds_per_request"} <= changed.keys():
        raise InputError(
            f"no step time is called '{name}'; expected other=6ms,request=50us, or "
            f"one of {', '.join((*MODELS, *MEASURED))}; "
            "layer=36us, expert=2.5us and token=26ns may follow"
        )
    try:
        return replace(base, step=replace(base.step, **changed))
    except InputError as error:
        raise InputError(f"step time '{name}': {error}") from None


def behind_prefill(name: str) -> bool:
    """Return whether requests reach a decoder only when their whole prompt has been computed."""
    return name.endswith(_PREFILL)


#: Every pair, in the order of the other seconds; the defaults, which the other items run, are not among them.
GRID = tuple((other, request) for other in OTHER_SECONDS for request in SECONDS_PER_REQUEST)
