"""The oracle reads the truth; with an error it reads something else, which is how forecasts are made worse on purpose.

The error belongs to the request and stays with it: at every age the oracle believes in the same wrong output length.

* noise: the output times exp(noise * z), z a standard normal draw per request;
* bias: the output times `bias`;
* shuffled: the share of requests whose believed outputs are exchanged among themselves.

A request that outlives what is believed of it has no sample beyond its age: it counts as outliving the window.
"""

from __future__ import annotations

import numpy as np

from lbopt.exceptions import InputError
from lbopt.kernels.forecast.samples import Samples
from lbopt.model import Trace
from lbopt.predictors.predictor import Floats, Ints
from lbopt.predictors.samples import one_each


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
