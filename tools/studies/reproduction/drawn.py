"""Requests of a reproduction: lengths of a trace drawn with replacement, or lognormal, and Poisson arrivals.

None of the sources publishes when its requests arrived, and two of them drew by Poisson. So times are Poisson here for
every trace; the simulator stretches them to the load that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances import families, open_trace
from lbopt.model import Trace

#: Requests that are drawn of a family before those with short outputs are left out.
FAMILY_SIZE = 50_000
#: Fewer distinct requests than this are no trace.
FEWEST = 500


def draw(requests: Mapping[str, Any], count: int, seed: int) -> Trace:
    """Return `count` requests with Poisson times of rate 1.

    Parameters
    ----------
    requests
        Either ``trace``, a file or family, with ``longer_than``, the output that every request exceeds; or
        ``prompt_mean``, ``output_mean`` in tokens and ``sigma``, the spread of the logarithm of both. With ``batch``
        they are handed over together, so many at a time on average.
    """
    rng = np.random.default_rng([seed, count])
    if "trace" in requests:
        whole = pool_of(str(requests["trace"]), int(requests["longer_than"]))
        rows = rng.choice(len(whole), count, replace=True)
        prompt, output, name = whole.prompt[rows], whole.output[rows], whole.name
    else:
        sigma = float(requests["sigma"])
        prompt = _lognormal(rng, float(requests["prompt_mean"]), sigma, count)
        output = _lognormal(rng, float(requests["output_mean"]), sigma, count)
        name = "lognormal"
    arrival = np.cumsum(rng.standard_exponential(count))
    if batch := float(requests.get("batch", 0)):
        arrival = np.ceil(arrival / batch) * batch
    return Trace(prompt=prompt, output=output, arrival=arrival, name=name)


def pool_of(trace: str, longer_than: int) -> Trace:
    """Return the requests of a file or family whose outputs exceed `longer_than` tokens."""
    whole = _whole(trace, _version(trace))
    chosen = np.flatnonzero(whole.output > longer_than)
    if chosen.size == 0:
        raise InputError(f"no request of '{trace}' has more than {longer_than} output tokens; give a longer trace")
    return Trace(prompt=whole.prompt[chosen], output=whole.output[chosen], name=whole.name)


def longest_filter(trace: str, wanted: int) -> int:
    """Return the highest hundred of output tokens up to `wanted` that leaves at least `FEWEST` requests, or 0."""
    output = _whole(trace, _version(trace)).output
    enough = [least for least in range(0, wanted + 1, 100) if (output > least).sum() >= FEWEST]
    return enough[-1] if enough else 0


def _lognormal(rng: np.random.Generator, mean: float, sigma: float, count: int) -> NDArray[np.int64]:
    drawn = rng.lognormal(math.log(mean) - sigma**2 / 2, sigma, count)
    lengths: NDArray[np.int64] = np.maximum(np.rint(drawn), 1).astype(np.int64)
    return lengths


def _version(trace: str) -> tuple[int, int]:
    """Return what tells one content of a file from another."""
    if trace in families.NAMES:
        return 0, 0
    try:
        status = Path(trace).stat()
    except (OSError, ValueError):  # the reader of the file says what is wrong
        return 0, 0
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _whole(trace: str, _version: tuple[int, int]) -> Trace:
    if trace in families.NAMES:
        return families.generate(trace, FAMILY_SIZE, 0)
    return open_trace(trace)
