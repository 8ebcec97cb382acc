"""Per-prompt memorisation: requests with the same key end alike.

BalanceRoute's ExactMatch, section 4.2 (b). The key is the prompt length, or the bin of its quantile where `bins` is
given: traces carry no prompt texts. A key never seen, or all of whose samples are shorter than the request's age, falls
back to the empirical survival of all.
"""

from __future__ import annotations

import numpy as np

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.samples import Samples
from lbopt.model import Trace
from lbopt.predictors.predictor import Floats, Ints
from lbopt.predictors.samples import buckets_by_key, ends_by_samples
from lbopt.predictors.survival import check_training


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
