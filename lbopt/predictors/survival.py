"""Empirical survival: the law of the training outputs, given that a request has made `age` tokens already.

BalanceRoute, section 4.2 (a). No features: every request is like every other, except for its age.
"""

from __future__ import annotations

import numpy as np

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.samples import Samples
from lbopt.model import Trace
from lbopt.predictors.predictor import Floats, Ints
from lbopt.predictors.samples import ends_by_samples, one_bucket

#: Fewer than two requests have no law.
LEAST_TRAINING = 2


class Survival:
    """The empirical survival of `training`."""

    refresh_period = 10

    def __init__(self, training: Trace) -> None:
        check_training("survival", training)
        self.name = "survival"
        self._samples = one_bucket(training.output)

    def samples_of(self, requests: Ints, prompt: Ints) -> tuple[Samples, Ints]:
        """Return the one bucket of all requests."""
        return self._samples, np.zeros(prompt.size, dtype=np.int64)

    def ends_within(self, requests: Ints, prompt: Ints, generated: Ints, horizon: int) -> tuple[Floats, Floats]:
        """Return p and mu, as in `Predictor`.

        Parameters
        ----------
        requests, prompt, generated, horizon
            As in `Predictor.ends_within`.
        """
        return ends_by_samples(*self.samples_of(requests, prompt), generated, horizon)


def check_training(name: str, training: Trace) -> None:
    """Refuse to train predictor `name` on next to nothing."""
    if len(training) < LEAST_TRAINING:
        raise InputError(
            f"predictor '{name}' is to be trained on {len(training)} request of '{training.name}'; "
            f"expected at least {LEAST_TRAINING}"
        )
