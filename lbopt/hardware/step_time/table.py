"""The table of step-time laws, and the text form `name:option=value,option=value` in which users name one."""

from __future__ import annotations

from collections.abc import Callable

from lbopt.hardware.step_time.affine import AffineStepTime
from lbopt.hardware.step_time.law import StepTime
from lbopt.hardware.step_time.mean_term import MeanTermStepTime
from lbopt.spec import options_of, unknown

_BF_IO = AffineStepTime.of_bf_io_paper(72)


def affine(fixed: float = _BF_IO.fixed_seconds, per_token: float = _BF_IO.seconds_per_token) -> StepTime:
    """Build the affine law; the defaults are those of BF-IO's experiments at 72 slots."""
    return AffineStepTime(fixed, per_token)


def mean_term(per_token: float = 1e-7, per_mean_token: float = 5e-8, fixed: float = 0.0) -> StepTime:
    """Build the law with a mean term; the ratio of the defaults is that of the EP-barrier post."""
    return MeanTermStepTime(per_token, per_mean_token, fixed)


STEP_TIMES: dict[str, Callable[..., StepTime]] = {
    "affine": affine,
    "mean-term": mean_term,
}


def make_step_time(spec: str) -> StepTime:
    """Build the law that `spec` names: a name from `STEP_TIMES`, optionally with options."""
    name, _, rest = spec.partition(":")
    if name not in STEP_TIMES:
        raise unknown("step time", name, STEP_TIMES)
    factory = STEP_TIMES[name]
    return factory(**options_of("step time", name, rest, factory))
