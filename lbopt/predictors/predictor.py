"""What a predictor is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.forecast.samples import Samples

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Predictor(Protocol):
    """Says of a running request whether it ends within H more steps, and when."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def refresh_period(self) -> int:
        """Tokens after which a forecast is worth making anew, where the user does not say."""

    def ends_within(self, requests: Ints, prompt: Ints, generated: Ints, horizon: int) -> tuple[Floats, Floats]:
        """Return p and mu, float64 (n,) each.

        p is the chance to end within `horizon` more steps, mu the mean number of them if it does.

        Parameters
        ----------
        requests
            int64, (n,): numbers in the trace; only the oracle uses them.
        prompt, generated
            int64, (n,): prompt and emitted tokens.
        horizon
            Steps of the window.
        """


@runtime_checkable
class SamplePredictor(Predictor, Protocol):
    """A predictor that goes by samples of output lengths; it knows whole survival curves."""

    def samples_of(self, requests: Ints, prompt: Ints) -> tuple[Samples, Ints]:
        """Return samples and the bucket of each request, int64 (n,)."""


@runtime_checkable
class LearningPredictor(Predictor, Protocol):
    """A predictor that also looks at the requests that have ended so far in the run."""

    def begin(self) -> None:
        """Forget what was seen: a run begins."""

    def tell(self, prompt: Ints, output: Ints) -> None:
        """Hear of requests that have ended, oldest first: tokens, int64 (n,) each."""
