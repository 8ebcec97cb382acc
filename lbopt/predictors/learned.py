"""A learned pair: gradient-boosted trees for "ends within H", and for the remaining steps of those that do.

BalanceRoute, section 4.2 (c). Each training request is walked through its ages; the classifier learns from all rows,
the regressor from those that end within H. The features are causal: prompt, tokens made so far, and what ended lately,
where in training arrival i has seen all requests before it. The paper's number of trees, depth and stride are not
known; here they are options.

The models are scikit-learn's histogram gradient boosting, on one thread: lbopt works in parallel by process, and a call
for a few hundred requests is over before threads have met. Early stopping would hold out rows of requests that are also
trained on, so it is off. All rows of a request have the same prompt and history, by which trees could tell it from all
others and learn its output by heart: so a leaf holds many rows, and there are few trees.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.predictors.predictor import Floats, Ints
from lbopt.predictors.rules import NAMES as RECENT_NAMES
from lbopt.predictors.rules import Recent, check_training, recent_before, walk

#: Columns of the feature matrix.
FEATURES = ("prompt", "generated", *RECENT_NAMES)

_LIMITS = {"trees": (1, 10_000), "depth": (1, 64), "stride": (1, 2**31), "horizon": (0, 1_000_000), "seed": (0, 2**31)}
_USUAL = {"trees": 30, "depth": 6, "stride": 10, "seed": 0}

#: Least rows in a leaf: so many, or this share of all where there are few.
_LEAF_ROWS = 200
_LEAF_SHARE = 0.02


class Learned:
    """The pair, trained for one window.

    Parameters
    ----------
    training
        Requests to learn from, in trace order.
    trees, depth
        Size of each model.
    stride
        Tokens between two ages of a training request.
    horizon
        H, steps; the models are of no use for another.
    seed
        Feeds the choice of bin edges where there are very many rows.
    """

    refresh_period = 10

    def __init__(
        self, training: Trace, trees: int = 30, depth: int = 6, stride: int = 10, horizon: int = 80, seed: int = 0
    ) -> None:
        check_training("learned", training)
        given = {"trees": trees, "depth": depth, "stride": stride, "horizon": horizon, "seed": seed}
        for option, value in given.items():
            lowest, highest = _LIMITS[option]
            if not isinstance(value, int) or not lowest <= value <= highest:
                raise InputError(f"predictor 'learned': {option} is {value}; expected {lowest} to {highest}")
        changed = ",".join(f"{option}={given[option]}" for option, usual in _USUAL.items() if given[option] != usual)
        self.name = "learned" + (f":{changed}" if changed else "")
        self.horizon = horizon
        self._trained = Recent()
        self._trained.add(training.prompt, training.output)
        self._recent = copy.deepcopy(self._trained)
        requests, ages = walk(training.output, stride)
        seen = recent_before(training.prompt, training.output)[requests]
        features = np.column_stack([training.prompt[requests], ages, seen])
        left = (training.output[requests] - ages).astype(np.float64)
        ends = left <= horizon
        settings = {"max_iter": trees, "max_depth": depth, "early_stopping": False, "random_state": seed}
        self._share = float(ends.mean())
        self._classifier = self._regressor = None
        if 0 < self._share < 1:  # else there is nothing to classify
            self._classifier = _fitted("HistGradientBoostingClassifier", settings, features, ends)
        if self._share > 0:
            self._regressor = _fitted("HistGradientBoostingRegressor", settings, features[ends], left[ends])

    def begin(self) -> None:
        """Forget what ended in an earlier run; what ended last in training is what one knows at the beginning."""
        self._recent = copy.deepcopy(self._trained)

    def tell(self, prompt: Ints, output: Ints) -> None:
        """Hear of requests that have ended, oldest first: tokens, int64 (n,) each."""
        self._recent.add(prompt, output)

    def ends_within(self, requests: Ints, prompt: Ints, generated: Ints, horizon: int) -> tuple[Floats, Floats]:
        """Return p and mu, as in `Predictor`.

        Parameters
        ----------
        requests, prompt, generated, horizon
            As in `Predictor.ends_within`.
        """
        if horizon != self.horizon:
            raise InputError(
                f"predictor 'learned' was trained for a window of {self.horizon} steps and is asked about {horizon}; "
                "train another one"
            )
        n = prompt.size
        p, mu = np.full(n, self._share), np.full(n, float(horizon))
        if n == 0:
            return p, mu
        features = np.empty((n, len(FEATURES)))
        features[:, 0], features[:, 1], features[:, 2:] = prompt, generated, self._recent.features()
        with _one_thread():
            if self._classifier is not None:
                p = self._classifier.predict_proba(features)[:, 1]
            if self._regressor is not None:
                mu = self._regressor.predict(features).clip(1.0, float(horizon))
        return p, mu


def _fitted(model: str, settings: dict[str, Any], features: Floats, target: Any) -> Any:
    try:
        from sklearn import ensemble
    except ImportError:
        raise InputError(
            "predictor 'learned' needs the package scikit-learn, which is absent: pip install \"lbopt[learned]\""
        ) from None
    leaf = min(_LEAF_ROWS, max(1, int(_LEAF_SHARE * len(target))))
    with _one_thread():
        return getattr(ensemble, model)(min_samples_leaf=leaf, **settings).fit(features, target)


def _one_thread() -> Any:
    """Return a context in which scikit-learn uses one thread."""
    return _thread_pools().limit(limits=1, user_api="openmp")


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()
