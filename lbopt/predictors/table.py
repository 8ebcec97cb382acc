"""The table of predictors, and the text form ``name:option=value;option=value`` in which users name one.

Options are divided by semicolons, because the text itself stands in the options of a policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.predictors.learned import Learned
from lbopt.predictors.predictor import Predictor
from lbopt.predictors.rules import Memorised, Oracle, Survival
from lbopt.spec import options_of, unknown

#: By name: the factory, whose first argument is the trace to learn from, and whether that is the truth itself.
PREDICTORS: dict[str, Callable[..., Predictor]] = {
    "oracle": Oracle,
    "survival": Survival,
    "memorised": Memorised,
    "learned": Learned,
}


def needs_training(spec: str) -> bool:
    """Return whether the predictor that `spec` names learns from other requests than those of the run."""
    return _name(spec) != "oracle"


def check_predictor(spec: str) -> None:
    """Refuse a text that names no predictor, or options that it has not."""
    name = _name(spec)
    _options(name, spec, {})


def make_predictor(spec: str, *, requests: Trace, training: Trace | None, horizon: int) -> Predictor:
    """Build the predictor that `spec` names.

    Parameters
    ----------
    spec
        A name from `PREDICTORS`, optionally with options: ``oracle:noise=0.5;seed=3``.
    requests
        The requests of the run, which only the oracle reads.
    training
        Requests to learn from; None where there are none.
    horizon
        H, for predictors that are trained for one window.
    """
    name = _name(spec)
    factory = PREDICTORS[name]
    chosen = _options(name, spec, {"horizon": horizon})
    if name == "oracle":
        return factory(requests, **chosen)
    if training is None:
        raise InputError(f"predictor '{name}' has no requests to learn from; give training requests, or use 'oracle'")
    return factory(training, **chosen)


def _options(name: str, spec: str, given: dict[str, Any]) -> dict[str, Any]:
    return options_of("predictor", name, spec.partition(":")[2].replace(";", ","), PREDICTORS[name], given)


def _name(spec: str) -> str:
    name = spec.partition(":")[0]
    if name not in PREDICTORS:
        raise unknown("predictor", name, PREDICTORS)
    return name
