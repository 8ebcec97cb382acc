"""Predictors that come with lbopt: survival, memorised, the oracle, and what recent requests did.

The oracle reads the truth; with an error it reads something else, which is how forecasts are made worse on purpose.

The error belongs to the request and stays with it: at every age the oracle believes in the same wrong output length.

* noise: the output times exp(noise * z), z a standard normal draw per request;
* bias: the output times `bias`;
* shuffled: the share of requests whose believed outputs are exchanged among themselves.

A request that outlives what is believed of it has no sample beyond its age: it counts as outliving the window.

Empirical survival: the law of the training outputs, given that a request has made `age` tokens already.

BalanceRoute, section 4.2 (a). No features: every request is like every other, except for its age.

Requests walked through their ages: the rows that predictors are trained and judged on.

A request of o output tokens gives a row at each age 0, stride, 2 stride, ... below o (BalanceRoute, section 4.2), as a
router meets it while it runs. Long requests give more rows than short ones, and so they do in a fleet.

What ended lately: an exponentially weighted mean of outputs, and rolling statistics of outputs and prompts.

The same five numbers in two ways: `Recent` keeps them up to date as requests end, `recent_before` returns for a whole
list of requests what each of them would have seen, the ones before it having ended.

Per-prompt memorisation: requests with the same key end alike.

BalanceRoute's ExactMatch, section 4.2 (b). The key is the prompt length, or the bin of its quantile where `bins` is
given: traces carry no prompt texts. A key never seen, or all of whose samples are shorter than the request's age, falls
back to the empirical survival of all.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.state import Samples
from lbopt.model import Trace
from lbopt.predictors.predictor import buckets_by_key, ends_by_samples, one_bucket, one_each


class Oracle:
    """The truth about `requests`, or what an erring oracle takes for it.

    Parameters
    ----------
    requests
        The requests of the run, numbered as they will be asked for.
    noise, bias, shuffled
        The errors above; 0, 1 and 0 are none.
    seed
        Feeds noise and shuffling.
    """

    refresh_period = 1

    def __init__(
        self, requests: Trace, noise: float = 0.0, bias: float = 1.0, shuffled: float = 0.0, seed: int = 0
    ) -> None:
        if not 0 <= noise <= 10:
            raise InputError(f"predictor 'oracle': noise is {noise}; expected 0 to 10")
        if not 0.001 <= bias <= 1000:
            raise InputError(f"predictor 'oracle': bias is {bias}; expected 0.001 to 1000")
        if not 0 <= shuffled <= 1:
            raise InputError(f"predictor 'oracle': shuffled is {shuffled}; expected a share, 0 to 1")
        if not 0 <= seed <= 2**31:
            raise InputError(f"predictor 'oracle': seed is {seed}; expected 0 to 2**31")
        given = {"noise": (noise, 0.0), "bias": (bias, 1.0), "shuffled": (shuffled, 0.0), "seed": (seed, 0)}
        changed = ",".join(f"{option}={value:g}" for option, (value, usual) in given.items() if value != usual)
        self.name = "oracle" + (f":{changed}" if changed else "")
        rng = np.random.default_rng((seed, 20_605))
        believed = requests.output.astype(np.float64) * bias
        if noise:
            believed *= np.exp(noise * rng.standard_normal(believed.size))
        if shuffled:
            chosen = np.flatnonzero(rng.random(believed.size) < shuffled)
            believed[chosen] = believed[rng.permutation(chosen)]
        self._outputs = np.maximum(1, np.rint(np.minimum(believed, 2.0**40))).astype(np.int64)

    def samples_of(self, requests: Ints, prompt: Ints) -> tuple[Samples, Ints]:
        """Return a bucket of one for each request, its output."""
        return one_each(self._outputs[requests]), np.arange(1, requests.size + 1, dtype=np.int64)

    def ends_within(self, requests: Ints, prompt: Ints, generated: Ints, horizon: int) -> tuple[Floats, Floats]:
        """Return p = 1 and the remaining steps where it ends within the window, p = 0 where not.

        Parameters
        ----------
        requests, prompt, generated, horizon
            As in `Predictor.ends_within`.
        """
        left = (self._outputs[requests] - generated).astype(np.float64)
        ends = (left >= 1) & (left <= horizon)
        return ends.astype(np.float64), np.where(ends, left, float(horizon))


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


Ints = NDArray[np.int64]

#: Half a gigabyte of features with their copies; more is seldom meant.
MOST_ROWS = 5_000_000


def walk(outputs: Ints, stride: int) -> tuple[Ints, Ints]:
    """Return the request (its place in `outputs`, int64 (n,)) and the age of each row, by request, then by age."""
    if not 1 <= stride <= 2**31:
        raise InputError(f"stride is {stride}; expected at least 1 token between two ages")
    counts = -(-outputs // stride)
    total = int(counts.sum())
    if total > MOST_ROWS:
        raise InputError(
            f"{outputs.size} requests walked through their ages by {stride} tokens make {total} rows, more than "
            f"{MOST_ROWS}; use a larger stride or fewer requests"
        )
    requests = np.repeat(np.arange(outputs.size, dtype=np.int64), counts)
    within = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    return requests, within * stride


Floats = NDArray[np.float64]

#: Requests in a rolling statistic.
WINDOW = 64
#: Weight of the latest output in the exponentially weighted mean.
SMOOTHING = 0.05

NAMES = ("smoothed output", "mean output", "largest output", "mean prompt", "largest prompt")


class Recent:
    """The statistics of the requests that ended last; NaN while none has."""

    def __init__(self) -> None:
        self._smoothed = np.nan
        self._outputs: deque[int] = deque(maxlen=WINDOW)
        self._prompts: deque[int] = deque(maxlen=WINDOW)

    def add(self, prompt: Ints, output: Ints) -> None:
        """Take in requests that have ended, oldest first: tokens, int64 (n,) each."""
        for value in output.tolist():
            self._smoothed = value if np.isnan(self._smoothed) else _smooth(self._smoothed, value)
        self._outputs.extend(output[-WINDOW:].tolist())
        self._prompts.extend(prompt[-WINDOW:].tolist())

    def features(self) -> Floats:
        """Return the statistics in the order of `NAMES`, float64 (5,)."""
        if not self._outputs:
            return np.full(len(NAMES), np.nan)
        outputs, prompts = np.array(self._outputs), np.array(self._prompts)
        return np.array([self._smoothed, outputs.mean(), outputs.max(), prompts.mean(), prompts.max()])


def recent_before(prompt: Ints, output: Ints) -> Floats:
    """Return in row i the statistics after the first i requests, float64 (n + 1, 5); row 0 is NaN."""
    table = np.full((output.size + 1, len(NAMES)), np.nan)
    smoothed = np.nan
    for i, value in enumerate(output.tolist(), start=1):
        smoothed = value if i == 1 else _smooth(smoothed, value)
        table[i, 0] = smoothed
    for column, values in ((1, output), (3, prompt)):
        sums = np.concatenate([[0], np.cumsum(values)])
        ends = np.arange(1, values.size + 1)
        begins = np.maximum(0, ends - WINDOW)
        table[1:, column] = (sums[ends] - sums[begins]) / (ends - begins)
        padded = np.concatenate([np.zeros(WINDOW - 1, dtype=np.int64), values])  # tokens are never negative
        table[1:, column + 1] = np.lib.stride_tricks.sliding_window_view(padded, WINDOW).max(axis=1)
    return table


def _smooth(before: float, value: float) -> float:
    return before + SMOOTHING * (value - before)


class Memorised:
    """Samples by key.

    Parameters
    ----------
    training
        Requests to learn from.
    bins
        0: the key is the prompt length itself; else the bin among so many of equal probability.
    least
        Samples that a key needs to be used at all; fewer fall back.
    """

    refresh_period = 10

    def __init__(self, training: Trace, bins: int = 0, least: int = 1) -> None:
        check_training("memorised", training)
        for option, value, lowest in (("bins", bins, 0), ("least", least, 1)):
            if not lowest <= value <= 2**31:
                raise InputError(f"predictor 'memorised': {option} is {value}; expected {lowest} or more")
        changed = [
            f"{option}={value}" for option, value, usual in (("bins", bins, 0), ("least", least, 1)) if value != usual
        ]
        self.name = ":".join(["memorised", *([",".join(changed)] if changed else [])])
        if bins:
            edges = np.quantile(training.prompt, np.arange(1, bins) / bins, method="higher")
            self._keys = np.unique(edges).astype(np.int64)
        else:
            self._keys = np.unique(training.prompt)
        self._exact = bins == 0
        known = self._key_of(training.prompt)
        counts = np.bincount(known, minlength=self._keys.size + 1)
        self._samples = buckets_by_key(training.output, known, self._keys.size + 1)
        self._rare = counts < least

    def _key_of(self, prompt: Ints) -> Ints:
        """Return the key of each prompt; one that was never seen has the last, which is empty or rare."""
        if not self._exact:
            return np.searchsorted(self._keys, prompt, side="right").astype(np.int64)
        place = np.searchsorted(self._keys, prompt).clip(max=self._keys.size - 1)
        return np.where(self._keys[place] == prompt, place, self._keys.size).astype(np.int64)

    def samples_of(self, requests: Ints, prompt: Ints) -> tuple[Samples, Ints]:
        """Return the bucket of each request's key."""
        keys = self._key_of(prompt)
        return self._samples, np.where(self._rare[keys], 0, keys + 1)

    def ends_within(self, requests: Ints, prompt: Ints, generated: Ints, horizon: int) -> tuple[Floats, Floats]:
        """Return p and mu, as in `Predictor`.

        Parameters
        ----------
        requests, prompt, generated, horizon
            As in `Predictor.ends_within`.
        """
        return ends_by_samples(*self.samples_of(requests, prompt), generated, horizon)
