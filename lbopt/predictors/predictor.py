"""What a predictor is: what it is asked, and what it answers.

Samples of output lengths, sorted into buckets once.

What a policy may know of the future: one forecast per running request, and the samples behind it.

Which forecast a policy asks for: predictor, window, and how often it is made anew.

What a predictor is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.state import Samples
from lbopt.model.integers import integer_array


def one_bucket(outputs: Any) -> Samples:
    """Return all outputs, int (n,), as one bucket for all requests."""
    values = np.sort(integer_array("outputs", outputs, ndim=(1,)))
    return _with_sums(values, np.array([0, values.size], dtype=np.int64))


def buckets_by_key(outputs: Any, keys: NDArray[np.int64], num_keys: int) -> Samples:
    """Return the bucket of all requests, then one per key 0..num_keys-1 (bucket = key + 1); keys are int64 (n,)."""
    values = integer_array("outputs", outputs, ndim=(1,))
    by_key = values[np.lexsort((values, keys))]
    counts = np.bincount(keys, minlength=num_keys)
    starts = np.concatenate([[0], values.size + np.concatenate([[0], np.cumsum(counts)])])
    return _with_sums(np.concatenate([np.sort(values), by_key]), starts.astype(np.int64))


def one_each(outputs: NDArray[np.int64]) -> Samples:
    """Return a bucket for each request (place + 1) with its own output; the bucket of all requests is empty."""
    return _with_sums(outputs, np.concatenate([[0], np.arange(outputs.size + 1)]).astype(np.int64))


def _with_sums(outputs: NDArray[np.int64], starts: NDArray[np.int64]) -> Samples:
    values = np.ascontiguousarray(outputs, dtype=np.int64)
    return Samples(values, starts, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)]))


def ends_by_samples(
    samples: Samples, buckets: NDArray[np.int64], generated: NDArray[np.int64], horizon: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p and mu of each request by its bucket and age, float64 (n,) each.

    Parameters
    ----------
    buckets
        int64, (n,): bucket of each request.
    generated
        int64, (n,): emitted tokens.
    horizon
        Steps of the window.
    """
    from lbopt.kernels.forecast.ends import ends_within

    p, mu = np.empty(buckets.size), np.empty(buckets.size)
    ends_within(samples, buckets, np.ascontiguousarray(generated, dtype=np.int64), horizon, p, mu)
    return p, mu


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """The forecast at one decision.

    Parameters
    ----------
    horizon
        H, the window it speaks of, steps.
    remaining
        float64 (A,): predicted remaining steps of each running request, 1 to H.
    waiting
        float64 (n,): the same for each waiting request, counted from its start; H where nothing is known.
    samples
        The output lengths that the predictor goes by; None where it goes by something else.
    active_buckets, waiting_buckets
        int64 (A,) and (n,): in which bucket of `samples` each running and each waiting request is; None as above.
    outlives, waiting_outlives
        bool (A,) and (n,): whether a forecast of H says that the request outlives the window, or that it ends with its
        last step; by default all of them outlive it.
    """

    horizon: int
    remaining: NDArray[np.float64]
    waiting: NDArray[np.float64]
    samples: Samples | None = None
    active_buckets: NDArray[np.int64] | None = None
    waiting_buckets: NDArray[np.int64] | None = None
    outlives: NDArray[np.bool_] = None  # type: ignore[assignment]  # None on the way in, an array from then on
    waiting_outlives: NDArray[np.bool_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, values in (("outlives", self.remaining), ("waiting_outlives", self.waiting)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, values >= self.horizon)
        for name in ("remaining", "waiting"):
            values = getattr(self, name)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise InputError(
                    f"a forecast's {name} has shape {values.shape} and {int((~np.isfinite(values)).sum())} entries "
                    "that are no numbers; expected one finite number of steps per request"
                )


#: Windows longer than any output make no difference.
LONGEST_HORIZON = 1_000_000


@dataclass(frozen=True, slots=True)
class Foresight:
    """What a policy wants to know of the future; BalanceRoute, section 4.3.

    Parameters
    ----------
    horizon
        H, steps, zero or more.
    predictor
        A text for `make_predictor`.
    refresh
        Tokens between two refreshes of a request's forecast (the paper's Delta T, not known); None = the predictor's.
    gate
        Chance to end within the window below which a request counts as outliving it (not known; 0.5 is "the natural
        decision boundary").
    floor
        Least remaining steps of a running request.
    hold_anchor
        Whether a forecast of H stays H between refreshes; else it falls by a step a token, as the paper's text has it.
    """

    horizon: int
    predictor: str = "survival"
    refresh: int | None = None
    gate: float = 0.5
    floor: float = 1.0
    hold_anchor: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.horizon <= LONGEST_HORIZON:
            raise InputError(f"horizon is {self.horizon}; expected 0 to {LONGEST_HORIZON} steps")
        if self.refresh is not None and not 1 <= self.refresh <= 2**31:
            raise InputError(f"refresh is {self.refresh}; expected at least 1 token between two refreshes")
        if not 0 <= self.gate <= 1:
            raise InputError(f"gate is {self.gate}; expected a chance, 0 to 1")
        if not 0 <= self.floor <= LONGEST_HORIZON:
            raise InputError(f"floor is {self.floor}; expected 0 to {LONGEST_HORIZON} steps")


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
