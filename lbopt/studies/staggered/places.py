"""The published configurations (SBS, arXiv 2512.16134: evaluation, Table 1), and prompts that fit them.

Lengths are lognormal, clipped to the published range, with the published mean after clipping. The spread of the
logarithm is not published. K is 1024 in chunks and in the ends of ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill import PassTime, PrefillSetting

#: Units of an instance: 32 GPUs with tensor parallelism of 4.
UNITS = 8
SPREAD = 1.0
_QUANTILES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row pair of Table 1: requests a second of an instance and chunk utilisation, staggering off and on."""

    rate_off: float
    rate_on: float
    utilisation_off: float
    utilisation_on: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A configuration.

    Parameters
    ----------
    chunk
        Most tokens of a unit in a pass.
    shortest, longest, mean
        Of prompts, tokens.
    limit
        s of mean time to first token at which rates are compared.
    printed
        What Table 1 has of it.
    """

    chunk: int
    shortest: int
    longest: int
    mean: float
    limit: float
    printed: TableRow | None = None


PLACES: dict[str, Place] = {
    "short-3k": Place(
        chunk=3072, limit=0.8, shortest=1, longest=3072, mean=1000.0,
        printed=TableRow(rate_off=57, rate_on=70, utilisation_off=0.5183, utilisation_on=0.887),
    ),
    "short-5k": Place(
        chunk=5120, limit=1.0, shortest=1, longest=3072, mean=1000.0,
        printed=TableRow(rate_off=70, rate_on=79, utilisation_off=0.53, utilisation_on=0.88),
    ),
    # no limit is printed for long prompts: about twice a pass of a full chunk
    "long-16k": Place(chunk=16_384, shortest=3072, longest=65_536, mean=6700.0, limit=3.0),
}  # fmt: skip


def prompts(place: Place, count: int, seed: int, spread: float = SPREAD) -> NDArray[np.int64]:
    """Draw the prompts of a place, int64 (count,), tokens; a spread of 0 makes all of them as long as the mean.

    Parameters
    ----------
    place
        The place.
    count
        Number of prompts.
    seed
        Seed of the draws.
    spread
        Factor on the spread of lengths; 0 makes all as long as the mean.
    """
    if spread == 0:
        return np.full(count, round(place.mean), dtype=np.int64)
    normal = np.random.default_rng([seed, 9]).standard_normal(count)
    drawn = np.exp(_centre(place, spread) + spread * normal)
    return np.clip(np.rint(drawn), place.shortest, place.longest).astype(np.int64)


def most_rate(place: Place, pass_time: PassTime) -> float:
    """Return the requests a second at which an instance that does nothing but full passes is saturated."""
    return PrefillSetting(1, UNITS, pass_time=pass_time, chunk_tokens=place.chunk).saturating_rate(place.mean)


@cache
def _centre(place: Place, spread: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import ndtri

    normal = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)

    def too_long(centre: float) -> float:
        return float(np.clip(np.exp(centre + spread * normal), place.shortest, place.longest).mean() - place.mean)

    found: float = brentq(too_long, np.log(place.shortest) - 20 * spread, np.log(place.longest) + 20 * spread)
    return found
