"""The published configurations (SBS, arXiv 2512.16134: evaluation, Table 1), and prompts that fit them.

Lengths are lognormal, clipped to the published range, with the published mean after clipping. The spread of the
logarithm is not published. K is 1024 in chunks and in the ends of ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill import PassTime, PrefillSetting
from lbopt.prefill.run import PrefillMetrics

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

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Rates off and on, utilisations off and on."""
        return self.rate_off, self.rate_on, self.utilisation_off, self.utilisation_on


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


#: Shares of the rate at which instances in full passes are saturated.
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
#: s, from the scheduler to an instance.
LATENCIES = (0.0, 0.001, 0.005, 0.02)
#: Standard deviation of a predicted pass time, as a share of it.
ERRORS = (0.0, 0.02, 0.1)
SEEDS = tuple(range(20))
#: Seeds of the runs that choices were made on begin here.
TUNING_SEED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetClass:
    """A fleet with the prompts that it gets.

    Parameters
    ----------
    place
        Chunk and prompts.
    instances
        N.
    pass_time
        Of a pass.
    spread
        Of the logarithm of prompts.
    """

    place: Place
    instances: int = 3
    pass_time: PassTime = field(default_factory=PassTime)
    spread: float = SPREAD


TUNED: dict[str, FleetClass] = {name: FleetClass(place=place) for name, place in PLACES.items()}
JUDGED: dict[str, FleetClass] = {
    "chat-2k": FleetClass(
        place=Place(chunk=2048, shortest=1, longest=4096, mean=600.0, limit=0.6),
        instances=4,
        pass_time=PassTime(0.06, 60e-6),
    ),
    "mixed-8k": FleetClass(
        place=Place(chunk=8192, shortest=32, longest=16_384, mean=2500.0, limit=2.0),
        instances=6,
        pass_time=PassTime(0.08, 50e-6, 0.0, 40e-6),
        spread=1.2,
    ),
    "fleet-4k": FleetClass(place=Place(chunk=4096, shortest=1, longest=8192, mean=1500.0, limit=1.0), instances=12),
}
CLASSES = TUNED | JUDGED


#: Measured passes that the interval is averaged over; the source gives no number.
WINDOW = 50

#: Policy and allocation by name.
CONTENDERS: dict[str, tuple[str, str]] = {
    "random": ("random", "round-robin"),
    "round-robin": ("round-robin", "round-robin"),
    "jsq": ("jsq", "least-loaded"),
    "jsq-tokens": ("jsq:by=tokens", "least-loaded"),
    "pooled": ("pooled", "pbaa"),
    "pooled-whole": ("pooled", "pbaa:whole=yes"),
    "staggered": (f"staggered:window={WINDOW}", "pbaa"),
    "staggered-bypass": (f"staggered:window={WINDOW},idle_bypass=yes", "pbaa"),
    "staggered-free": (f"staggered:window={WINDOW},target=free", "pbaa"),
    "staggered-whole": (f"staggered:window={WINDOW},target=free", "pbaa:whole=yes"),
    "staggered-bypass-whole": (f"staggered:window={WINDOW},target=free,idle_bypass=yes", "pbaa:whole=yes"),
}
#: Bound on arrival: what staggering is compared with.
IMMEDIATE = ("random", "round-robin", "jsq", "jsq-tokens")
STAGGERED = ("staggered", "staggered-bypass", "staggered-free", "staggered-whole", "staggered-bypass-whole")
#: Bound when an instance is free, the simplest ways and the staggered ones.
LATE = ("pooled", "pooled-whole", *STAGGERED)


#: Rules of the reading in which batches are sent ahead of the end of a pass.
AHEAD: dict[str, tuple[str, str]] = {
    "ahead": ("anticipating", "backfill"),
    "ahead-2": ("anticipating:error=0.02", "backfill"),
    "ahead-10": ("anticipating:error=0.1", "backfill"),
}
RULES = CONTENDERS | AHEAD
#: Rules that hold requests back, by the reading of when a batch is sent.
HELD_BACK: dict[str, tuple[str, ...]] = {"printed": LATE, "ahead": tuple(AHEAD), "both": (*LATE, *AHEAD)}


def values_of(metrics: PrefillMetrics) -> dict[str, Any]:
    """Return the quantities that tables of service show, in seconds and shares."""
    return {
        "ttft": metrics.first_token_mean_seconds,
        "ttft_p50": metrics.first_token_p50_seconds,
        "ttft_p95": metrics.first_token_p95_seconds,
        "ttft_p99": metrics.first_token_p99_seconds,
        "wait": metrics.wait_mean_seconds,
        "at_scheduler": metrics.wait_at_scheduler_mean_seconds,
        "on_device": metrics.wait_on_device_mean_seconds,
        "utilisation": metrics.chunk_utilisation,
        "cycle": metrics.pass_cycle_seconds,
        "passes_per_request": metrics.passes_per_request,
        "idle": metrics.idle_share,
    }
