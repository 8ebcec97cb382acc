"""A finished prefill run: one line per request, one line per pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill.metrics import PrefillMetrics, measure_prefill
from lbopt.prefill.requests import PrefillRequests
from lbopt.prefill.setting import PrefillSetting
from lbopt.statistics import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd

#: Columns of `PrefillRun.requests`, with units; NaN and -1 where the request was refused.
PREFILL_REQUEST_COLUMNS: dict[str, str] = {
    "arrival": "s",
    "dispatched": "s, sent by the scheduler; it reaches its instance a latency later",
    "began": "s, start of the first pass that serves it",
    "finished": "s, end of the pass with its last chunk: its first token",
    "instance": "where it ran",
    "unit": "of the instance",
    "passes": "that served it",
    "deferred": "dispatches that kept it at the scheduler",
}

#: Columns of `PrefillRun.passes`, with units.
PASS_COLUMNS: dict[str, str] = {
    "instance": "where it ran",
    "start": "s",
    "end": "s",
    "tokens": "computed, all units",
    "fullest": "tokens of the fullest unit",
    "longest": "tokens, longest chunk of a request",
    "requests": "that it served",
}


@dataclass(frozen=True, slots=True, eq=False)
class PrefillRun:
    """What a policy did.

    Parameters
    ----------
    traffic, setting, seed
        What was run.
    requests
        Arrays of shape (n,), see `PREFILL_REQUEST_COLUMNS`.
    passes
        Arrays of shape (K,), see `PASS_COLUMNS`, in order of start; with `keep_units` also ``of_unit`` (K, D), tokens.
    seconds
        Wall time of the simulation.
    """

    traffic: PrefillRequests
    setting: PrefillSetting
    seed: int
    requests: dict[str, NDArray[Any]]
    passes: dict[str, NDArray[Any]]
    seconds: float

    @property
    def served(self) -> NDArray[np.bool_]:
        """bool (n,), False where the request was refused."""
        served: NDArray[np.bool_] = self.requests["instance"] >= 0
        return served

    @property
    def wait(self) -> NDArray[np.float64]:
        """float64 (n,), s from arrival to the start of the first pass that serves the request."""
        wait: NDArray[np.float64] = self.requests["began"] - self.requests["arrival"]
        return wait

    @property
    def wait_at_scheduler(self) -> NDArray[np.float64]:
        """float64 (n,), s of it until dispatch; after that come the latency and the wait on the device."""
        wait: NDArray[np.float64] = self.requests["dispatched"] - self.requests["arrival"]
        return wait

    @property
    def wait_on_device(self) -> NDArray[np.float64]:
        """float64 (n,), s of it from reaching the instance to the start of the pass."""
        reached = self.requests["dispatched"] + self.setting.latency
        wait: NDArray[np.float64] = np.maximum(0.0, self.requests["began"] - reached)
        return wait

    @property
    def wait_by_quarter(self) -> tuple[float, float, float, float]:
        """Mean wait, s, of each quarter of the requests: a pool without a timer forgets its first phases slowly."""
        first, second, third, fourth = (float(np.nanmean(part)) for part in np.array_split(self.wait, 4))
        return first, second, third, fourth

    @property
    def first_token(self) -> NDArray[np.float64]:
        """float64 (n,), s from arrival to the end of the last pass."""
        seconds: NDArray[np.float64] = self.requests["finished"] - self.requests["arrival"]
        return seconds

    def metrics(self, confidence: float = CONFIDENCE) -> PrefillMetrics:
        """Return the metrics; intervals are of this confidence."""
        return measure_prefill(self, confidence)

    def request_table(self) -> pd.DataFrame:
        """Return one row per request, with its length."""
        import pandas as pd

        return pd.DataFrame({"length": self.traffic.length} | self.requests)

    def pass_table(self) -> pd.DataFrame:
        """Return one row per pass."""
        import pandas as pd

        return pd.DataFrame({name: self.passes[name] for name in PASS_COLUMNS})
